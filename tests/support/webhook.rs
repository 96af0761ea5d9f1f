//! An HTTPS server of a test's own, with a self-signed certificate, that answers POSTs of JSON as the test wants.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::client::Client;

/// A request that the server was sent.
#[derive(Clone, Debug)]
pub struct Seen {
    /// With the query.
    pub path: String,
    pub headers: http::HeaderMap,
    pub text: String,
    pub body: Value,
}

/// Makes the status and the body of an answer.
type Answers = Arc<dyn Fn(&Seen) -> (u16, String) + Send + Sync>;

pub struct WebhookServer {
    pub address: SocketAddr,
    /// The certificate in PEM and base64, as `caBundle` has it.
    pub ca_bundle: String,
    desk: Arc<Desk>,
    tasks: JoinSet<()>,
}

struct Desk {
    answers: Answers,
    seen: Mutex<Vec<Seen>>,
    arrived: watch::Sender<usize>,
    is_held: watch::Sender<bool>,
}

impl WebhookServer {
    /// Its certificate is for 127.0.0.1, and for these names.
    pub async fn start(
        names: &[&str],
        answers: impl Fn(&Seen) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let names = names.iter().chain(&["127.0.0.1"]).map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate =
            rcgen::CertificateParams::new(names).expect("names").self_signed(&key).expect("signed");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("a certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let desk = Arc::new(Desk {
            answers: Arc::new(answers),
            seen: Mutex::default(),
            arrived: watch::Sender::new(0),
            is_held: watch::Sender::new(false),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), desk.clone()));
        Self { address, ca_bundle: STANDARD.encode(certificate.pem()), desk, tasks }
    }

    /// Closes the listener and all connections.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub fn client_config(&self, path: &str) -> Value {
        json!({"url": self.url(path), "caBundle": self.ca_bundle})
    }

    /// From now on nobody is answered.
    pub fn hold(&self) {
        self.desk.is_held.send_replace(true);
    }

    pub fn release(&self) {
        self.desk.is_held.send_replace(false);
    }

    /// Waits for this many requests since the start.
    pub async fn arrived(&self, requests: usize) {
        let mut arrived = self.desk.arrived.subscribe();
        arrived.wait_for(|count| *count >= requests).await.expect("the server runs");
    }

    /// The requests since the last look.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.desk.seen.lock().expect("a lock"))
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, desk) = (acceptor.clone(), desk.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| answer(desk.clone(), request));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    desk: Arc<Desk>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let seen = Seen {
        path: parts.uri.to_string(),
        headers: parts.headers,
        text: String::from_utf8_lossy(&body).into_owned(),
        body: serde_json::from_slice(&body).expect("JSON"),
    };
    desk.seen.lock().expect("a lock").push(seen.clone());
    desk.arrived.send_modify(|count| *count += 1);
    let _ = desk.is_held.subscribe().wait_for(|is_held| !is_held).await;
    let (status, body) = (desk.answers)(&seen);
    let response = http::Response::builder().status(status).header("Content-Type", "application/json");
    Ok(response.body(Full::new(Bytes::from(body))).expect("a response"))
}

/// A webhook that holds creates of ConfigMaps with the label `held`, until it is released.
pub async fn held_creates(admin: &Client) -> WebhookServer {
    let hook = WebhookServer::start(&[], |seen| {
        let response = json!({"uid": seen.body["request"]["uid"], "allowed": true});
        let kind =
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        (200, kind.to_string())
    })
    .await;
    hook.hold();
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE"]});
    let webhook = json!({"name": "held.ex.io", "clientConfig": hook.client_config("/"), "rules": [rule],
        "objectSelector": {"matchLabels": {"held": "1"}}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 30});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    admin.post(path, &json!({"metadata": {"name": "held"}, "webhooks": [webhook]})).await.expect(201);
    hook
}
