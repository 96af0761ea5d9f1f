//! What stands in messages of protobuf, and in bodies without a type; assertions of `docs/spec/wire.md` by number.

use http::Method;
use rowplane::codec::protobuf::{Envelope, encode};
use rowplane::schema::builtin;
use rowplane::schema::names::Gvk;
use serde_json::{Value, json};

use crate::support::client::{Answer, Request};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, deployment};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PODS: &str = "/api/v1/namespaces/t/pods";

on_every_store! {
    wire_11_a_body_without_a_type,
    wire_34_a_string_of_digits_stays_one,
    wire_39_what_is_no_envelope_is_told_in_hex,
    wire_40_numbers_of_a_list_are_apart,
    wire_41_times_and_integers,
}

fn message(gvk: &Gvk, object: &Value) -> Vec<u8> {
    let kind = builtin::kind(gvk).expect("a kind");
    let raw = encode(&kind, &serde_json::from_value(object.clone()).expect("an object"));
    Envelope::wrap(gvk, &raw.expect("of its types"))
}

fn post(server: &TestServer, path: &str, body: impl Into<bytes::Bytes>) -> Request {
    server.request(Method::POST, path).body(PROTOBUF, body)
}

#[track_caller]
fn has(answer: &Answer, part: &[u8]) {
    assert!(answer.body.windows(part.len()).any(|window| window == part), "{part:02x?}: {answer:?}");
}

async fn wire_11_a_body_without_a_type(setup: Setup) {
    let server = setup.start().await;
    let body = config_map("a", json!({"k": "v"})).to_string();
    let created = server.request(Method::POST, CONFIGMAPS).untyped(body).await.expect(201);
    assert_eq!(created["data"], json!({"k": "v"}));
}

/// No field of a port takes such a string, so that the refusal tells what it is.
async fn wire_34_a_string_of_digits_stays_one(setup: Setup) {
    let server = setup.start().await;
    let path = "/api/v1/namespaces/t/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"},
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": "80"}]}});
    for refused in [
        server.post(path, &service).await,
        post(&server, path, message(&Gvk::fixed("v1", "Service"), &service)).await,
    ] {
        let cause = &refused.failure()["details"]["causes"][0];
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(cause["field"], "spec.ports[0].targetPort", "{refused:?}");
        assert!(cause["message"].as_str().is_some_and(|text| text.contains(r#""80""#)), "{refused:?}");
    }
}

async fn wire_39_what_is_no_envelope_is_told_in_hex(setup: Setup) {
    let server = setup.start().await;
    let refused = post(&server, CONFIGMAPS, (0..40).collect::<Vec<u8>>()).await;
    refused.bad_request(
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a \
         protobuf message, expected prefix [107 56 115 0] \
         (000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d ...)",
    );
}

async fn wire_40_numbers_of_a_list_are_apart(setup: Setup) {
    let server = setup.start().await;
    // metadata.name, then spec: one container, and securityContext.supplementalGroups packed.
    let container = b"\x12\x06\x0a\x01c\x12\x01i";
    let packed = b"\x72\x05\x22\x03\x01\x02\x03";
    let spec = [&container[..], packed].concat();
    let raw = [&b"\x0a\x03\x0a\x01p\x12"[..], &[spec.len() as u8], &spec].concat();
    let created = post(&server, PODS, Envelope::wrap(&Gvk::fixed("v1", "Pod"), &raw)).await.expect(201);
    assert_eq!(created["spec"]["securityContext"]["supplementalGroups"], json!([1, 2, 3]));
    let answer = server.get(format!("{PODS}/p")).accept(PROTOBUF).await;
    has(&answer, b"\x20\x01\x20\x02\x20\x03");
    assert!(!answer.body.windows(5).any(|window| window == b"\x22\x03\x01\x02\x03"), "{answer:?}");
}

async fn wire_41_times_and_integers(setup: Setup) {
    let server = setup.start().await;
    // The template's creationTimestamp is no pointer: zero, and written.
    let path = "/apis/apps/v1/namespaces/t/deployments";
    server.post(path, &deployment("d", json!({}))).await.expect(201);
    let answer = server.get(format!("{path}/d")).accept(PROTOBUF).await;
    has(&answer, b"\x38\x00\x42\x00\x5a");

    let path = "/api/v1/namespaces/t/events";
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "t", "name": "p"},
        "firstTimestamp": "1970-01-01T00:00:00Z", "count": -2});
    for (name, create) in [("e", server.post(path, &event)), ("f", post(&server, path, renamed(&event, "f")))]
    {
        let created = create.await.expect(201);
        assert_eq!(
            (&created["firstTimestamp"], &created["lastTimestamp"], &created["count"]),
            (&json!("1970-01-01T00:00:00Z"), &Value::Null, &json!(-2))
        );
        // firstTimestamp (6) the epoch, lastTimestamp (7) zero, count (8).
        let answer = server.get(format!("{path}/{name}")).accept(PROTOBUF).await;
        has(&answer, b"\x32\x04\x08\x00\x10\x00\x3a\x00\x40\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}

fn renamed(event: &Value, name: &str) -> Vec<u8> {
    let mut event = event.clone();
    event["metadata"]["name"] = name.into();
    message(&Gvk::fixed("v1", "Event"), &event)
}
