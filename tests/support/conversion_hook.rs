//! A conversion webhook of its own for each test: HTTPS with a self-signed certificate. It converts widgets between
//! `ex.io/v1`, which have a `color`, and `ex.io/v2`, whose `paint` is the same, and does whatever else a test wants.

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

/// Changes the answer to a review: the review that was asked, and what an honest webhook would say.
type Lie = Arc<dyn Fn(&Value, Value) -> Value + Send + Sync>;

pub struct Hook {
    pub address: SocketAddr,
    /// The certificate in PEM and base64, as `caBundle` has it.
    pub ca_bundle: String,
    acceptor: TlsAcceptor,
    desk: Arc<Desk>,
    tasks: JoinSet<()>,
}

struct Desk {
    lie: Mutex<Option<Lie>>,
    /// The status and the body of every answer, if the webhook answers without looking.
    fixed: Mutex<Option<(u16, String)>>,
    seen: Mutex<Vec<Value>>,
    arrived: watch::Sender<usize>,
    is_held: watch::Sender<bool>,
}

impl Hook {
    pub async fn start() -> Self {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "hook.d.svc".to_owned()];
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
        let desk = Desk {
            lie: Mutex::default(),
            fixed: Mutex::default(),
            seen: Mutex::default(),
            arrived: watch::Sender::new(0),
            is_held: watch::Sender::new(false),
        };
        let mut hook = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            ca_bundle: STANDARD.encode(certificate.pem()),
            acceptor: TlsAcceptor::from(Arc::new(config)),
            desk: Arc::new(desk),
            tasks: JoinSet::new(),
        };
        hook.listen().await;
        hook
    }

    /// Listens, at the same address as before.
    pub async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("the address");
        self.address = listener.local_addr().expect("an address");
        self.tasks.spawn(serve(listener, self.acceptor.clone(), self.desk.clone()));
    }

    /// Closes the listener and all connections.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    pub fn client_config(&self) -> Value {
        json!({"url": format!("https://{}/convert", self.address), "caBundle": self.ca_bundle})
    }

    pub fn lie(&self, lie: impl Fn(&Value, Value) -> Value + Send + Sync + 'static) {
        *self.desk.lie.lock().expect("a lock") = Some(Arc::new(lie));
    }

    pub fn answer(&self, status: u16, body: &str) {
        *self.desk.fixed.lock().expect("a lock") = Some((status, body.to_owned()));
    }

    pub fn be_honest(&self) {
        *self.desk.lie.lock().expect("a lock") = None;
        *self.desk.fixed.lock().expect("a lock") = None;
    }

    /// From now on nobody is answered.
    pub fn hold(&self) {
        self.desk.is_held.send_replace(true);
    }

    /// Holds when it is told to, also from within a lie.
    pub fn gate(&self) -> watch::Sender<bool> {
        self.desk.is_held.clone()
    }

    pub fn release(&self) {
        self.desk.is_held.send_replace(false);
    }

    /// Waits for this many calls since the start.
    pub async fn arrived(&self, calls: usize) {
        let mut arrived = self.desk.arrived.subscribe();
        arrived.wait_for(|count| *count >= calls).await.expect("the webhook runs");
    }

    pub fn calls(&self) -> usize {
        *self.desk.arrived.borrow()
    }

    /// The reviews since the last look.
    pub fn seen(&self) -> Vec<Value> {
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
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("JSON");
    desk.seen.lock().expect("a lock").push(review.clone());
    desk.arrived.send_modify(|count| *count += 1);
    let _ = desk.is_held.subscribe().wait_for(|is_held| !is_held).await;
    let fixed = desk.fixed.lock().expect("a lock").clone();
    let (status, body) = fixed.unwrap_or_else(|| {
        let lie = desk.lie.lock().expect("a lock").clone();
        let honest = converted(&review);
        (200, lie.map_or_else(|| honest.clone(), |lie| lie(&review, honest.clone())).to_string())
    });
    let response = http::Response::builder().status(status).header("Content-Type", "application/json");
    Ok(response.body(Full::new(Bytes::from(body))).expect("a response"))
}

/// What an honest webhook answers; nothing to a review of another kind.
fn converted(review: &Value) -> Value {
    let request = &review["request"];
    let Some(objects) = request["objects"].as_array() else { return Value::Null };
    let objects: Vec<Value> =
        objects.iter().map(|object| convert(object, &request["desiredAPIVersion"])).collect();
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": {
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}})
}

fn convert(object: &Value, to: &Value) -> Value {
    let mut object = object.clone();
    let (from, into) = if to == "ex.io/v1" { ("paint", "color") } else { ("color", "paint") };
    object["apiVersion"] = to.clone();
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(into.to_owned(), value);
    }
    object
}
