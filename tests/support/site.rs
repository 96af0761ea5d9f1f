//! A stand-in for an issuer of tokens elsewhere, which answers over HTTPS.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rowplane::auth::jwt::keys::SigningKey;
use rowplane::auth::pki::temporary_token_key;
use rowplane::tree;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub const CONFIGURATION: &str = "/.well-known/openid-configuration";

/// Serves documents by their paths.
pub struct Site {
    address: SocketAddr,
    pub certificate: String,
    pub documents: Arc<Mutex<HashMap<String, String>>>,
    _tasks: JoinSet<()>,
}

impl Site {
    pub async fn start() -> Self {
        let key = rcgen::KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned()];
        let made = rcgen::CertificateParams::new(names).expect("names").self_signed(&key).expect("signed");
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.der().clone()], private)
            .expect("a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let documents: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), documents.clone()));
        Self { address, certificate: made.pem(), documents, _tasks: tasks }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub fn put(&self, path: &str, document: &Value) {
        self.documents.lock().expect("a lock").insert(path.to_owned(), document.to_string());
    }

    /// From now on these keys sign tokens.
    pub fn publish(&self, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys
            .iter()
            .map(|key| serde_json::from_str(&key.public.to_jwk().to_string()).expect("JSON"))
            .collect();
        self.put("/keys", &json!({"keys": keys}));
        let url = self.url();
        self.put(CONFIGURATION, &json!({"issuer": url, "jwks_uri": format!("{url}/keys")}));
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, documents: Arc<Mutex<HashMap<String, String>>>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, documents) = (acceptor.clone(), documents.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let shown = request.headers().get("authorization").and_then(|value| value.to_str().ok());
                let place = format!("{}{}", request.uri().path(), shown.unwrap_or_default());
                let found = documents.lock().expect("a lock").get(&place).cloned();
                async move {
                    let status = if found.is_some() { 200 } else { 404 };
                    let response = http::Response::builder().status(status);
                    let body = Full::new(Bytes::from(found.unwrap_or_default()));
                    Ok::<_, Infallible>(response.body(body).expect("a response"))
                }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

pub fn key() -> SigningKey {
    SigningKey::of_pem(temporary_token_key().expect("a key").as_bytes()).expect("a key")
}

pub fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().expect("a time").as_secs()
}

/// A token with the usual claims, and those that are given.
pub fn token(key: &SigningKey, site: &Site, claims: Value) -> String {
    let mut all = json!({"iss": site.url(), "aud": "me", "sub": "jane", "exp": now() + 600});
    all.as_object_mut().expect("an object").extend(claims.as_object().expect("an object").clone());
    let all: tree::Value = serde_json::from_str(&all.to_string()).expect("JSON");
    key.sign(&all).expect("signed")
}
