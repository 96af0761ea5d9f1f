//! An extension API server's place, taken by a test: it serves `things` of `ext.example.io/v1`, and misbehaves as it is told.

pub mod things;
mod upgrades;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use self::things::{Things, thing};
use super::kubelet::Anybody;
use super::server::TestServer;

pub const GROUP: &str = "ext.example.io";
pub const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
pub const NAME: &str = "v1.ext.example.io";
pub const THINGS: &str = "/apis/ext.example.io/v1/namespaces/t/things";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A request that the server was sent.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// With the query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
    pub is_http2: bool,
    /// The name that the client has asked for in the handshake.
    pub server_name: String,
    /// The certificate that the client has shown.
    pub certificate: Option<Vec<u8>>,
}

impl Asked {
    /// All headers of this name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().expect("text")).collect()
    }
}

/// How the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behavior {
    Serves,
    /// Neither aggregated discovery nor OpenAPI v3 is found.
    IsOld,
    Answers(u16, Vec<(&'static str, &'static str)>),
    /// Nobody is answered.
    Hangs,
    /// Every answer has a body without an end.
    Floods,
    /// Every document is nonsense.
    Lies,
}

pub struct ExtensionServer {
    pub address: SocketAddr,
    /// Its certificate in PEM and base64, as `caBundle` has it.
    pub ca_bundle: String,
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    behavior: watch::Sender<Behavior>,
    seen: Mutex<Vec<Asked>>,
    resources: Mutex<Vec<Value>>,
    /// The number of connections that were made.
    connections: AtomicUsize,
    things: Things,
}

/// The facts about a connection.
#[derive(Clone)]
struct Peer {
    server_name: String,
    certificate: Option<Vec<u8>>,
}

impl ExtensionServer {
    /// Its certificate is for the Service `ext` in `t`.
    pub async fn start() -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["ext.t.svc".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("signed");
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(Arc::new(Anybody))
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("a certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            behavior: watch::Sender::new(Behavior::Serves),
            seen: Mutex::default(),
            resources: Mutex::new(vec![things()]),
            connections: AtomicUsize::new(0),
            things: Things::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), shared.clone()));
        Self { address, ca_bundle: STANDARD.encode(certificate.pem()), shared, tasks }
    }

    /// Closes the listener and all connections.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    pub fn behave(&self, behavior: Behavior) {
        self.shared.behavior.send_replace(behavior);
    }

    /// Puts things there, or removes them all.
    pub fn keep(&self, things: &[&str]) {
        self.shared.things.keep_only(things);
    }

    /// Puts a thing there whose metadata has these members, too.
    pub fn put(&self, name: &str, metadata: &Value) {
        self.shared.things.put(name, metadata);
    }

    /// The names of the things that are there.
    pub fn things(&self) -> Vec<String> {
        self.shared.things.names()
    }

    /// The metadata of a thing; null if it is not there.
    pub fn metadata(&self, name: &str) -> Value {
        self.shared.things.get(name).map_or(Value::Null, |thing| thing["metadata"].clone())
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The requests since the last look.
    pub fn seen(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.seen.lock().expect("a lock"))
    }

    /// The last request to a path since the last look.
    #[track_caller]
    pub fn asked(&self, path: &str) -> Asked {
        let seen = self.seen();
        let found = seen.iter().rev().find(|asked| asked.path.split('?').next() == Some(path));
        found.unwrap_or_else(|| panic!("nobody has asked for {path}: {seen:?}")).clone()
    }

    /// The APIService of its group version, of the Service `ext` in `t`.
    pub fn api_service(&self) -> Value {
        json!({"metadata": {"name": NAME}, "spec": {
            "group": GROUP, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 10,
            "service": {"namespace": "t", "name": "ext"}, "caBundle": self.ca_bundle,
        }})
    }

    /// Makes its APIService, and waits until it is available.
    pub async fn join(&self, server: &TestServer) {
        server.post(API_SERVICES, &self.api_service()).await.expect(201);
        available(server, "True").await;
    }
}

/// Waits until the condition `Available` of the APIService has this status. Returns the condition.
pub async fn available(server: &TestServer, status: &str) -> Value {
    condition(server, |condition| condition["status"] == status).await
}

/// Waits until the condition `Available` has this reason. Returns the condition.
pub async fn reason(server: &TestServer, reason: &str) -> Value {
    condition(server, |condition| condition["reason"] == reason).await
}

async fn condition(server: &TestServer, is_meant: impl Fn(&Value) -> bool) -> Value {
    loop {
        let service = server.get(format!("{API_SERVICES}/{NAME}")).await.ok();
        let found = &service["status"]["conditions"][0];
        if is_meant(found) {
            return found.clone();
        }
        tokio::task::yield_now().await;
    }
}

fn things() -> Value {
    json!({"resource": "things", "responseKind": {"group": GROUP, "version": "v1", "kind": "Thing"},
        "scope": "Namespaced", "singularResource": "thing",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"], "shortNames": ["th"]})
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        connections.spawn(connection(stream, acceptor.clone(), shared.clone()));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let session = stream.get_ref().1;
    let peer = Peer {
        server_name: session.server_name().unwrap_or_default().to_owned(),
        certificate: session.peer_certificates().and_then(<[_]>::first).map(|one| one.to_vec()),
    };
    let service = service_fn(move |request| {
        let (shared, peer) = (shared.clone(), peer.clone());
        async move { Ok::<_, Infallible>(answer(&shared, peer, request).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}

async fn answer(shared: &Arc<Shared>, peer: Peer, mut request: Request<Incoming>) -> Response<Body> {
    let upgrade = request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let body = match upgrade {
        Some(_) => Bytes::new(),
        None => body.collect().await.expect("a body").to_bytes(),
    };
    let asked = Asked {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        is_http2: parts.version == http::Version::HTTP_2,
        server_name: peer.server_name,
        certificate: peer.certificate,
    };
    shared.seen.lock().expect("a lock").push(asked.clone());
    if let Some(upgrade) = upgrade {
        return upgrades::upgrade(&asked.headers, upgrade);
    }
    let behavior = shared.behavior.borrow().clone();
    match behavior {
        Behavior::Hangs => {
            let _ = shared.behavior.subscribe().wait_for(|now| *now != Behavior::Hangs).await;
            json_of(503, &json!({"kind": "Status"}))
        }
        Behavior::Answers(status, headers) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(text("no")).expect("a response")
        }
        Behavior::Floods => {
            let pieces = stream::repeat(Bytes::from(vec![b'x'; 1 << 16]));
            let pieces = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            Response::new(StreamBody::new(pieces).boxed_unsync())
        }
        Behavior::Lies => json_of(200, &json!({"items": 7, "paths": [1], "resources": {"a": null}})),
        Behavior::Serves | Behavior::IsOld => served(shared, &asked, behavior == Behavior::IsOld),
    }
}

fn served(shared: &Shared, asked: &Asked, is_old: bool) -> Response<Body> {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let name = path.strip_prefix(THINGS).and_then(|rest| rest.strip_prefix('/'));
    if let Some((status, answer)) = name.and_then(|name| shared.things.answer(name, asked)) {
        return json_of(status, &answer);
    }
    match path {
        "/apis" if !is_old && asked.all("accept").concat().contains("g=apidiscovery.k8s.io;v=v2;") => {
            let resources = shared.resources.lock().expect("a lock").clone();
            let versions = json!([{"version": "v1", "resources": resources, "freshness": "Current"}]);
            let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
                "items": [{"metadata": {"name": GROUP}, "versions": versions}]});
            let kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            let response =
                Response::builder().header(header::CONTENT_TYPE, kind).header(header::ETAG, "\"1\"");
            response.body(text(&list.to_string())).expect("a response")
        }
        "/apis/ext.example.io/v1" => {
            let resource = json!({"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"], "shortNames": ["th"]});
            json_of(
                200,
                &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "ext.example.io/v1",
                "resources": [resource]}),
            )
        }
        "/openapi/v2" => json_of(200, &openapi_v2()),
        "/openapi/v3" if !is_old => {
            let url = json!({"serverRelativeURL": "/openapi/v3/apis/ext.example.io/v1?hash=E"});
            json_of(
                200,
                &json!({"paths": {"apis/ext.example.io/v1": url, "apis/apps/v1": {"serverRelativeURL": "/x"}}}),
            )
        }
        "/openapi/v3/apis/ext.example.io/v1" => {
            json_of(200, &json!({"openapi": "3.0.0", "info": {"title": "ext"}}))
        }
        THINGS | "/apis/ext.example.io/v1/things" if query.contains("watch=") => {
            let event = json!({"type": "ADDED", "object": thing("first")}).to_string() + "\n";
            let first = stream::once(async move { Ok::<_, Infallible>(Frame::data(Bytes::from(event))) });
            Response::new(StreamBody::new(first.chain(stream::pending())).boxed_unsync())
        }
        THINGS if asked.method == "DELETE" => {
            shared.things.remove_all();
            json_of(200, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
        }
        THINGS | "/apis/ext.example.io/v1/things" if asked.method == "GET" => {
            json_of(200, &shared.things.list(query))
        }
        path if path.starts_with("/apis/ext.example.io/v1/") => {
            json_of(200, &json!({"kind": "Thing", "path": path}))
        }
        _ => json_of(404, &json!({"kind": "Status"})),
    }
}

fn openapi_v2() -> Value {
    let definition = json!({"type": "object", "description": "a thing",
        "properties": {"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}});
    let schema = json!({"$ref": "#/definitions/example.Thing"});
    let get = json!({"get": {"operationId": "listThings", "responses": {"200": {"description": "OK", "schema": schema}}}});
    json!({"swagger": "2.0", "info": {"title": "ext", "version": "v1"},
    "paths": {"/apis/ext.example.io/v1/things": get, "/apis/apps/v1/stolen": get, "/version/": get},
    "definitions": {
        "example.Thing": definition,
        "example.Unused": {"type": "object"},
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "description": "of another release"},
    }})
}

fn json_of(status: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(text(&value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().expect("a value"));
    response
}

fn text(text: &str) -> Body {
    Full::new(Bytes::from(text.to_owned())).boxed_unsync()
}
