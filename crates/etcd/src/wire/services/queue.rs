//! Queues of locks and elections: keys under a name, in the order in which they were created. The first one holds the lock.
//!
//! The keys are the protocol: clients that put and watch them by themselves stand in the same queue.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::pending;
use futures_util::stream::{self, StreamExt as _};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::wire::exchange::{Answers, Caller};
use crate::wire::messages::{
    Compare, CompareTarget, DeleteRangeRequest, EventType, KeyValue, LeaseGrantRequest,
    LeaseKeepAliveRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, RequestOpKind, ResponseHeader,
    ResponseOpKind, SortOrder, SortTarget, TargetUnion, TxnRequest, WatchCreateRequest, WatchRequest,
    WatchRequestKind, WatchResponse,
};
use crate::wire::server::Server;

/// The time to live of a lease that a waiting client has not brought, in seconds.
const TTL: i64 = 60;

/// A place in a queue.
pub struct Place {
    pub key: Bytes,
    /// The revision that created the key.
    pub created: i64,
    pub lease: i64,
    /// The value that was there before, if the place was.
    pub former: Option<Bytes>,
    pub header: Option<ResponseHeader>,
    pub leaving: Leaving,
}

impl Server {
    /// Takes a place in the queue of a name, or finds the one that the lease has already. Without a lease there is a new one.
    pub(super) async fn queue_up(
        &self,
        caller: &Caller,
        (name, value): (&[u8], Bytes),
        lease: i64,
    ) -> Result<Place, Status> {
        let lease = match lease {
            0 => self.lease_grant(caller, LeaseGrantRequest { ttl: TTL, id: 0 }).await?.id,
            given => given,
        };
        let key = Bytes::from([&prefix(name)[..], format!("{lease:x}").as_bytes()].concat());
        let put = PutRequest { key: key.clone(), value, lease, ..PutRequest::default() };
        let get = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let txn = TxnRequest {
            compare: vec![created_at(&key, 0)],
            success: vec![operation(RequestOpKind::Put(put))],
            failure: vec![operation(RequestOpKind::Range(get))],
        };
        let leaving = Leaving { server: self.clone(), caller: caller.clone(), key: Some(key.clone()) };
        let mut response = match self.txn(caller, txn).await {
            Ok(response) => response,
            Err(status) => {
                leaving.stay();
                return Err(status);
            }
        };
        let revision = response.header.as_ref().map_or(0, |header| header.revision);
        let found = match response.responses.pop().and_then(|response| response.response) {
            Some(ResponseOpKind::Range(mut range)) => range.kvs.pop(),
            _ => None,
        };
        let created = found.as_ref().map_or(revision, |kv| kv.create_revision);
        let former = found.map(|kv| kv.value);
        Ok(Place { key, created, lease, former, header: response.header, leaving })
    }

    /// Waits until a place is the first one. The lease is kept alive meanwhile.
    pub(super) async fn wait_for_turn(
        &self,
        caller: &Caller,
        name: &[u8],
        place: &Place,
    ) -> Result<(), Status> {
        let _alive = self.keep_alive(place.lease);
        loop {
            let before = RangeRequest { max_create_revision: place.created - 1, ..newest(name) };
            let before = self.range(caller, before).await?;
            let Some(last) = before.kvs.first() else { return Ok(()) };
            let revision = before.header.as_ref().map_or(0, |header| header.revision);
            let mut events = self.follow(caller, (last.key.clone(), Bytes::new()), revision + 1).await?;
            while next_kv(&mut events).await?.is_some() {}
        }
    }

    /// Renews a lease until the handle is dropped.
    fn keep_alive(&self, lease: i64) -> AbortOnDropHandle<()> {
        let server = self.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let renewed = async {
                    Some(
                        server
                            .etcd()
                            .await
                            .ok()?
                            .lease_keep_alive(LeaseKeepAliveRequest { id: lease })
                            .await
                            .ok()?
                            .ttl,
                    )
                };
                let ttl = match renewed.await {
                    // It has ended, and whoever waits finds the key gone.
                    Some(0) => return,
                    Some(ttl) => ttl.unsigned_abs(),
                    None => 1,
                };
                tokio::time::sleep(Duration::from_secs(ttl).div_f32(3.0)).await;
            }
        }))
    }

    /// The first key of a queue.
    pub(super) async fn first(&self, caller: &Caller, name: &[u8]) -> Result<RangeResponse, Status> {
        let oldest = RangeRequest { sort_order: SortOrder::Ascend as i32, ..newest(name) };
        self.range(caller, oldest).await
    }

    /// Watches keys from a revision on.
    pub(super) async fn follow(
        &self,
        caller: &Caller,
        (key, range_end): (Bytes, Bytes),
        start_revision: i64,
    ) -> Result<Answers<WatchResponse>, Status> {
        let create = WatchCreateRequest { key, range_end, start_revision, ..WatchCreateRequest::default() };
        let request = WatchRequest { request: Some(WatchRequestKind::Create(create)) };
        let requests = stream::once(async { Ok(request) }).chain(stream::once(pending()));
        self.watch(caller.clone(), requests.boxed()).await
    }
}

/// The next version of a key that is watched, with the header of its event; `None` if it was deleted.
pub async fn next_kv(
    events: &mut Answers<WatchResponse>,
) -> Result<Option<(Option<ResponseHeader>, KeyValue)>, Status> {
    loop {
        let response =
            events.next().await.unwrap_or_else(|| Err(Status::unavailable("etcdserver: server stopped")))?;
        if response.canceled {
            let reason = match response.compact_revision {
                0 => response.cancel_reason,
                _ => "etcdserver: mvcc: required revision has been compacted".to_owned(),
            };
            return Err(Status::unknown(reason));
        }
        if let Some(event) = response.events.into_iter().next_back() {
            let is_put = event.kind == EventType::Put as i32;
            return Ok(event.kv.filter(|_| is_put).map(|kv| (response.header, kv)));
        }
    }
}

/// The keys of a queue begin with this.
pub fn prefix(name: &[u8]) -> Bytes {
    [name, b"/"].concat().into()
}

/// The first key behind all that begin with the prefix.
pub fn prefix_end(name: &[u8]) -> Bytes {
    // The next byte after a slash.
    [name, b"0"].concat().into()
}

/// The key of a queue that was created last.
fn newest(name: &[u8]) -> RangeRequest {
    RangeRequest {
        key: prefix(name),
        range_end: prefix_end(name),
        sort_order: SortOrder::Descend as i32,
        sort_target: SortTarget::Create as i32,
        limit: 1,
        ..RangeRequest::default()
    }
}

/// The condition that a key was created by a revision, or does not exist if that is 0.
pub fn created_at(key: &Bytes, revision: i64) -> Compare {
    Compare {
        target: CompareTarget::Create as i32,
        key: key.clone(),
        target_union: Some(TargetUnion::CreateRevision(revision)),
        ..Compare::default()
    }
}

pub fn operation(kind: RequestOpKind) -> RequestOp {
    RequestOp { request: Some(kind) }
}

/// A place that is left if its client goes before it is the first one.
pub struct Leaving {
    server: Server,
    caller: Caller,
    /// `None` once the place is the client's.
    key: Option<Bytes>,
}

impl Leaving {
    /// Keeps the place.
    pub fn stay(mut self) {
        self.key = None;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let (server, caller) = (self.server.clone(), self.caller.clone());
        // The lease ends the place if this fails.
        tokio::spawn(async move {
            let request = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
            let _ = server.delete_range(&caller, request).await;
        });
    }
}
