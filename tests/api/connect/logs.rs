//! Logs: 2.2.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use rowplane::api::kubelets::Config;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{POD, certificate, trusting, with_pod};
use crate::support::client::patient;
use crate::support::kubelet::{Kubelet, node, pod};
use crate::support::server::Setup;

on_every_store! {
    cluster_24_a_pod_without_a_node,
    cluster_25_which_container,
    cluster_26_wrong_options,
    cluster_27_what_the_kubelet_is_asked,
    cluster_28_what_kubelets_answer,
    a_kubelet_s_alert_in_go_s_words,
    cluster_29_whose_certificate_is_believed,
    cluster_31_the_client_certificate_is_read_again,
    cluster_32_lines_come_as_they_are_written,
    a_client_that_goes_frees_the_kubelet,
}

/// The record of a fatal alert: internal error. So answers a kubelet that has no serving certificate yet.
const INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nline";

async fn cluster_24_a_pod_without_a_node(setup: Setup) {
    let server = setup.start().await;
    pod(&server, "p", None, &["c"]).await;
    let log = server.get(format!("{POD}/log")).await;
    assert_eq!((log.status, log.body.len()), (204, 0));
    for part in ["exec", "attach", "portforward"] {
        let refused = server.post(format!("{POD}/{part}"), &json!(null)).await;
        refused.bad_request("pod p does not have a host assigned");
    }
    let details = json!({"name": "q", "kind": "pods"});
    let missing = server.get("/api/v1/namespaces/t/pods/q/log").await;
    missing.fails(404, "NotFound", "pods \"q\" not found", details);
    let details = json!({"name": "gone", "kind": "nodes"});
    pod(&server, "lost", Some("gone"), &["c"]).await;
    let lost = server.get("/api/v1/namespaces/t/pods/lost/log").await;
    lost.fails(404, "NotFound", "nodes \"gone\" not found", details);
}

async fn cluster_25_which_container(setup: Setup) {
    let kubelet = Kubelet::answering(OK).await;
    let server = setup.start().await;
    node(&server, kubelet.address.port()).await;
    let made = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "initContainers": [{"name": "init", "image": "i"}],
        "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}});
    server.post("/api/v1/namespaces/t/pods", &made).await.expect(201);
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "i",
        "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}]}});
    server.patch(format!("{POD}/ephemeralcontainers"), &debug).await.ok();
    let text = "a container name must be specified for pod p, choose one of: [init a b debug]";
    server.get(format!("{POD}/log")).await.bad_request(text);
    let text = "container x is not valid for pod p";
    server.get(format!("{POD}/log?container=x")).await.bad_request(text);
    for container in ["init", "a", "debug"] {
        assert_eq!(server.get(format!("{POD}/log?container={container}")).await.text(), "line");
        assert_eq!(kubelet.only().line, format!("GET /containerLogs/t/p/{container}"));
    }
}

async fn cluster_26_wrong_options(setup: Setup) {
    let server = setup.start().await;
    let both = "at most one of `sinceTime` or `sinceSeconds` may be specified";
    for (query, reason, field, text) in [
        ("tailLines=-1", "Invalid", "tailLines", "Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "Invalid", "limitBytes", "Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "Invalid", "sinceSeconds", "Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", "Forbidden", "", &format!("Forbidden: {both}")),
        ("stream=Stdout", "Forbidden", "stream", "Forbidden: may not be specified"),
    ] {
        // The options come before the Pod, which is not there.
        let refused = server.get(format!("{POD}/log?{query}")).await;
        let mut cause = json!({"reason": format!("FieldValue{reason}"), "message": text});
        if !field.is_empty() {
            cause["field"] = field.into();
        }
        let details = json!({"name": "p", "kind": "PodLogOptions", "causes": [cause]});
        let message = format!("PodLogOptions \"p\" is invalid: {field}: {text}");
        refused.fails(422, "Invalid", &message, details);
    }
    let text = "strconv.ParseInt: parsing \"x\": invalid syntax";
    server.get(format!("{POD}/log?tailLines=x")).await.bad_request(text);
    assert_eq!(server.get(format!("{POD}/log")).accept("image/png").await.status, 406);
}

async fn cluster_27_what_the_kubelet_is_asked(setup: Setup) {
    let kubelet = Kubelet::answering(OK).await;
    let server = with_pod(&setup, &kubelet).await;
    let query = "timestamps=true&tailLines=2&sinceTime=2026-01-02T03:04:05.9Z&limitBytes=5&follow=1&other=1";
    let log = server.get(format!("{POD}/log?{query}")).header("accept", "application/json, */*").await;
    assert_eq!((log.status, log.text()), (200, "line".to_owned()));
    assert_eq!(log.header("content-type"), Some("text/plain"));
    assert_eq!((log.header("content-length"), log.header("content-encoding")), (None, None));
    let head = kubelet.only();
    let query = "follow=true&limitBytes=5&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=2&timestamps=true";
    assert_eq!(head.line, format!("GET /containerLogs/t/p/c?{query}"));
    assert_eq!(head.header("host"), Some(&*kubelet.address.to_string()));
    assert_eq!(head.header("authorization"), None);
    let counted = r#"apiserver_request_total{verb="CONNECT",group="",version="v1",resource="pods",subresource="log",scope="resource",component="apiserver",dry_run="",code="200"} 1"#;
    // It is counted when its body is dropped, which may be after it was read.
    let metrics = loop {
        let metrics = server.get("/metrics").await.text();
        if metrics.contains(counted) {
            break metrics;
        }
    };
    assert!(metrics.contains("kube_apiserver_pod_logs_insecure_backend_total{usage=\"enforce_tls\"} 1"));
}

async fn cluster_28_what_kubelets_answer(setup: Setup) {
    let kubelet = Kubelet::start(|head, mut stream| async move {
        let (status, body) = head.line.rsplit_once("tailLines=").expect("a number").1.split_at(3);
        let answer =
            format!("HTTP/1.1 {status} Some\r\nLocation: /else{body}\r\nContent-Length: 3\r\n\r\nwhy");
        stream.write_all(answer.as_bytes()).await.expect("written");
        let _ = stream.shutdown().await;
    })
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let details = json!({"name": "p", "kind": "pods/log"});
    let causes = json!({"causes": [{"message": "why"}]});
    for (status, reason, message, details) in [
        (400, "BadRequest", "why".to_owned(), json!(null)),
        (
            404,
            "NotFound",
            "the server could not find the requested resource ( pods/log p)".to_owned(),
            details.clone(),
        ),
        (403, "Forbidden", "why ( pods/log p)".to_owned(), details.clone()),
        (500, "InternalError", "Internal error occurred: why".to_owned(), causes),
        (
            502,
            "InternalError",
            "an error on the server (\"why\") has prevented the request from succeeding ( pods/log p)"
                .to_owned(),
            details,
        ),
    ] {
        let refused = server.get(format!("{POD}/log?tailLines={status}")).await;
        refused.fails(status, reason, &message, details);
    }
    let away = server.get(format!("{POD}/log?tailLines=302")).await;
    away.fails(500, "", "Get \"/else\": redirects forbidden", json!(null));
    assert_eq!(server.get(format!("{POD}/log?tailLines=206")).await.text(), "why");

    let port = kubelet.address.port();
    drop(kubelet);
    let mut refused = server.get(format!("{POD}/log?follow=1")).await;
    // Connections of before may have been accepted, and are reset.
    while !refused.text().contains("refused") {
        refused = server.get(format!("{POD}/log?follow=1")).await;
    }
    let message = format!(
        "Get \"https://127.0.0.1:{port}/containerLogs/t/p/c?follow=true\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    refused.fails(500, "", &message, json!(null));
}

async fn a_kubelet_s_alert_in_go_s_words(setup: Setup) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let port = listener.local_addr().expect("an address").port();
    let kubelet = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        // The client's hello comes first.
        stream.read_u8().await.expect("a byte");
        stream.write_all(&INTERNAL_ERROR).await.expect("written");
        while let Ok(1..) = stream.read(&mut [0; 1024]).await {}
    };
    let server = setup.start().await;
    node(&server, port).await;
    pod(&server, "p", Some("n"), &["c"]).await;
    let (answer, ()) = tokio::join!(server.get(format!("{POD}/log")), kubelet);
    let message =
        format!("Get \"https://127.0.0.1:{port}/containerLogs/t/p/c\": remote error: tls: internal error");
    answer.fails(500, "", &message, json!(null));
}

async fn cluster_29_whose_certificate_is_believed(mut setup: Setup) {
    let kubelet = Kubelet::answering(OK).await;
    let other = Kubelet::answering(OK).await;
    let server = with_pod(&setup, &kubelet).await;
    assert_eq!(server.get(format!("{POD}/log")).await.text(), "line", "without a CA all are believed");
    server.stop().await;

    setup.kubelets = trusting(&setup, &other);
    let server = setup.start().await;
    let log = server.get(format!("{POD}/log")).await;
    let message = log.failure()["message"].as_str().expect("a message").to_owned();
    let url = format!("https://{}/containerLogs/t/p/c", kubelet.address);
    let want = format!(
        "Get \"{url}\": tls: failed to verify certificate: x509: certificate signed by unknown authority"
    );
    // Go also says why the candidate, which is no CA, did not count.
    assert!(log.status == 500 && message.starts_with(&want), "{message}");
    let log = server.get(format!("{POD}/log?insecureSkipTLSVerifyBackend=true")).await;
    assert_eq!(log.text(), "line");
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("kube_apiserver_pod_logs_backend_tls_failure_total 1"), "{metrics}");
    // The file is read again.
    setup.replace("kubelet-ca.crt", &kubelet.pem);
    assert_eq!(server.get(format!("{POD}/log")).await.text(), "line");
}

async fn cluster_31_the_client_certificate_is_read_again(mut setup: Setup) {
    let kubelet = Kubelet::answering(OK).await;
    let first = certificate(&setup, "client");
    let files = (setup.file("client.crt"), setup.file("client.key"));
    setup.kubelets = Config { client_certificate: Some(files), ..Config::default() };
    let server = with_pod(&setup, &kubelet).await;
    server.get(format!("{POD}/log")).await;
    assert_eq!(kubelet.only().certificate, Some(first));
    let second = certificate(&setup, "client");
    server.get(format!("{POD}/log")).await;
    assert_eq!(kubelet.only().certificate.as_ref(), Some(&second));
    setup.replace("client.crt", "nonsense");
    server.get(format!("{POD}/log")).await;
    assert_eq!(kubelet.only().certificate, Some(second), "what cannot be used changes nothing");
}

async fn cluster_32_lines_come_as_they_are_written(setup: Setup) {
    let go = Arc::new(Notify::new());
    let gone = go.clone();
    let kubelet = Kubelet::start(move |_, mut stream| {
        let go = go.clone();
        async move {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).await.expect("written");
            for line in ["6\r\nfirst\n\r\n", "7\r\nsecond\n\r\n", "0\r\n\r\n"] {
                go.notified().await;
                stream.write_all(line.as_bytes()).await.expect("written");
            }
        }
    })
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let log = patient("the head", server.get(format!("{POD}/log?follow=true")).send()).await;
    assert_eq!(log.status(), 200);
    let gauge = r#"apiserver_longrunning_requests{verb="CONNECT",group="",version="v1",resource="pods",subresource="log",scope="resource",component="apiserver"}"#;
    assert!(server.get("/metrics").await.text().contains(&format!("{gauge} 1")));
    let mut body = log.into_body();
    for line in ["first\n", "second\n"] {
        gone.notify_one();
        let frame = patient("a line", body.frame()).await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), line);
    }
    gone.notify_one();
    let rest = patient("the end", body.collect()).await.expect("a proper end");
    assert_eq!(rest.to_bytes(), "");
    while !server.get("/metrics").await.text().contains(&format!("{gauge} 0")) {}
}

async fn a_client_that_goes_frees_the_kubelet(setup: Setup) {
    let freed = Arc::new(Notify::new());
    let notify = freed.clone();
    let kubelet = Kubelet::start(move |head, mut stream| {
        let freed = freed.clone();
        async move {
            // Silent from the beginning, or after its head.
            if head.line.contains("follow") {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).await.expect("written");
            }
            let mut rest = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
            freed.notify_one();
        }
    })
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let log = patient("the head", server.get(format!("{POD}/log?follow=true")).send()).await;
    drop(log);
    patient("the kubelet is free", notify.notified()).await;
    kubelet.only();
    let asked = tokio::spawn(server.get(format!("{POD}/log")).send());
    while kubelet.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    asked.abort();
    patient("the kubelet is free", notify.notified()).await;
}
