//! The keys that a request reads and writes, as permissions are asked for them.

use bytes::Bytes;
use tonic::Status;

use crate::engine::Etcd;
use crate::wire::auth::Who;
use crate::wire::exchange::Caller;
use crate::wire::messages::{
    DeleteRangeRequest, LeaseTimeToLiveRequest, PermissionType, PutRequest, RequestOp, RequestOpKind,
    TxnRequest,
};
use crate::wire::server::Server;

/// Ranges of keys that a request reads and writes, and leases that it ties keys to.
#[derive(Default)]
pub struct Access<'a> {
    ranges: Vec<(PermissionType, &'a [u8], &'a [u8])>,
    leases: Vec<i64>,
}

impl<'a> Access<'a> {
    pub fn read(key: &'a Bytes, range_end: &'a Bytes) -> Self {
        Self { ranges: vec![(PermissionType::Read, key, range_end)], leases: Vec::new() }
    }

    pub fn put(request: &'a PutRequest) -> Self {
        let mut this = Self::default();
        this.add_put(request);
        this
    }

    pub fn delete(request: &'a DeleteRangeRequest) -> Self {
        let mut this = Self::default();
        this.add_delete(request);
        this
    }

    /// All compares, and the operations of both branches.
    pub fn txn(request: &'a TxnRequest) -> Self {
        let mut this = Self::default();
        this.add_txn(request);
        this
    }

    /// Keys that a lease ends, by their lease.
    pub fn lease(id: i64) -> Self {
        Self { ranges: Vec::new(), leases: vec![id] }
    }

    fn add_put(&mut self, request: &'a PutRequest) {
        self.ranges.push((PermissionType::Write, &request.key, &[]));
        if request.prev_kv {
            self.ranges.push((PermissionType::Read, &request.key, &[]));
        }
        if request.lease != 0 {
            self.leases.push(request.lease);
        }
    }

    fn add_delete(&mut self, request: &'a DeleteRangeRequest) {
        self.ranges.push((PermissionType::Write, &request.key, &request.range_end));
        if request.prev_kv {
            self.ranges.push((PermissionType::Read, &request.key, &request.range_end));
        }
    }

    fn add_txn(&mut self, request: &'a TxnRequest) {
        let compared = request.compare.iter();
        self.ranges
            .extend(compared.map(|compare| (PermissionType::Read, &*compare.key, &*compare.range_end)));
        for RequestOp { request } in request.success.iter().chain(&request.failure) {
            match request {
                Some(RequestOpKind::Range(range)) => {
                    self.ranges.push((PermissionType::Read, &range.key, &range.range_end));
                }
                Some(RequestOpKind::Put(put)) => self.add_put(put),
                Some(RequestOpKind::DeleteRange(delete)) => self.add_delete(delete),
                Some(RequestOpKind::Txn(txn)) => self.add_txn(txn),
                None => {}
            }
        }
    }
}

impl Server {
    /// Refuses a request if its caller may not do all of it. Who may end a lease has to be able to write its keys.
    pub(super) async fn permit(
        &self,
        etcd: &Etcd,
        caller: &Caller,
        access: Access<'_>,
    ) -> Result<(), Status> {
        let Some(who) = self.who(etcd, caller)? else { return Ok(()) };
        for (wanted, key, range_end) in access.ranges {
            who.require(wanted, key, range_end)?;
        }
        for lease in access.leases {
            self.permit_lease(etcd, &who, lease, PermissionType::Write).await?;
        }
        Ok(())
    }

    /// Refuses who may not do something to all keys of a lease.
    pub(super) async fn permit_lease(
        &self,
        etcd: &Etcd,
        who: &Who,
        id: i64,
        wanted: PermissionType,
    ) -> Result<(), Status> {
        if who.is_root() {
            return Ok(());
        }
        let lease = etcd.lease_time_to_live(LeaseTimeToLiveRequest { id, keys: true }).await?;
        lease.keys.iter().try_for_each(|key| who.require(wanted, key, &[]))
    }
}
