//! Locks and elections.

use bytes::Bytes;

use super::{KeyValue, ResponseHeader, messages};

messages! {
    LockRequest {
        #[prost(bytes = "bytes", tag = "1")] name: Bytes,
        #[prost(int64, tag = "2")] lease: i64,
    }

    LockResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        /// The key that exists for as long as the lock is held.
        #[prost(bytes = "bytes", tag = "2")] key: Bytes,
    }

    UnlockRequest {
        #[prost(bytes = "bytes", tag = "1")] key: Bytes,
    }

    UnlockResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    CampaignRequest {
        #[prost(bytes = "bytes", tag = "1")] name: Bytes,
        #[prost(int64, tag = "2")] lease: i64,
        #[prost(bytes = "bytes", tag = "3")] value: Bytes,
    }

    CampaignResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, optional, tag = "2")] leader: Option<LeaderKey>,
    }

    /// The key of who was elected, with the revision that created it.
    LeaderKey {
        #[prost(bytes = "bytes", tag = "1")] name: Bytes,
        #[prost(bytes = "bytes", tag = "2")] key: Bytes,
        #[prost(int64, tag = "3")] rev: i64,
        #[prost(int64, tag = "4")] lease: i64,
    }

    LeaderRequest {
        #[prost(bytes = "bytes", tag = "1")] name: Bytes,
    }

    LeaderResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, optional, tag = "2")] kv: Option<KeyValue>,
    }

    ResignRequest {
        #[prost(message, optional, tag = "1")] leader: Option<LeaderKey>,
    }

    ResignResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    ProclaimRequest {
        #[prost(message, optional, tag = "1")] leader: Option<LeaderKey>,
        #[prost(bytes = "bytes", tag = "2")] value: Bytes,
    }

    ProclaimResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }
}
