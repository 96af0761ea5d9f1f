//! The service Cluster. This server is the only member that is listed; which others there are is the database's.

use tonic::Status;

use crate::wire::exchange::Caller;
use crate::wire::messages::{
    Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest,
    MemberUpdateResponse, ResponseHeader,
};
use crate::wire::server::Server;

impl Server {
    pub(in crate::wire) async fn member_list(
        &self,
        caller: &Caller,
        _: MemberListRequest,
    ) -> Result<MemberListResponse, Status> {
        let etcd = self.etcd().await?;
        self.who(etcd, caller)?;
        let header = etcd.newest_header();
        let client_urls = match (&self.options().advertised[..], &caller.authority) {
            ([], Some(authority)) => vec![format!("{}://{authority}", caller.scheme)],
            (advertised, _) => advertised.to_vec(),
        };
        let member = Member {
            id: header.member_id,
            name: self.options().name.clone(),
            // There are no peers; kubeadm and Patroni look for the field.
            peer_urls: client_urls.clone(),
            client_urls,
            is_learner: false,
        };
        let header = Some(ResponseHeader { revision: 0, ..header });
        Ok(MemberListResponse { header, members: vec![member] })
    }

    pub(in crate::wire) async fn member_add(
        &self,
        caller: &Caller,
        _: MemberAddRequest,
    ) -> Result<MemberAddResponse, Status> {
        self.require_root(self.etcd().await?, caller)?;
        Err(membership())
    }

    pub(in crate::wire) async fn member_remove(
        &self,
        caller: &Caller,
        request: MemberRemoveRequest,
    ) -> Result<MemberRemoveResponse, Status> {
        Err(self.refuse_change(caller, request.id).await)
    }

    pub(in crate::wire) async fn member_update(
        &self,
        caller: &Caller,
        request: MemberUpdateRequest,
    ) -> Result<MemberUpdateResponse, Status> {
        Err(self.refuse_change(caller, request.id).await)
    }

    pub(in crate::wire) async fn member_promote(
        &self,
        caller: &Caller,
        request: MemberPromoteRequest,
    ) -> Result<MemberPromoteResponse, Status> {
        Err(self.refuse_change(caller, request.id).await)
    }

    async fn refuse_change(&self, caller: &Caller, member: u64) -> Status {
        let own = async {
            let etcd = self.etcd().await?;
            self.require_root(etcd, caller)?;
            Ok(etcd.newest_header().member_id)
        };
        match own.await {
            Err(status) => status,
            Ok(own) if own == member => membership(),
            Ok(_) => Status::not_found("etcdserver: member not found"),
        }
    }
}

fn membership() -> Status {
    Status::unimplemented("rowplane: membership is the database's")
}
