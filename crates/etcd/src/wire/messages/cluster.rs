//! Members of the cluster: the servers.

use super::{ResponseHeader, messages};

messages! {
    Member {
        #[prost(uint64, tag = "1")] id as "ID": u64,
        #[prost(string, tag = "2")] name: String,
        #[prost(string, repeated, tag = "3")] peer_urls as "peerURLs": Vec<String>,
        #[prost(string, repeated, tag = "4")] client_urls as "clientURLs": Vec<String>,
        #[prost(bool, tag = "5")] is_learner as "isLearner": bool,
    }

    MemberAddRequest {
        #[prost(string, repeated, tag = "1")] peer_urls as "peerURLs": Vec<String>,
        #[prost(bool, tag = "2")] is_learner as "isLearner": bool,
    }

    MemberAddResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, optional, tag = "2")] member: Option<Member>,
        #[prost(message, repeated, tag = "3")] members: Vec<Member>,
    }

    MemberRemoveRequest {
        #[prost(uint64, tag = "1")] id as "ID": u64,
    }

    MemberRemoveResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] members: Vec<Member>,
    }

    MemberUpdateRequest {
        #[prost(uint64, tag = "1")] id as "ID": u64,
        #[prost(string, repeated, tag = "2")] peer_urls as "peerURLs": Vec<String>,
    }

    MemberUpdateResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] members: Vec<Member>,
    }

    MemberListRequest {
        #[prost(bool, tag = "1")] linearizable: bool,
    }

    MemberListResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] members: Vec<Member>,
    }

    MemberPromoteRequest {
        #[prost(uint64, tag = "1")] id as "ID": u64,
    }

    MemberPromoteResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] members: Vec<Member>,
    }
}
