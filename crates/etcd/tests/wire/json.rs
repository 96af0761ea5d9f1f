//! The gateway, and limits of messages.

use http_body_util::BodyExt as _;
use rowplane_etcd::wire::messages::{
    PutRequest, PutResponse, RangeRequest, RangeResponse, RangeStreamResponse, SortTarget,
};
use serde_json::{Value, json};

use crate::support::{begin, call, post, post_as, refusal, server};

#[tokio::test]
async fn etcd_46_requests_and_answers_are_etcds_json() {
    let server = server();
    let put = post(&server, "kv/put", json!({"key": "Zm9v", "value": "YmFy"})).await;
    assert_eq!(put["header"]["revision"], "2");
    let found = post(&server, "kv/range", json!({"key": "Zm9v"})).await;
    let kv =
        json!({"key": "Zm9v", "create_revision": "2", "mod_revision": "2", "version": "1", "value": "YmFy"});
    assert_eq!((&found["kvs"], &found["count"]), (&json!([kv]), &json!("1")));
    let txn = json!({
        "compare": [{"result": "EQUAL", "target": "CREATE", "key": "Zm9v", "createRevision": "2"}],
        "success": [{"requestPut": {"key": "Zm9v", "value": "Yg==", "prevKv": true}}],
    });
    let done = post(&server, "kv/txn", txn).await;
    assert_eq!(done["succeeded"], true);
    assert_eq!(done["responses"][0]["response_put"]["prev_kv"]["value"], "YmFy");
    let gone = post(&server, "kv/deleterange", json!({"key": "Zm9v"})).await;
    assert_eq!((&gone["deleted"], &gone["header"]["revision"]), (&json!("1"), &json!("4")));
}

#[tokio::test]
async fn etcd_46_refusals_have_the_status_of_their_code() {
    let server = server();
    let (status, answer) = post_as(&server, "lease/revoke", json!({"ID": "99"}), "").await;
    let text = "etcdserver: requested lease not found";
    assert_eq!((status, answer), (404, json!({"code": 5, "message": text, "details": [], "error": text})));
    let future = refusal(&server, "kv/range", json!({"key": "YQ==", "revision": 9}), "").await;
    assert_eq!(future, (11, "etcdserver: mvcc: required revision is a future revision".to_owned()));
    assert_eq!(refusal(&server, "kv/range", json!({}), "").await.1, "etcdserver: key is not provided");
    assert_eq!(refusal(&server, "kv/range", json!({"key": "*"}), "").await.0, 3);
    assert_eq!(refusal(&server, "kv/range", json!([]), "").await.0, 3);
    let response = begin(&server, "kv/range", "{", "").await;
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn etcd_46_streams_have_a_line_for_each_answer() {
    let server = server();
    let watched = begin(&server, "watch", r#"{"create_request":{"key":"YQ=="}}"#, "").await;
    assert_eq!(watched.status(), 200);
    let mut body = watched.into_body();
    let mut line = async || -> Value {
        let frame = body.frame().await.expect("a frame").expect("a frame").into_data().expect("data");
        assert_eq!(frame.last(), Some(&b'\n'));
        serde_json::from_slice(&frame).expect("JSON")
    };
    assert_eq!(line().await["result"]["created"], true);
    post(&server, "kv/put", json!({"key": "YQ==", "value": "Yg=="})).await;
    let event = line().await;
    assert_eq!(event["result"]["events"][0]["kv"]["value"], "Yg==", "{event}");
    post(&server, "lease/grant", json!({"ID": 7, "TTL": 60})).await;
    let kept = begin(&server, "lease/keepalive", r#"{"ID":"7"} {"ID":8}"#, "").await;
    let text = kept.into_body().collect().await.expect("a body").to_bytes();
    let lines: Vec<Value> = String::from_utf8_lossy(&text)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((&lines[0]["result"]["TTL"], &lines[1]["result"]["TTL"]), (&json!("60"), &Value::Null));
    assert_eq!(begin(&server, "watch", "no", "").await.status(), 400);
}

#[tokio::test]
async fn etcd_17_long_messages_are_refused_in_etcds_words() {
    let server = server();
    let put = |length: usize| PutRequest {
        key: "a".into(),
        value: vec![b'x'; length].into(),
        ..Default::default()
    };
    let put = async |length| call::<_, PutResponse>(&server, "etcdserverpb.KV/Put", &put(length)).await.1;
    assert_eq!(put((1536 << 10) - 100).await.0, 0);
    assert_eq!(put((1536 << 10) + 1).await, (3, "etcdserver: request is too large".to_owned()));
    let (code, text) = put(3 << 20).await;
    assert_eq!((code, text.as_str()), (8, "grpc: received message larger than max (3145736 vs. 2097152)"));
}

#[tokio::test]
async fn etcd_18_a_stream_of_a_range_is_the_range() {
    let server = server();
    for number in 0..300 {
        let put = PutRequest {
            key: format!("k{number:03}").into(),
            value: vec![b'x'; 1000].into(),
            ..Default::default()
        };
        assert_eq!(call::<_, PutResponse>(&server, "etcdserverpb.KV/Put", &put).await.1.0, 0);
    }
    let all = RangeRequest { key: "k".into(), range_end: "l".into(), ..Default::default() };
    let (whole, _) = call::<_, RangeResponse>(&server, "etcdserverpb.KV/Range", &all).await;
    let (chunks, status) = call::<_, RangeStreamResponse>(&server, "etcdserverpb.KV/RangeStream", &all).await;
    assert_eq!(status.0, 0);
    let chunks: Vec<RangeResponse> = chunks.into_iter().filter_map(|chunk| chunk.range_response).collect();
    let (last, before) = chunks.split_last().expect("chunks");
    assert!(!before.is_empty() && before.iter().all(|chunk| chunk.header.is_none() && chunk.count == 0));
    assert_eq!((last.count, &last.header), (300, &whole[0].header));
    let kvs: Vec<_> = chunks.iter().flat_map(|chunk| chunk.kvs.clone()).collect();
    assert_eq!(kvs, whole[0].kvs);
    let sorted = RangeRequest { sort_target: SortTarget::Value as i32, ..all };
    let refused = call::<_, RangeStreamResponse>(&server, "etcdserverpb.KV/RangeStream", &sorted).await.1;
    assert_eq!(refused, (12, "RangeStream does not support custom sort orders".to_owned()));
}

#[tokio::test]
async fn methods_that_do_not_exist_are_unimplemented() {
    let server = server();
    let (_, status) = call::<_, PutResponse>(&server, "etcdserverpb.KV/Other", &PutRequest::default()).await;
    assert_eq!(status, (12, "unknown method Other for service etcdserverpb.KV".to_owned()));
    assert!(server.opened().is_none(), "no store is needed for that");
}
