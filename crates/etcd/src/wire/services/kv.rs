//! The service KV.

use futures_util::stream::StreamExt as _;
use tonic::Status;

use crate::wire::exchange::{Answers, Caller};
use crate::wire::messages::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, RangeStreamResponse, RequestOpKind, TxnRequest, TxnResponse,
};
use crate::wire::server::Server;

use super::access::Access;
use super::maintenance::Writes;

impl Server {
    pub(in crate::wire) async fn range(
        &self,
        caller: &Caller,
        request: RangeRequest,
    ) -> Result<RangeResponse, Status> {
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, Writes::No).await?;
        self.permit(etcd, caller, Access::read(&request.key, &request.range_end)).await?;
        Ok(etcd.range(request).await?)
    }

    pub(in crate::wire) async fn range_stream(
        &self,
        caller: &Caller,
        request: RangeRequest,
    ) -> Result<Answers<RangeStreamResponse>, Status> {
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, Writes::No).await?;
        self.permit(etcd, caller, Access::read(&request.key, &request.range_end)).await?;
        let chunks = etcd.range_stream(request).await?;
        Ok(chunks.map(|chunk| chunk.map_err(Status::from)).boxed())
    }

    pub(in crate::wire) async fn put(
        &self,
        caller: &Caller,
        request: PutRequest,
    ) -> Result<PutResponse, Status> {
        self.check_length(&request)?;
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, Writes::More).await?;
        self.permit(etcd, caller, Access::put(&request)).await?;
        Ok(etcd.put(request).await?)
    }

    pub(in crate::wire) async fn delete_range(
        &self,
        caller: &Caller,
        request: DeleteRangeRequest,
    ) -> Result<DeleteRangeResponse, Status> {
        self.check_length(&request)?;
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, Writes::No).await?;
        self.permit(etcd, caller, Access::delete(&request)).await?;
        Ok(etcd.delete_range(request).await?)
    }

    pub(in crate::wire) async fn txn(
        &self,
        caller: &Caller,
        request: TxnRequest,
    ) -> Result<TxnResponse, Status> {
        self.check_length(&request)?;
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, if puts(&request) { Writes::More } else { Writes::No }).await?;
        self.permit(etcd, caller, Access::txn(&request)).await?;
        Ok(etcd.txn(request).await?)
    }

    pub(in crate::wire) async fn compact(
        &self,
        caller: &Caller,
        request: CompactionRequest,
    ) -> Result<CompactionResponse, Status> {
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, Writes::No).await?;
        self.require_root(etcd, caller)?;
        Ok(etcd.compact(request).await?)
    }
}

/// Whether a transaction may put something.
fn puts(txn: &TxnRequest) -> bool {
    let mut operations = txn.success.iter().chain(&txn.failure);
    operations.any(|operation| match &operation.request {
        Some(RequestOpKind::Put(_)) => true,
        Some(RequestOpKind::Txn(nested)) => puts(nested),
        _ => false,
    })
}
