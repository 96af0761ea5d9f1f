//! Messages of the gateway's documentation, both ways.

use serde_json::json;

use super::*;
use crate::wire::messages::{RangeRequest, TxnRequest, WatchRequest, WatchResponse};

fn read<T: Json>(value: Value) -> Result<T, Invalid> {
    T::from_value(&value, ("message", &[]))
}

/// A message, as it is printed again.
fn printed<T: Json>(value: Value) -> Value {
    read::<T>(value).unwrap().to_value(&[])
}

#[test]
fn names_and_numbers_come_in_either_form() {
    let range = json!({"key": "Zm9v", "rangeEnd": "_-8", "limit": 5, "revision": "7", "sortTarget": 3, "other": [1],
        "sort_order": "DESCEND", "count_only": true, "keys_only": null});
    let expected = json!({"key": "Zm9v", "range_end": "/+8=", "limit": "5", "revision": "7", "sort_order": "DESCEND",
        "sort_target": "MOD", "count_only": true});
    assert_eq!(printed::<RangeRequest>(range), expected);
}

#[test]
fn one_variant_of_a_field_is_read() {
    let txn = json!({
        "compare": [{"target": "CREATE", "key": "YQ==", "createRevision": "0"}],
        "success": [{"requestPut": {"key": "YQ==", "value": "Yg=="}}, {}],
        "failure": [{"request_txn": {"failure": [{"request_delete_range": {"key": "YQ=="}}]}}],
    });
    let expected = json!({
        "compare": [{"target": "CREATE", "key": "YQ==", "create_revision": "0"}],
        "success": [{"request_put": {"key": "YQ==", "value": "Yg=="}}, {}],
        "failure": [{"request_txn": {"failure": [{"request_delete_range": {"key": "YQ=="}}]}}],
    });
    assert_eq!(printed::<TxnRequest>(txn), expected);
    let watch = json!({"create_request": {"key": "YQ==", "filters": ["NODELETE", 0]}});
    let expected = json!({"create_request": {"key": "YQ==", "filters": ["NODELETE", "NOPUT"]}});
    assert_eq!(printed::<WatchRequest>(watch), expected);
    let event = json!({"events": [{"kv": {"key": "YQ=="}}, {"type": "DELETE"}], "watch_id": "-1"});
    let expected = json!({"watch_id": "-1", "events": [{"kv": {"key": "YQ=="}}, {"type": "DELETE"}]});
    assert_eq!(printed::<WatchResponse>(event), expected);
}

#[test]
fn values_of_another_type_are_refused() {
    for range in [
        json!({"key": "*"}),
        json!({"key": 1}),
        json!({"limit": "x"}),
        json!({"limit": 1.5}),
        json!({"sort_order": "UP"}),
        json!({"count_only": "true"}),
        json!({"limit": "9223372036854775808"}),
    ] {
        assert!(read::<RangeRequest>(range.clone()).is_err(), "{range}");
    }
    assert!(read::<TxnRequest>(json!({"compare": {}})).is_err());
    assert!(read::<TxnRequest>(json!({"success": [{"request_put": {"key": []}}]})).is_err());
}
