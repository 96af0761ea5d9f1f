//! TLS and what browsers are told of it (assertions 111 and 113 of `docs/spec/auth.md`).

use std::sync::Arc;

use http::Method;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rowplane::auth::pki::NamedFiles;
use rowplane::http::door::cors::Cors;
use rowplane::http::tls::{Http2, Oldest};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ProtocolVersion};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::client::handshake;
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup};

/// A CA of somebody else's; its certificate in PEM.
fn authority() -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    (Issuer::new(params, key), certificate)
}

/// Writes a certificate for these names, and its key.
fn issue(setup: &Setup, issuer: &Issuer<'static, KeyPair>, file: &str, names: &[&str]) -> NamedFiles {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = CertificateParams::new(names).expect("names");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    let files = [setup.file(&format!("{file}.crt")), setup.file(&format!("{file}.key"))];
    std::fs::write(&files[0], certificate.pem()).expect("write");
    std::fs::write(&files[1], key.serialize_pem()).expect("write");
    let [certificate, key] = files;
    NamedFiles { certificate, key, names: Vec::new() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_111_versions_and_suites_are_those_of_the_flags() {
    let mut setup = Setup::new(Database::memory());
    let suite = CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
    setup.tls.cipher_suites = vec![suite];
    let server = setup.start_empty().await;
    let stream = handshake(&server.kubeconfig, "kubernetes", &TLS12, b"").await.expect("TLS 1.2");
    let tls = stream.get_ref().1;
    assert_eq!(tls.negotiated_cipher_suite().map(|chosen| chosen.suite()), Some(suite));
    assert_eq!(tls.alpn_protocol(), Some(&b"h2"[..]));
    let stream = handshake(&server.kubeconfig, "kubernetes", &TLS13, b"").await.expect("TLS 1.3");
    assert_eq!(stream.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    server.stop().await;

    let mut setup = Setup::new(Database::memory());
    setup.tls.oldest = Oldest::Tls13;
    setup.tls.http2 = Http2::Off;
    let server = setup.start_empty().await;
    let refused = handshake(&server.kubeconfig, "kubernetes", &TLS12, b"").await.expect_err("too old");
    assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");
    let stream = handshake(&server.kubeconfig, "kubernetes", &TLS13, b"").await.expect("TLS 1.3");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    server.get("/version").await.ok();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_111_certificates_by_name_are_replaced_while_connections_live() {
    let mut setup = Setup::new(Database::memory());
    let (issuer, root) = authority();
    let own = issue(&setup, &issuer, "own", &["own.example.com", "*.wild.example.com"]);
    let given = NamedFiles {
        names: vec!["given.example.com".to_owned()],
        ..issue(&setup, &issuer, "given", &["given.example.com", "own.example.com"])
    };
    setup.certificates.named = vec![own, given];
    let server = setup.start_empty().await;
    let shown = async |name: &'static str| {
        let stream = handshake(&server.kubeconfig, name, &TLS13, root.as_bytes()).await?;
        let certificate = stream.get_ref().1.peer_certificates().expect("certificates")[0].clone();
        Ok::<_, std::io::Error>((stream, certificate))
    };
    let (mut old, first) = shown("own.example.com").await.expect("its certificate");
    assert_eq!(shown("OWN.example.com").await.expect("any case").1, first);
    assert_eq!(shown("a.wild.example.com").await.expect("a wildcard").1, first);
    assert_ne!(shown("given.example.com").await.expect("its certificate").1, first);
    assert!(shown("a.b.wild.example.com").await.is_err(), "the default certificate is not for that");
    shown("kubernetes").await.expect("the default certificate");

    issue(&setup, &issuer, "own", &["own.example.com", "*.wild.example.com"]);
    server.reload_credentials().await;
    assert_ne!(shown("own.example.com").await.expect("its certificate").1, first);
    // The connection of before goes on: it is still at the beginning of HTTP/2.
    old.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("it lives");
    let mut frame = [0; 9];
    old.read_exact(&mut frame).await.expect("the server's settings");
    assert_eq!(frame[3], 4);

    // A key that does not fit changes nothing.
    let (_, second) = shown("own.example.com").await.expect("its certificate");
    std::fs::copy(setup.file("given.key"), setup.file("own.key")).expect("copy");
    server.reload_credentials().await;
    assert_eq!(shown("own.example.com").await.expect("its certificate").1, second);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_113_browsers_are_told_on_every_answer() {
    let mut setup = Setup::new(Database::memory());
    setup.strict_transport_security = Some("max-age=31536000; includeSubDomains".parse().expect("a value"));
    let server = setup.start_empty().await;
    for (answer, status) in [
        (server.get("/version").await, 200),
        (server.token("nobody").get("/version").await, 401),
        (server.anonymous().get("/api").await, 403),
        (server.get("/nothing").await, 404),
        (server.get("/livez").await, 200),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000; includeSubDomains"));
    }
    server.stop().await;
}

/// Pages of an allowed origin may ask, and do so before they have a credential; others are told nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_117_pages_of_other_origins() {
    let mut setup = Setup::new(Database::memory());
    setup.cors = Some(Arc::new(Cors::new(["//example\\.com(:|$)"]).expect("an expression")));
    let server = setup.start_empty().await;
    let nobody = server.anonymous();
    let of =
        |method: Method, origin: &'static str| nobody.request(method, CONFIGMAPS).header("origin", origin);
    let preflight = of(Method::OPTIONS, "https://example.com:8443").await;
    assert_eq!((preflight.status, preflight.text()), (204, String::new()));
    let refused = of(Method::GET, "https://example.com:8443").await;
    assert_eq!(refused.status, 403);
    for answer in [preflight, refused] {
        for (name, value) in [
            ("access-control-allow-origin", "https://example.com:8443"),
            ("access-control-allow-methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
            ("access-control-expose-headers", "Date"),
            ("access-control-allow-credentials", "true"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        let headers = "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since";
        assert_eq!(answer.header("access-control-allow-headers"), Some(headers));
    }
    for origin in ["https://example.com.evil.org", "https://notexample.com"] {
        let answer = of(Method::OPTIONS, origin).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None), "{answer:?}");
    }
    assert_eq!(server.get("/version").await.header("access-control-allow-origin"), None);
    server.stop().await;
}

/// What exists for debugging is for those who may; Go's profiles do not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_115_flags_and_status_are_for_those_who_watch_the_server() {
    let mut setup = Setup::new(Database::memory());
    setup.flags = [("authorization-mode".to_owned(), "Node,RBAC".to_owned())].into();
    let server = setup.start_empty().await;
    for (path, kind) in [("/flagz", "Flagz"), ("/statusz", "Statusz")] {
        let ask = |accept: &str| {
            let asked = server.get(path).header("impersonate-user", "prometheus").accept(accept);
            asked.header("impersonate-group", "system:monitoring")
        };
        assert_eq!(server.token("alice-token").get(path).await.status, 403, "{path}");
        let text = ask("text/plain").await;
        assert_eq!((text.status, text.header("content-type")), (200, Some("text/plain; charset=utf-8")));
        let title = format!("\napiserver {}\nWarning: ", kind.to_lowercase());
        assert!(text.text().starts_with(&title), "{}", text.text());
        // The gate of CBOR is off, as upstream.
        let cbor = ask(&format!("application/cbor;as={kind};v=v1beta1;g=config.k8s.io")).await;
        assert_eq!(cbor.status, 406);
        let refused = ask("application/json").await;
        assert_eq!(refused.status, 406);
        let why =
            "only the following media types are accepted: application/json, application/yaml, text/plain";
        assert!(refused.text().contains(why), "{}", refused.text());
        let object = ask(&format!("application/json;as={kind};v=v1beta1;g=config.k8s.io")).await;
        let content_type = format!("application/json;g=config.k8s.io;v=v1beta1;as={kind}");
        assert_eq!(object.header("content-type"), Some(&*content_type));
        assert!(object.headers("warning").is_empty());
        let object = object.ok();
        assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!(kind), &json!("apiserver")));
        match kind {
            "Flagz" => assert_eq!(object["flags"], json!({"authorization-mode": "Node,RBAC"})),
            _ => assert!(object["uptimeSeconds"].as_u64().is_some_and(|seconds| seconds < 600)),
        }
        let old = ask(&format!("application/yaml;as={kind};v=v1alpha1;g=config.k8s.io")).await;
        let page = &path[1..];
        let warning = format!(
            "299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\""
        );
        assert_eq!(old.headers("warning"), [warning]);
        assert!(old.text().contains("apiVersion: config.k8s.io/v1alpha1\n"), "{}", old.text());
    }
    let index = server.get("/").await.ok();
    let paths = index["paths"].as_array().expect("paths");
    assert!(paths.contains(&json!("/flagz")) && paths.contains(&json!("/statusz")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_114_debug_endpoints_are_not_for_everybody() {
    let setup = Setup::new(Database::memory());
    let server = setup.start_empty().await;
    for path in ["/debug/pprof/", "/debug/pprof/profile", "/debug/flags/v", "/configz", "/logs"] {
        assert_eq!(server.token("alice-token").get(path).await.status, 403, "{path}");
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    server.stop().await;
}
