//! Requests of operators.

use bytes::Bytes;

use super::{ResponseHeader, enumeration, messages};

enumeration! {
    AlarmAction { Get = 0 as "GET", Activate = 1 as "ACTIVATE", Deactivate = 2 as "DEACTIVATE" }
}

enumeration! {
    AlarmType { None = 0 as "NONE", NoSpace = 1 as "NOSPACE", Corrupt = 2 as "CORRUPT" }
}

enumeration! {
    DowngradeAction { Validate = 0 as "VALIDATE", Enable = 1 as "ENABLE", Cancel = 2 as "CANCEL" }
}

messages! {
    AlarmRequest {
        #[prost(int32, tag = "1")] action in AlarmAction: i32,
        #[prost(uint64, tag = "2")] member_id as "memberID": u64,
        #[prost(int32, tag = "3")] alarm in AlarmType: i32,
    }

    AlarmMember {
        #[prost(uint64, tag = "1")] member_id as "memberID": u64,
        #[prost(int32, tag = "2")] alarm in AlarmType: i32,
    }

    AlarmResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] alarms: Vec<AlarmMember>,
    }

    StatusRequest {}

    StatusResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(string, tag = "2")] version: String,
        #[prost(int64, tag = "3")] db_size as "dbSize": i64,
        /// The member ID of the leader.
        #[prost(uint64, tag = "4")] leader: u64,
        #[prost(uint64, tag = "5")] raft_index as "raftIndex": u64,
        #[prost(uint64, tag = "6")] raft_term as "raftTerm": u64,
        #[prost(uint64, tag = "7")] raft_applied_index as "raftAppliedIndex": u64,
        #[prost(string, repeated, tag = "8")] errors: Vec<String>,
        #[prost(int64, tag = "9")] db_size_in_use as "dbSizeInUse": i64,
        #[prost(bool, tag = "10")] is_learner as "isLearner": bool,
        #[prost(string, tag = "11")] storage_version as "storageVersion": String,
        #[prost(int64, tag = "12")] db_size_quota as "dbSizeQuota": i64,
        #[prost(message, optional, tag = "13")] downgrade_info as "downgradeInfo": Option<DowngradeInfo>,
    }

    DowngradeInfo {
        #[prost(bool, tag = "1")] enabled: bool,
        #[prost(string, tag = "2")] target_version as "targetVersion": String,
    }

    DefragmentRequest {}

    DefragmentResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    HashRequest {}

    HashResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(uint32, tag = "2")] hash: u32,
    }

    HashKvRequest {
        #[prost(int64, tag = "1")] revision: i64,
    }

    HashKvResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(uint32, tag = "2")] hash: u32,
        #[prost(int64, tag = "3")] compact_revision: i64,
        #[prost(int64, tag = "4")] hash_revision: i64,
    }

    SnapshotRequest {}

    /// A part of a snapshot's file; the last one is the SHA-256 of all others.
    SnapshotResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(uint64, tag = "2")] remaining_bytes: u64,
        #[prost(bytes = "bytes", tag = "3")] blob: Bytes,
        #[prost(string, tag = "4")] version: String,
    }

    MoveLeaderRequest {
        #[prost(uint64, tag = "1")] target_id as "targetID": u64,
    }

    MoveLeaderResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    DowngradeRequest {
        #[prost(int32, tag = "1")] action in DowngradeAction: i32,
        #[prost(string, tag = "2")] version: String,
    }

    DowngradeResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(string, tag = "2")] version: String,
    }
}
