//! Watches, many on one stream.

use bytes::Bytes;

use super::{KeyValue, ResponseHeader, enumeration, messages, oneof};

enumeration! {
    EventType { Put = 0 as "PUT", Delete = 1 as "DELETE" }
}

enumeration! {
    /// Events that a watch leaves out.
    FilterType { NoPut = 0 as "NOPUT", NoDelete = 1 as "NODELETE" }
}

oneof! {
    /// The wish of a request on a stream of watches.
    WatchRequestKind {
        #[prost(message, tag = "1")] Create as "create_request" (WatchCreateRequest),
        #[prost(message, tag = "2")] Cancel as "cancel_request" (WatchCancelRequest),
        #[prost(message, tag = "3")] Progress as "progress_request" (WatchProgressRequest),
    }
}

messages! {
    Event {
        #[prost(int32, tag = "1")] kind as "type" in EventType: i32,
        #[prost(message, optional, tag = "2")] kv: Option<KeyValue>,
        #[prost(message, optional, tag = "3")] prev_kv: Option<KeyValue>,
    }

    WatchRequest {
        #[prost(oneof = "WatchRequestKind", tags = "1, 2, 3")] request: Option<WatchRequestKind>,
    }

    WatchCreateRequest {
        #[prost(bytes = "bytes", tag = "1")] key: Bytes,
        #[prost(bytes = "bytes", tag = "2")] range_end: Bytes,
        #[prost(int64, tag = "3")] start_revision: i64,
        #[prost(bool, tag = "4")] progress_notify: bool,
        #[prost(int32, repeated, tag = "5")] filters in FilterType: Vec<i32>,
        #[prost(bool, tag = "6")] prev_kv: bool,
        #[prost(int64, tag = "7")] watch_id: i64,
        /// Long responses come in parts.
        #[prost(bool, tag = "8")] fragment: bool,
    }

    WatchCancelRequest {
        #[prost(int64, tag = "1")] watch_id: i64,
    }

    WatchProgressRequest {}

    WatchResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(int64, tag = "2")] watch_id: i64,
        #[prost(bool, tag = "3")] created: bool,
        #[prost(bool, tag = "4")] canceled: bool,
        #[prost(int64, tag = "5")] compact_revision: i64,
        #[prost(string, tag = "6")] cancel_reason: String,
        /// Other parts of the same response follow.
        #[prost(bool, tag = "7")] fragment: bool,
        #[prost(message, repeated, tag = "11")] events: Vec<Event>,
    }
}
