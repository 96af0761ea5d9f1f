//! The service Lock.

use bytes::Bytes;
use tonic::Status;

use crate::wire::exchange::Caller;
use crate::wire::messages::{
    DeleteRangeRequest, LockRequest, LockResponse, RangeRequest, UnlockRequest, UnlockResponse,
};
use crate::wire::server::Server;

impl Server {
    /// Answers once the lock is held.
    pub(in crate::wire) async fn lock(
        &self,
        caller: &Caller,
        request: LockRequest,
    ) -> Result<LockResponse, Status> {
        let LockRequest { name, lease } = request;
        let place = self.queue_up(caller, (&name, Bytes::new()), lease).await?;
        self.wait_for_turn(caller, &name, &place).await?;
        let own = RangeRequest { key: place.key.clone(), ..RangeRequest::default() };
        let own = self.range(caller, own).await?;
        place.leaving.stay();
        if own.kvs.is_empty() {
            return Err(Status::unknown("mutex: session is expired"));
        }
        Ok(LockResponse { header: own.header, key: place.key })
    }

    pub(in crate::wire) async fn unlock(
        &self,
        caller: &Caller,
        request: UnlockRequest,
    ) -> Result<UnlockResponse, Status> {
        let delete = DeleteRangeRequest { key: request.key, ..DeleteRangeRequest::default() };
        Ok(UnlockResponse { header: self.delete_range(caller, delete).await?.header })
    }
}
