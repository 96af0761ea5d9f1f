//! Keys, and what the service KV does with them.

use bytes::Bytes;

use super::{ResponseHeader, enumeration, messages, oneof};

enumeration! {
    /// The order of the keys of a range.
    SortOrder { None = 0 as "NONE", Ascend = 1 as "ASCEND", Descend = 2 as "DESCEND" }
}

enumeration! {
    /// The property that keys are sorted by.
    SortTarget {
        Key = 0 as "KEY", Version = 1 as "VERSION", Create = 2 as "CREATE", Mod = 3 as "MOD", Value = 4 as "VALUE",
    }
}

enumeration! {
    /// How the key has to compare with what the client tells.
    CompareResult {
        Equal = 0 as "EQUAL", Greater = 1 as "GREATER", Less = 2 as "LESS", NotEqual = 3 as "NOT_EQUAL",
    }
}

enumeration! {
    /// The property that is compared.
    CompareTarget {
        Version = 0 as "VERSION", Create = 1 as "CREATE", Mod = 2 as "MOD", Value = 3 as "VALUE", Lease = 4 as "LEASE",
    }
}

oneof! {
    /// An operation of a transaction.
    RequestOpKind {
        #[prost(message, tag = "1")] Range as "request_range" (RangeRequest),
        #[prost(message, tag = "2")] Put as "request_put" (PutRequest),
        #[prost(message, tag = "3")] DeleteRange as "request_delete_range" (DeleteRangeRequest),
        #[prost(message, tag = "4")] Txn as "request_txn" (TxnRequest),
    }
}

oneof! {
    /// The answer of an operation of a transaction.
    ResponseOpKind {
        #[prost(message, tag = "1")] Range as "response_range" (RangeResponse),
        #[prost(message, tag = "2")] Put as "response_put" (PutResponse),
        #[prost(message, tag = "3")] DeleteRange as "response_delete_range" (DeleteRangeResponse),
        #[prost(message, tag = "4")] Txn as "response_txn" (TxnResponse),
    }
}

oneof! {
    /// The value that the target of a compare is compared with. None is the zero of the target.
    TargetUnion {
        #[prost(int64, tag = "4")] Version as "version" (i64),
        #[prost(int64, tag = "5")] CreateRevision as "create_revision" (i64),
        #[prost(int64, tag = "6")] ModRevision as "mod_revision" (i64),
        #[prost(bytes = "bytes", tag = "7")] Value as "value" (Bytes),
        #[prost(int64, tag = "8")] Lease as "lease" (i64),
    }
}

messages! {
    /// A version of a key. A deletion has only its key and mod_revision.
    KeyValue {
        #[prost(bytes = "bytes", tag = "1")] key: Bytes,
        #[prost(int64, tag = "2")] create_revision: i64,
        #[prost(int64, tag = "3")] mod_revision: i64,
        /// The number of puts since the key was created.
        #[prost(int64, tag = "4")] version: i64,
        #[prost(bytes = "bytes", tag = "5")] value: Bytes,
        #[prost(int64, tag = "6")] lease: i64,
    }

    /// A read of a key, or of the keys from `key` to before `range_end`.
    RangeRequest {
        #[prost(bytes = "bytes", tag = "1")] key: Bytes,
        #[prost(bytes = "bytes", tag = "2")] range_end: Bytes,
        #[prost(int64, tag = "3")] limit: i64,
        #[prost(int64, tag = "4")] revision: i64,
        #[prost(int32, tag = "5")] sort_order in SortOrder: i32,
        #[prost(int32, tag = "6")] sort_target in SortTarget: i32,
        #[prost(bool, tag = "7")] serializable: bool,
        #[prost(bool, tag = "8")] keys_only: bool,
        #[prost(bool, tag = "9")] count_only: bool,
        #[prost(int64, tag = "10")] min_mod_revision: i64,
        #[prost(int64, tag = "11")] max_mod_revision: i64,
        #[prost(int64, tag = "12")] min_create_revision: i64,
        #[prost(int64, tag = "13")] max_create_revision: i64,
    }

    RangeResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] kvs: Vec<KeyValue>,
        #[prost(bool, tag = "3")] more: bool,
        #[prost(int64, tag = "4")] count: i64,
    }

    /// A chunk of a range. Only the last one has a header and a count.
    RangeStreamResponse {
        #[prost(message, optional, tag = "1")] range_response: Option<RangeResponse>,
    }

    PutRequest {
        #[prost(bytes = "bytes", tag = "1")] key: Bytes,
        #[prost(bytes = "bytes", tag = "2")] value: Bytes,
        #[prost(int64, tag = "3")] lease: i64,
        #[prost(bool, tag = "4")] prev_kv: bool,
        #[prost(bool, tag = "5")] ignore_value: bool,
        #[prost(bool, tag = "6")] ignore_lease: bool,
    }

    PutResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, optional, tag = "2")] prev_kv: Option<KeyValue>,
    }

    DeleteRangeRequest {
        #[prost(bytes = "bytes", tag = "1")] key: Bytes,
        #[prost(bytes = "bytes", tag = "2")] range_end: Bytes,
        #[prost(bool, tag = "3")] prev_kv: bool,
    }

    DeleteRangeResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(int64, tag = "2")] deleted: i64,
        #[prost(message, repeated, tag = "3")] prev_kvs: Vec<KeyValue>,
    }

    RequestOp {
        #[prost(oneof = "RequestOpKind", tags = "1, 2, 3, 4")] request: Option<RequestOpKind>,
    }

    ResponseOp {
        #[prost(oneof = "ResponseOpKind", tags = "1, 2, 3, 4")] response: Option<ResponseOpKind>,
    }

    Compare {
        #[prost(int32, tag = "1")] result in CompareResult: i32,
        #[prost(int32, tag = "2")] target in CompareTarget: i32,
        #[prost(bytes = "bytes", tag = "3")] key: Bytes,
        #[prost(oneof = "TargetUnion", tags = "4, 5, 6, 7, 8")] target_union: Option<TargetUnion>,
        #[prost(bytes = "bytes", tag = "64")] range_end: Bytes,
    }

    TxnRequest {
        #[prost(message, repeated, tag = "1")] compare: Vec<Compare>,
        #[prost(message, repeated, tag = "2")] success: Vec<RequestOp>,
        #[prost(message, repeated, tag = "3")] failure: Vec<RequestOp>,
    }

    TxnResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(bool, tag = "2")] succeeded: bool,
        #[prost(message, repeated, tag = "3")] responses: Vec<ResponseOp>,
    }

    CompactionRequest {
        #[prost(int64, tag = "1")] revision: i64,
        /// Whether the answer waits until the rows are gone.
        #[prost(bool, tag = "2")] physical: bool,
    }

    CompactionResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }
}
