mod exchanges;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

#[test]
fn endpoints_are_read_from_urls_and_services() {
    let endpoint = Endpoint::parse("https://hook.example:8443/convert").expect("a URL");
    assert_eq!((&*endpoint.authority, &*endpoint.path), ("hook.example:8443", "/convert"));
    assert_eq!(
        (&*endpoint.server_name, endpoint.address()),
        ("hook.example", "hook.example:8443".to_owned())
    );
    let endpoint = Endpoint::parse("https://[::1]/").expect("a URL");
    assert_eq!((&*endpoint.server_name, endpoint.address()), ("::1", "[::1]:443".to_owned()));
    let endpoint = Endpoint::of_service("default", "hook", 443, "convert");
    assert_eq!((&*endpoint.authority, &*endpoint.path), ("hook.default.svc:443", "/convert"));
    let path = |url: &str| Endpoint::parse(url).expect("a URL").path;
    assert_eq!(path("https://127.0.0.1:9443//mutate-v1-pod"), "/mutate-v1-pod");
    assert_eq!(path("https://hook.example/a//b/../c/"), "/a/c");
    assert_eq!(path("https://hook.example"), "/");
    assert_eq!(Endpoint::of_service("default", "hook", 443, "/a/./b//").path, "/a/b");
}

#[tokio::test]
async fn a_hook_that_does_not_listen() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let endpoint = Endpoint::parse(&format!("https://{address}/convert")).expect("a URL");
    let hook = Webhook::new(endpoint, b"", Duration::from_secs(30));
    let error = hook
        .post(&|| Ok(Route::of(address.clone(), Egress::default())), Bytes::new())
        .await
        .expect_err("nobody listens");
    assert_eq!(
        error.to_string(),
        format!(
            "Post \"https://{address}/convert?timeout=30s\": dial tcp {address}: connect: connection refused"
        )
    );
}

#[tokio::test]
async fn a_hook_without_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut sent = Vec::new();
        while !sent.ends_with(b"hello") {
            assert_ne!(stream.read_buf(&mut sent).await.expect("reads"), 0);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.expect("writes");
        String::from_utf8(sent).expect("text")
    });
    let endpoint = Endpoint::parse(&format!("http://{address}/convert")).expect("a URL");
    let hook = Webhook::new(Endpoint { scheme: Scheme::Http, ..endpoint }, b"", Duration::from_secs(30))
        .over_http2();
    let post = async || {
        hook.post(&|| Ok(Route::of(address.clone(), Egress::default())), Bytes::from_static(b"hello")).await
    };
    assert_eq!(post().await, Ok(Bytes::from_static(b"hi")));
    assert!(server.await.expect("served").starts_with("POST /convert?timeout=30s HTTP/1.1\r\n"));
    let error = post().await.expect_err("nobody listens any more");
    assert!(
        error.0.starts_with(&format!("Post \"http://{address}/convert?timeout=30s\": dial tcp")),
        "{error}"
    );
}

#[test]
fn other_statuses_are_told_as_client_go_does() {
    let judged = |status, body: &'static str| {
        let response = Response {
            status,
            content_type: "text/plain".to_owned(),
            retry_after: None,
            location: None,
            body: Bytes::from_static(body.as_bytes()),
        };
        words::judge(response).map_err(|error| error.to_string())
    };
    assert_eq!(judged(200, "{}"), Ok(Bytes::from_static(b"{}")));
    assert_eq!(
        judged(404, "404 page not found"),
        Err("the server could not find the requested resource".into())
    );
    assert_eq!(
        judged(500, "boom\n"),
        Err("an error on the server (\"boom\") has prevented the request from succeeding".into())
    );
    let nothing = "0-length response with status code: 200 and content type: text/plain";
    assert_eq!(judged(200, ""), Err(nothing.into()));
    assert_eq!(judged(403, r#"{"kind":"Status","message":"no"}"#), Err("no".into()));
}

/// A server at 127.0.0.1 with a certificate of these names that has (or had) this long to live. It answers nothing but what
/// it is asked.
struct Server {
    address: String,
    certificate: String,
}

impl Server {
    async fn start(names: &[&str], until: i32) -> Self {
        Self::speaking(names, until, &[], echo).await
    }

    /// A server that does this with its connections, and offers these protocols.
    async fn speaking<F>(
        names: &[&str],
        until: i32,
        protocols: &[&[u8]],
        serve: impl FnOnce(tokio::net::TcpListener, tokio_rustls::TlsAcceptor) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
        let key = rcgen::KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let certificate = params.self_signed(&key).expect("signed");
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("a certificate");
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(serve(listener, tokio_rustls::TlsAcceptor::from(Arc::new(config))));
        Self { address, certificate: certificate.pem() }
    }

    fn at(&self) -> Result<Route, String> {
        Ok(Route::of(self.address.clone(), Egress::default()))
    }

    async fn call(&self, host: &str, ca_bundle: &str) -> Result<Bytes, String> {
        let (_, port) = self.address.split_once(':').expect("a port");
        let endpoint = Endpoint::parse(&format!("https://{host}:{port}/convert")).expect("a URL");
        let hook = Webhook::new(endpoint, ca_bundle.as_bytes(), Duration::from_secs(30));
        for _ in 0..2 {
            hook.post(&|| self.at(), Bytes::from_static(b"hello"))
                .await
                .map_err(|error| error.to_string())?;
        }
        hook.post(&|| self.at(), Bytes::from_static(b"again")).await.map_err(|error| error.to_string())
    }
}

async fn echo(listener: tokio::net::TcpListener, acceptor: tokio_rustls::TlsAcceptor) {
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let acceptor = acceptor.clone();
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(async |request: Request<hyper::body::Incoming>| {
                Ok::<_, std::convert::Infallible>(hyper::Response::new(request.into_body()))
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_bundle_and_for_its_names() {
    let server = Server::start(&["127.0.0.1", "hook.d.svc"], 2100).await;
    for host in ["127.0.0.1", "hook.d.svc"] {
        assert_eq!(server.call(host, &server.certificate).await.as_deref(), Ok(&b"again"[..]));
    }
}

#[tokio::test]
async fn wrong_certificates_are_refused_in_go_s_words() {
    let server = Server::start(&["127.0.0.1", "hook.d.svc"], 2100).await;
    let (other, expired) =
        (Server::start(&["a.example"], 2100).await, Server::start(&["127.0.0.1"], 2021).await);
    let failed = |server: &Server, host: &str, why: &str| {
        let (_, port) = server.address.split_once(':').expect("a port");
        let start = format!(
            "Post \"https://{host}:{port}/convert?timeout=30s\": tls: failed to verify certificate: x509: "
        );
        Err::<Bytes, _>(format!("{start}{why}"))
    };
    let unknown = "certificate signed by unknown authority (possibly because of \"x509: invalid signature: parent certificate \
                   cannot sign this kind of certificate\" while trying to verify candidate authority certificate \
                   \"rcgen self signed cert\")";
    assert_eq!(server.call("127.0.0.1", &other.certificate).await, failed(&server, "127.0.0.1", unknown));
    let name = "certificate is valid for hook.d.svc, not other.d.svc";
    assert_eq!(server.call("other.d.svc", &server.certificate).await, failed(&server, "other.d.svc", name));
    let name = "certificate is valid for 127.0.0.1, not 127.0.0.9";
    assert_eq!(server.call("127.0.0.9", &server.certificate).await, failed(&server, "127.0.0.9", name));
    let name = "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs";
    assert_eq!(other.call("127.0.0.1", &other.certificate).await, failed(&other, "127.0.0.1", name));
    let why = expired.call("127.0.0.1", &expired.certificate).await.expect_err("expired");
    assert!(why.contains("x509: certificate has expired or is not yet valid: current time 2"), "{why}");
    assert!(why.ends_with(" is after 2021-01-01T00:00:00Z"), "{why}");
}

#[tokio::test]
async fn an_answer_is_bounded() {
    let server = Server::start(&["127.0.0.1"], 2100).await;
    let endpoint = Endpoint::parse(&format!("https://{}/", server.address)).expect("a URL");
    let hook = Webhook::new(endpoint, server.certificate.as_bytes(), Duration::from_secs(30));
    let long = Bytes::from(vec![b'x'; LARGEST_ANSWER + 1]);
    let error = hook.post(&|| server.at(), long).await.expect_err("too long");
    assert!(error.to_string().contains("length limit exceeded"), "{error}");
    assert_eq!(hook.post(&|| server.at(), Bytes::from_static(b"short")).await.as_deref(), Ok(&b"short"[..]));
}
