//! A kubelet's place, taken by a test: an HTTPS server that notes what it is asked, and leaves the connection to the test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client::patient;
use super::server::TestServer;

/// The connection of a request.
pub type Stream = TlsStream<TcpStream>;

/// The head of a request.
#[derive(Clone, Debug)]
pub struct Head {
    /// `GET /path?query`.
    pub line: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The certificate that the client has shown.
    pub certificate: Option<Vec<u8>>,
}

impl Head {
    /// Reads the head of a request or of a response.
    pub async fn read(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<Self> {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            text.push(stream.read_u8().await.ok()?);
        }
        let text = String::from_utf8(text).expect("UTF-8");
        let mut lines = text.trim_end().lines();
        let line = lines.next().expect("a line").replace(" HTTP/1.1", "");
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Some(Self { line, headers, certificate: None })
    }

    /// All headers of this name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}

type Handler = Arc<dyn Fn(Head, Stream) -> BoxFuture<'static, ()> + Send + Sync>;

pub struct Kubelet {
    pub address: SocketAddr,
    /// Its certificate, which is self-signed.
    pub pem: String,
    seen: Arc<Mutex<Vec<Head>>>,
    tasks: JoinSet<()>,
}

impl Kubelet {
    /// Its certificate is for 127.0.0.1.
    pub async fn start<F>(handler: impl Fn(Head, Stream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("signed");
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(Arc::new(Anybody))
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("a certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let (seen, mut tasks) = (Arc::<Mutex<Vec<Head>>>::default(), JoinSet::new());
        let handler: Handler = Arc::new(move |head, stream| Box::pin(handler(head, stream)));
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), handler, seen.clone()));
        Self { address, pem: certificate.pem(), seen, tasks }
    }

    /// One that answers every request with this, and closes.
    pub async fn answering(answer: &'static str) -> Self {
        Self::start(move |_, mut stream| async move {
            stream.write_all(answer.as_bytes()).await.expect("written");
            let _ = stream.shutdown().await;
        })
        .await
    }

    /// One that upgrades every request with these headers, and then sends everything back.
    pub async fn echoing(headers: &'static str) -> Self {
        Self::start(move |_, mut stream| async move {
            let head = format!("HTTP/1.1 101 Switching Protocols\r\n{headers}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.expect("written");
            let mut buffer = [0; 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                if stream.write_all(&buffer[..length]).await.is_err() {
                    break;
                }
            }
            let _ = stream.shutdown().await;
        })
        .await
    }

    /// The requests since the last look.
    pub fn seen(&self) -> Vec<Head> {
        std::mem::take(&mut *self.seen.lock().expect("a lock"))
    }

    /// Waits until there have been so many requests since the last look.
    pub async fn asked(&self, count: usize) {
        while self.seen.lock().expect("a lock").len() < count {
            tokio::task::yield_now().await;
        }
    }

    /// The only request since the last look.
    #[track_caller]
    pub fn only(&self) -> Head {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }

    /// Closes the listener and all connections.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Makes the Node `n` of this kubelet, and on it the Pod `p` with these containers, in the namespace `t`.
    pub async fn join(&self, server: &TestServer, containers: &[&str]) {
        node(server, self.address.port()).await;
        pod(server, "p", Some("n"), containers).await;
    }
}

/// Makes the Node `n` on this host, whose kubelet is at this port.
pub async fn node(server: &TestServer, port: u16) {
    let node = json!({"metadata": {"name": "n"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }});
    server.post("/api/v1/nodes", &node).await.expect(201);
}

/// Makes a Pod with these containers in the namespace `t`.
pub async fn pod(server: &TestServer, name: &str, node: Option<&str>, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name, "image": "i"})).collect();
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    server.post("/api/v1/namespaces/t/pods", &pod).await.expect(201)
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, handler: Handler, seen: Arc<Mutex<Vec<Head>>>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, handler, seen) = (acceptor.clone(), handler.clone(), seen.clone());
        connections.spawn(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let Some(mut head) = patient("a request", Head::read(&mut stream)).await else { return };
            let certificates = stream.get_ref().1.peer_certificates();
            head.certificate = certificates.and_then(|chain| Some(chain.first()?.to_vec()));
            seen.lock().expect("a lock").push(head.clone());
            handler(head, stream).await;
        });
    }
}

/// Asks for certificates and takes all of them.
#[derive(Debug)]
pub struct Anybody;

impl ClientCertVerifier for Anybody {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}
