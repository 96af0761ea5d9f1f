//! The service Lease.

use futures_util::stream::StreamExt as _;
use tonic::Status;

use crate::wire::exchange::{Answers, Caller, Requests};
use crate::wire::messages::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesRequest,
    LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseTimeToLiveRequest,
    LeaseTimeToLiveResponse, PermissionType,
};
use crate::wire::server::Server;

use super::access::Access;
use super::maintenance::Writes;

impl Server {
    pub(in crate::wire) async fn lease_grant(
        &self,
        caller: &Caller,
        request: LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, Status> {
        let etcd = self.etcd().await?;
        self.check_alarms(etcd, Writes::More).await?;
        self.who(etcd, caller)?;
        Ok(etcd.lease_grant(request).await?)
    }

    pub(in crate::wire) async fn lease_revoke(
        &self,
        caller: &Caller,
        request: LeaseRevokeRequest,
    ) -> Result<LeaseRevokeResponse, Status> {
        let etcd = self.etcd().await?;
        self.permit(etcd, caller, Access::lease(request.id)).await?;
        Ok(etcd.lease_revoke(request).await?)
    }

    /// Each message is answered before the next one is read.
    pub(in crate::wire) async fn lease_keep_alive(
        &self,
        caller: Caller,
        requests: Requests<LeaseKeepAliveRequest>,
    ) -> Result<Answers<LeaseKeepAliveResponse>, Status> {
        let server = self.clone();
        let answers = requests.then(move |request| {
            let (server, caller) = (server.clone(), caller.clone());
            async move {
                let (etcd, request) = (server.etcd().await?, request?);
                server.permit(etcd, &caller, Access::lease(request.id)).await?;
                Ok(etcd.lease_keep_alive(request).await?)
            }
        });
        Ok(answers.boxed())
    }

    pub(in crate::wire) async fn lease_time_to_live(
        &self,
        caller: &Caller,
        request: LeaseTimeToLiveRequest,
    ) -> Result<LeaseTimeToLiveResponse, Status> {
        let etcd = self.etcd().await?;
        if let Some(who) = self.who(etcd, caller)?.filter(|_| request.keys) {
            self.permit_lease(etcd, &who, request.id, PermissionType::Read).await?;
        }
        Ok(etcd.lease_time_to_live(request).await?)
    }

    pub(in crate::wire) async fn lease_leases(
        &self,
        caller: &Caller,
        _: LeaseLeasesRequest,
    ) -> Result<LeaseLeasesResponse, Status> {
        let etcd = self.etcd().await?;
        self.who(etcd, caller)?;
        Ok(etcd.lease_leases().await?)
    }
}
