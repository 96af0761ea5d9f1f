//! The service Election.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tonic::Status;

use super::queue::{created_at, next_kv, operation, prefix, prefix_end};
use crate::wire::exchange::{Answers, Caller};
use crate::wire::messages::{
    CampaignRequest, CampaignResponse, DeleteRangeRequest, KeyValue, LeaderKey, LeaderRequest,
    LeaderResponse, ProclaimRequest, ProclaimResponse, PutRequest, RequestOpKind, ResignRequest,
    ResignResponse, ResponseHeader, TxnRequest, TxnResponse, WatchResponse,
};
use crate::wire::server::Server;

impl Server {
    /// Answers once the client is elected.
    pub(in crate::wire) async fn campaign(
        &self,
        caller: &Caller,
        request: CampaignRequest,
    ) -> Result<CampaignResponse, Status> {
        let CampaignRequest { name, lease, value } = request;
        let place = self.queue_up(caller, (&name, value.clone()), lease).await?;
        let (key, rev, lease) = (place.key.clone(), place.created, place.lease);
        let leader = LeaderKey { name: name.clone(), key, rev, lease };
        if place.former.as_ref().is_some_and(|former| *former != value) {
            self.announce(caller, &leader, value).await?;
        }
        self.wait_for_turn(caller, &name, &place).await?;
        place.leaving.stay();
        Ok(CampaignResponse { header: place.header, leader: Some(leader) })
    }

    pub(in crate::wire) async fn proclaim(
        &self,
        caller: &Caller,
        request: ProclaimRequest,
    ) -> Result<ProclaimResponse, Status> {
        let leader = request.leader.ok_or_else(no_leader_given)?;
        Ok(ProclaimResponse { header: self.announce(caller, &leader, request.value).await? })
    }

    /// Puts the value of a leader who is still there.
    async fn announce(
        &self,
        caller: &Caller,
        leader: &LeaderKey,
        value: Bytes,
    ) -> Result<Option<ResponseHeader>, Status> {
        let put = PutRequest { key: leader.key.clone(), value, lease: leader.lease, ..PutRequest::default() };
        let TxnResponse { header, succeeded, .. } =
            self.txn(caller, while_leading(leader, RequestOpKind::Put(put))).await?;
        match succeeded {
            true => Ok(header),
            false => Err(Status::unknown("election: not leader")),
        }
    }

    pub(in crate::wire) async fn resign(
        &self,
        caller: &Caller,
        request: ResignRequest,
    ) -> Result<ResignResponse, Status> {
        let leader = request.leader.ok_or_else(no_leader_given)?;
        let delete = DeleteRangeRequest { key: leader.key.clone(), ..DeleteRangeRequest::default() };
        let txn = while_leading(&leader, RequestOpKind::DeleteRange(delete));
        Ok(ResignResponse { header: self.txn(caller, txn).await?.header })
    }

    pub(in crate::wire) async fn leader(
        &self,
        caller: &Caller,
        request: LeaderRequest,
    ) -> Result<LeaderResponse, Status> {
        let mut found = self.first(caller, &request.name).await?;
        let kv = found.kvs.pop().ok_or_else(|| Status::unknown("election: no leader"))?;
        Ok(LeaderResponse { header: found.header, kv: Some(kv) })
    }

    /// The leaders and their values, beginning with the present ones.
    pub(in crate::wire) async fn observe(
        &self,
        caller: &Caller,
        request: LeaderRequest,
    ) -> Result<Answers<LeaderResponse>, Status> {
        let observer =
            Observer { server: self.clone(), caller: caller.clone(), name: request.name, following: None };
        let answers = stream::unfold(Some(observer), async |observer| {
            let mut observer = observer?;
            match observer.next().await {
                Ok((header, kv)) => Some((Ok(LeaderResponse { header, kv: Some(kv) }), Some(observer))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(answers.boxed())
    }
}

/// A client that is told of leaders.
struct Observer {
    server: Server,
    caller: Caller,
    name: Bytes,
    /// The versions of the present leader's key.
    following: Option<Answers<WatchResponse>>,
}

impl Observer {
    async fn next(&mut self) -> Result<(Option<ResponseHeader>, KeyValue), Status> {
        if let Some(following) = &mut self.following
            && let Some(changed) = next_kv(following).await?
        {
            return Ok(changed);
        }
        let mut found = self.server.first(&self.caller, &self.name).await?;
        let revision = found.header.as_ref().map_or(0, |header| header.revision);
        let (header, kv) = match found.kvs.pop() {
            Some(kv) => (found.header, kv),
            None => {
                let all = (prefix(&self.name), prefix_end(&self.name));
                let mut events = self.server.follow(&self.caller, all, revision + 1).await?;
                loop {
                    if let Some(first) = next_kv(&mut events).await? {
                        break first;
                    }
                }
            }
        };
        let key = (kv.key.clone(), Bytes::new());
        self.following =
            Some(self.server.follow(&self.caller, key, kv.mod_revision.max(revision) + 1).await?);
        Ok((header, kv))
    }
}

/// A transaction that does something if the leader's key is the one that he was elected by.
fn while_leading(leader: &LeaderKey, then: RequestOpKind) -> TxnRequest {
    TxnRequest {
        compare: vec![created_at(&leader.key, leader.rev)],
        success: vec![operation(then)],
        failure: Vec::new(),
    }
}

fn no_leader_given() -> Status {
    Status::unknown("\"leader\" field must be provided")
}
