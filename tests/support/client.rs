//! An HTTP client for tests that hides nothing: any method, path, query, header and body; complete answers and watches.

use std::future::{Future, IntoFuture};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, Request as HttpRequest, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::config::{Cluster, Kubeconfig};
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, SupportedProtocolVersion};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a test waits before it fails instead of hanging; no test waits for this time to pass. Longer than the
/// period of bookmarks.
pub const PATIENCE: Duration = Duration::from_secs(120);

type HyperClient = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client with one identity. Clones share connections.
#[derive(Clone)]
pub struct Client {
    http: HyperClient,
    server: Arc<str>,
    bearer: Option<Arc<str>>,
}

/// The versions of HTTP that a client offers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Any,
}

impl Client {
    /// A client with the kubeconfig's client certificate.
    pub fn of_certificate(kubeconfig: &Kubeconfig, protocol: Protocol) -> Self {
        Self::new(kubeconfig, protocol, tls_of_certificate(kubeconfig), None)
    }

    /// A client without a certificate, and with a bearer token if one is given.
    pub fn of_token(kubeconfig: &Kubeconfig, token: Option<&str>) -> Self {
        Self::new(kubeconfig, Protocol::Any, tls(kubeconfig, |tls| tls.with_no_client_auth()), token)
    }

    fn new(kubeconfig: &Kubeconfig, protocol: Protocol, tls: ClientConfig, token: Option<&str>) -> Self {
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
        let connector = match protocol {
            Protocol::Http1 => connector.enable_http1().build(),
            Protocol::Any => connector.enable_all_versions().build(),
        };
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Self { http, server: server(kubeconfig).into(), bearer: token.map(Into::into) }
    }

    pub fn request(&self, method: Method, path: impl Into<String>) -> Request {
        Request {
            client: self.clone(),
            method,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub fn get(&self, path: impl Into<String>) -> Request {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: impl Into<String>, body: &Value) -> Request {
        self.request(Method::POST, path).json(body)
    }

    pub fn put(&self, path: impl Into<String>, body: &Value) -> Request {
        self.request(Method::PUT, path).json(body)
    }

    /// A JSON merge patch.
    pub fn patch(&self, path: impl Into<String>, body: &Value) -> Request {
        self.request(Method::PATCH, path).body("application/merge-patch+json", body.to_string())
    }

    pub fn delete(&self, path: impl Into<String>) -> Request {
        self.request(Method::DELETE, path)
    }

    /// Starts a watch, which the server must accept.
    pub async fn watch(&self, path: impl Into<String>) -> Watch {
        self.get(path).watch().await
    }
}

/// A connection with the kubeconfig's certificate that speaks `protocol` (an ALPN name), on which nothing was sent yet.
/// The server has finished the handshake, too: its session tickets have arrived.
pub async fn connect(kubeconfig: &Kubeconfig, protocol: &str) -> io::Result<TlsStream<TcpStream>> {
    connect_with(tls_of_certificate(kubeconfig), kubeconfig, protocol).await
}

/// Like [`connect`], without a certificate.
pub async fn connect_as_nobody(kubeconfig: &Kubeconfig, protocol: &str) -> io::Result<TlsStream<TcpStream>> {
    connect_with(tls(kubeconfig, |tls| tls.with_no_client_auth()), kubeconfig, protocol).await
}

/// A finished handshake without a certificate, as somebody who asks for this name, speaks one version of TLS, and believes
/// these CAs (in PEM) beside the server's.
pub async fn handshake(
    kubeconfig: &Kubeconfig,
    name: &str,
    version: &'static SupportedProtocolVersion,
    authorities: &[u8],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let own = decode(cluster(kubeconfig).certificate_authority_data.as_deref());
    for authority in CertificateDer::pem_slice_iter(&[&own, authorities].concat()) {
        roots.add(authority.expect("a certificate")).expect("a root");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).expect("a version");
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let address = server(kubeconfig).strip_prefix("https://").expect("an https URL");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    TlsConnector::from(Arc::new(tls)).connect(name, TcpStream::connect(address).await?).await
}

async fn connect_with(
    mut tls: ClientConfig,
    kubeconfig: &Kubeconfig,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let address = server(kubeconfig).strip_prefix("https://").expect("an https URL");
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("kubernetes").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
    // Only the tickets are read, and no data behind them: with HTTP/2 the server sends data at once.
    while stream.get_ref().1.tls13_tickets_received() == 0 {
        let (socket, tls) = stream.get_mut();
        socket.readable().await?;
        match tls.read_tls(&mut Arrived(socket)) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                tls.process_new_packets().map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(stream)
}

/// Reads bytes that have arrived at a socket already.
struct Arrived<'a>(&'a TcpStream);

impl io::Read for Arrived<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(space)
    }
}

fn server(kubeconfig: &Kubeconfig) -> &str {
    cluster(kubeconfig).server.as_deref().expect("a server")
}

fn cluster(kubeconfig: &Kubeconfig) -> &Cluster {
    kubeconfig.clusters[0].cluster.as_ref().expect("a cluster")
}

fn tls_of_certificate(kubeconfig: &Kubeconfig) -> ClientConfig {
    let user = kubeconfig.auth_infos[0].auth_info.as_ref().expect("a user");
    let certificate = decode(user.client_certificate_data.as_deref());
    let key = user.client_key_data.as_ref().map(secrecy::ExposeSecret::expose_secret);
    let key = decode(key);
    let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_slice(&key).expect("a key");
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key that can sign");
    // Certificates that rustls itself would not read are sent too.
    let identity = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    tls(kubeconfig, |tls| tls.with_client_cert_resolver(Arc::new(identity)))
}

fn tls(
    kubeconfig: &Kubeconfig,
    identify: impl FnOnce(ConfigBuilder<ClientConfig, WantsClientCert>) -> ClientConfig,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let authorities = decode(cluster(kubeconfig).certificate_authority_data.as_deref());
    for authority in CertificateDer::pem_slice_iter(&authorities) {
        roots.add(authority.expect("a certificate")).expect("a root");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots);
    identify(tls)
}

fn decode(data: Option<&str>) -> Vec<u8> {
    STANDARD.decode(data.expect("data in the kubeconfig")).expect("base64")
}

/// A request, which is sent when it is awaited.
pub struct Request {
    client: Client,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Request {
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, value.parse().expect("a header value"));
        self
    }

    pub fn accept(self, value: &str) -> Self {
        self.header("accept", value)
    }

    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", content_type)
    }

    /// Sets a body without a header for its type.
    pub fn untyped(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request, without reading the answer's body.
    pub async fn send(self) -> http::Response<Incoming> {
        let uri = format!("{}{}", self.client.server, self.path);
        self.try_send().await.unwrap_or_else(|error| panic!("{uri}: {error:?}"))
    }

    /// As [`Request::send`], for requests whose streams may be reset.
    pub async fn try_send(self) -> Result<http::Response<Incoming>, hyper_util::client::legacy::Error> {
        let uri = format!("{}{}", self.client.server, self.path);
        let mut request = HttpRequest::builder().method(self.method).uri(&uri);
        *request.headers_mut().expect("no error so far") = self.headers;
        if let Some(token) = &self.client.bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(self.body)).unwrap_or_else(|error| panic!("{uri}: {error}"));
        loop {
            match patient(&uri, self.client.http.request(request.clone())).await {
                Ok(response) => return Ok(response),
                // The server has closed this connection without reading the request. Like Go's client, sends it again
                // on another one.
                Err(error) if format!("{error:?}").contains(r#"GoAway(b"", NO_ERROR, Remote)"#) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub async fn watch(self) -> Watch {
        let path = self.path.clone();
        let response = self.send().await;
        let (parts, body) = response.into_parts();
        if parts.status != 200 {
            let answer = Answer::read(&path, parts, body).await;
            panic!("{path} is no watch: {answer:?}");
        }
        Watch { path, headers: parts.headers, body, buffer: Vec::new() }
    }
}

impl IntoFuture for Request {
    type Output = Answer;
    type IntoFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let path = self.path.clone();
            let (parts, body) = self.send().await.into_parts();
            Answer::read(&path, parts, body).await
        })
    }
}

/// A complete answer.
pub struct Answer {
    pub path: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.status, self.path, self.text())
    }
}

impl Answer {
    async fn read(path: &str, parts: http::response::Parts, body: Incoming) -> Self {
        let body = patient(path, body.collect()).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let (path, status) = (path.to_owned(), parts.status.as_u16());
        Self { path, status, headers: parts.headers, body: body.to_bytes() }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// All headers of this name.
    pub fn headers(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        values.map(|value| value.to_str().expect("text").to_owned()).collect()
    }

    /// The body of an answer, which must have this status code.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    #[track_caller]
    pub fn ok(&self) -> Value {
        self.expect(200)
    }

    /// The body of a failure, after the checks that apply to every failure (item 94).
    #[track_caller]
    pub fn failure(&self) -> Value {
        assert!(self.status >= 400, "{self:?}");
        let body = self.json();
        assert_eq!(body["kind"], "Status", "{self:?}");
        assert_eq!(body["apiVersion"], "v1", "{self:?}");
        assert_eq!(body["status"], "Failure", "{self:?}");
        assert_eq!(body["code"], self.status, "{self:?}");
        let metadata = body["metadata"].as_object().unwrap_or_else(|| panic!("{self:?}"));
        assert!(metadata.keys().all(|key| key == "continue" && self.status == 410), "{self:?}");
        let retry = body["details"]["retryAfterSeconds"].as_u64().filter(|seconds| *seconds > 0);
        let header = self.header("retry-after").map(|text| text.parse().expect("seconds"));
        assert_eq!(retry, header, "{self:?}");
        body
    }

    /// Compares with the answer of upstream's filter of timeouts, which is no Status for those who ask for its kind.
    #[track_caller]
    pub fn timed_out(&self) {
        assert_eq!(
            (self.status, self.header("content-type")),
            (504, Some("text/plain; charset=utf-8")),
            "{self:?}"
        );
        let message = "Timeout: request did not complete within the allotted timeout";
        let want = json!({
            "metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {}, "code": 504
        });
        assert_eq!(self.json(), want);
    }

    /// Compares the whole body with that of a failure.
    #[track_caller]
    pub fn fails(&self, code: u16, reason: &str, message: &str, details: Value) {
        assert_eq!(self.failure(), failure(code, reason, message, details), "{self:?}");
    }

    /// Compares with the 400 of most bad parameters and bodies.
    #[track_caller]
    pub fn bad_request(&self, message: &str) {
        self.fails(400, "BadRequest", message, Value::Null);
    }

    /// Compares with the 422 of options; each cause is (reason, field, message).
    #[track_caller]
    pub fn invalid_options(&self, kind: &str, causes: &[(&str, &str, &str)]) {
        let texts: Vec<String> =
            causes.iter().map(|(_, field, message)| format!("{field}: {message}")).collect();
        let texts = if let [one] = &texts[..] { one.clone() } else { format!("[{}]", texts.join(", ")) };
        let causes: Vec<Value> = causes
            .iter()
            .map(|(reason, field, message)| json!({"reason": reason, "message": message, "field": field}))
            .collect();
        let details = json!({"group": "meta.k8s.io", "kind": kind, "causes": causes});
        self.fails(422, "Invalid", &format!("{kind}.meta.k8s.io \"\" is invalid: {texts}"), details);
    }
}

/// The `Status` of a failure; without details if they are null, without reason if it is empty.
pub fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code
    });
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    if !details.is_null() {
        status["details"] = details;
    }
    status
}

/// A running watch that reads events as they arrive.
pub struct Watch {
    path: String,
    pub headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
}

impl Watch {
    /// The next line without its end; `None` after the proper end of the body.
    pub async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line[..end].to_vec()).expect("UTF-8"));
            }
            if !self.read().await {
                assert!(self.buffer.is_empty(), "{}: the body ends within a line", self.path);
                return None;
            }
        }
    }

    /// The next message of a protobuf stream, without its length.
    pub async fn message(&mut self) -> Vec<u8> {
        loop {
            if let Some(length) = self.buffer.first_chunk() {
                let end = 4 + u32::from_be_bytes(*length) as usize;
                if self.buffer.len() >= end {
                    return self.buffer.drain(..end).skip(4).collect();
                }
            }
            assert!(self.read().await, "{}: the body ends before a message does", self.path);
        }
    }

    /// The next bytes as they arrive.
    pub async fn chunk(&mut self) -> Vec<u8> {
        while self.buffer.is_empty() {
            assert!(self.read().await, "{}: the body ends", self.path);
        }
        std::mem::take(&mut self.buffer)
    }

    /// Reads more; false at the end.
    async fn read(&mut self) -> bool {
        let Some(frame) = patient(&self.path, self.body.frame()).await else { return false };
        let frame = frame.unwrap_or_else(|error| panic!("{}: broken off: {error}", self.path));
        self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
        true
    }

    /// The next event of any type.
    pub async fn next(&mut self) -> Option<Value> {
        let line = self.line().await?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.path)))
    }

    /// The object of the next event, which must have this type.
    pub async fn expect(&mut self, kind: &str) -> Value {
        let event = self.next().await.unwrap_or_else(|| panic!("{}: ended instead of {kind}", self.path));
        assert_eq!(event["type"], kind, "{}: {event}", self.path);
        event["object"].clone()
    }

    /// Like `expect`; the object must have this name.
    pub async fn expect_named(&mut self, kind: &str, name: &str) -> Value {
        let object = self.expect(kind).await;
        assert_eq!(object["metadata"]["name"], name, "{}: {object}", self.path);
        object
    }

    pub async fn expect_end(&mut self) {
        let event = self.next().await;
        assert_eq!(event, None, "{}: goes on", self.path);
    }

    /// All events up to the proper end.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

pub async fn patient<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: nothing happens"),
    }
}
