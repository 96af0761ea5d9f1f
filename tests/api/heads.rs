//! Heads of HTTP/1.1 that clients and proxies send, and libraries do not read: what Go's server reads is served
//! (src/http/server/heads.rs).

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::client::{connect, connect_as_nobody};
use crate::support::server::{CONFIGMAPS, Setup, TestServer};

on_every_store! {
    as_many_headers_as_a_user_has_groups,
    a_selector_of_a_hundred_thousand_names,
    an_agent_whose_name_is_not_ascii,
    answers_before_the_body,
}

/// Sends a request, and reads the answer only when all of it is sent: the status, the head in lower case, and the body.
async fn ask(server: &TestServer, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    // A certificate would count more than a token.
    let stream = match head.contains("Bearer") {
        true => connect_as_nobody(&server.kubeconfig, "http/1.1").await,
        false => connect(&server.kubeconfig, "http/1.1").await,
    };
    let mut stream = stream.expect("a connection");
    let length = body.len();
    let head = format!("{head}Host: kubernetes\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    stream.flush().await.expect("sent");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.expect("an answer");
    let end = text.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
    (head[9..12].parse().expect("a status"), head, text[end + 4..].to_vec())
}

async fn as_many_headers_as_a_user_has_groups(setup: Setup) {
    let server = setup.start().await;
    let groups: String = (0..1500).map(|at| format!("Impersonate-Group: team-{at}\r\n")).collect();
    let head = format!(
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nImpersonate-User: someone\r\n{groups}\
         Content-Type: application/json\r\nAccept: application/json\r\n"
    );
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let (status, _, body) = ask(&server, &head, review.as_bytes()).await;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
    // The answer comes in chunks, or whole; the last group is in it either way.
    let text = String::from_utf8_lossy(&body).into_owned();
    for group in ["\"team-0\"", "\"team-1499\""] {
        assert!(text.contains(group), "{group}");
    }
}

async fn a_selector_of_a_hundred_thousand_names(setup: Setup) {
    let server = setup.start().await;
    let labelled = json!({"metadata": {"name": "a", "labels": {"id": "v00042"}}});
    server.post(CONFIGMAPS, &labelled).await.expect(201);
    server.create("b", json!({})).await;
    for count in [10, 8000, 100_000] {
        let names: Vec<String> = (0..count).map(|at| format!("v{at:05}")).collect();
        let selector = format!("id%20in%20%28{}%29", names.join("%2C"));
        let head =
            format!("GET {CONFIGMAPS}?labelSelector={selector} HTTP/1.1\r\nAccept: application/json\r\n");
        let (status, _, body) = ask(&server, &head, b"").await;
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(status, 200, "{count}: {text}");
        let found = text.contains("\"v00042\"");
        assert_eq!(found, count > 42, "{count}");
        assert!(!text.contains("\"name\":\"b\""), "the selector counts: {count}");
    }
    let head = format!("GET /{} HTTP/1.1\r\n", "x".repeat(70_000));
    let (status, head, body) = ask(&server, &head, b"").await;
    assert_eq!(status, 414);
    assert!(head.contains("connection: close") && !body.is_empty(), "{head}");
}

async fn an_agent_whose_name_is_not_ascii(setup: Setup) {
    let server = setup.start().await;
    for (name, agent, manager) in [
        ("a", "Überwachung/1.0", "Überwachung"),
        ("b", "plain (Zürich)/2", "plain (Zürich)"),
        ("c", "tool/1.0 (café)", "tool"),
    ] {
        let head = format!(
            "POST {CONFIGMAPS} HTTP/1.1\r\nUser-Agent: {agent}\r\nContent-Type: application/json\r\n"
        );
        let object = json!({"metadata": {"name": name}, "data": {"a": "b"}}).to_string();
        let (status, _, body) = ask(&server, &head, object.as_bytes()).await;
        let stored: Value = serde_json::from_slice(&body).expect("an object");
        assert_eq!((status, &stored["metadata"]["managedFields"][0]["manager"]), (201, &json!(manager)));
    }
}

/// Clients that send everything before they read must not lose the answer, however early it comes.
async fn answers_before_the_body(setup: Setup) {
    let server = setup.start().await;
    for (status, path, fields) in [
        (401, CONFIGMAPS, "Authorization: Bearer nonsense\r\nContent-Type: application/json\r\n"),
        (403, CONFIGMAPS, "Impersonate-User: nobody\r\nContent-Type: application/json\r\n"),
        (415, CONFIGMAPS, "Content-Type: application/unknown\r\n"),
        (404, "/apis/nowhere.example.com/v1/things", "Content-Type: application/json\r\n"),
        (413, CONFIGMAPS, "Content-Type: application/json\r\n"),
    ] {
        for length in [20_000, 250_000, 8 << 20] {
            if status == 413 && length < 3 << 20 {
                continue;
            }
            let head = format!("POST {path} HTTP/1.1\r\n{fields}");
            let (found, head, body) = ask(&server, &head, &vec![b' '; length]).await;
            assert_eq!(found, status, "{length} bytes: {}", String::from_utf8_lossy(&body));
            assert!(head.contains("connection: close"), "{head}");
        }
    }
}
