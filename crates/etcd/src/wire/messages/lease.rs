//! Leases.

use bytes::Bytes;

use super::{ResponseHeader, messages};

messages! {
    LeaseGrantRequest {
        #[prost(int64, tag = "1")] ttl as "TTL": i64,
        #[prost(int64, tag = "2")] id as "ID": i64,
    }

    LeaseGrantResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(int64, tag = "2")] id as "ID": i64,
        #[prost(int64, tag = "3")] ttl as "TTL": i64,
        #[prost(string, tag = "4")] error: String,
    }

    LeaseRevokeRequest {
        #[prost(int64, tag = "1")] id as "ID": i64,
    }

    LeaseRevokeResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    LeaseKeepAliveRequest {
        #[prost(int64, tag = "1")] id as "ID": i64,
    }

    /// The TTL is 0 if there is no such lease.
    LeaseKeepAliveResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(int64, tag = "2")] id as "ID": i64,
        #[prost(int64, tag = "3")] ttl as "TTL": i64,
    }

    LeaseTimeToLiveRequest {
        #[prost(int64, tag = "1")] id as "ID": i64,
        #[prost(bool, tag = "2")] keys: bool,
    }

    /// The TTL is -1 if there is no such lease.
    LeaseTimeToLiveResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(int64, tag = "2")] id as "ID": i64,
        #[prost(int64, tag = "3")] ttl as "TTL": i64,
        #[prost(int64, tag = "4")] granted_ttl as "grantedTTL": i64,
        #[prost(bytes = "bytes", repeated, tag = "5")] keys: Vec<Bytes>,
    }

    LeaseLeasesRequest {}

    LeaseStatus {
        #[prost(int64, tag = "1")] id as "ID": i64,
    }

    LeaseLeasesResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] leases: Vec<LeaseStatus>,
    }
}
