//! Proxies that a server's connections go through: by CONNECT over TCP, TLS or a Unix socket, and by konnectivity's gRPC.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rowplane::protowire::Reader;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::grpc::{put, put_number};
use super::kubelet::Head;

/// The servers behind a proxy, by the names under which it is asked for them; whatever it is asked for is noted.
#[derive(Default)]
pub struct Network {
    servers: HashMap<String, SocketAddr>,
    asked: Mutex<Vec<String>>,
}

/// A running proxy, until it is dropped.
pub struct EgressProxy {
    network: Arc<Network>,
    /// The certificate of one with TLS, in PEM.
    pub certificate: String,
    _tasks: JoinSet<()>,
}

impl Network {
    pub fn of<const N: usize>(servers: [(&str, SocketAddr); N]) -> Arc<Self> {
        let servers = servers.map(|(name, server)| (name.to_owned(), server)).into();
        Arc::new(Self { servers, ..Self::default() })
    }

    async fn connect(&self, name: &str) -> Option<TcpStream> {
        self.asked.lock().expect("a lock").push(name.to_owned());
        TcpStream::connect(self.servers.get(name)?).await.ok()
    }
}

impl EgressProxy {
    /// The names that the proxy was asked for, each once, in order.
    pub fn asked(&self) -> Vec<String> {
        let mut asked = self.network.asked.lock().expect("a lock").clone();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// A proxy of HTTP at a socket.
    pub fn at_socket(path: &Path, network: Arc<Network>) -> Self {
        let (listener, mut tasks) = (UnixListener::bind(path).expect("bind a socket"), JoinSet::new());
        let behind = network.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accept");
                connections.spawn(connect(stream, behind.clone()));
            }
        });
        Self { network, certificate: String::new(), _tasks: tasks }
    }

    /// A proxy of HTTP at a port, without TLS.
    pub async fn at_port(network: Arc<Network>) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let (behind, mut tasks) = (network.clone(), JoinSet::new());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accept");
                connections.spawn(connect(stream, behind.clone()));
            }
        });
        (Self { network, certificate: String::new(), _tasks: tasks }, address)
    }

    /// A proxy of HTTP at a port, with TLS and a certificate for this name.
    pub async fn with_tls(name: &str, network: Arc<Network>) -> (Self, SocketAddr) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let made = made.self_signed(&key).expect("signed");
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.der().clone()], private)
            .expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let (behind, mut tasks) = (network.clone(), JoinSet::new());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accept");
                let (acceptor, behind) = (acceptor.clone(), behind.clone());
                connections.spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connect(stream, behind).await;
                    }
                });
            }
        });
        (Self { network, certificate: made.pem(), _tasks: tasks }, address)
    }

    /// A server of konnectivity at a socket.
    pub fn konnectivity(path: &Path, network: Arc<Network>) -> Self {
        let (listener, mut tasks) = (UnixListener::bind(path).expect("bind a socket"), JoinSet::new());
        let behind = network.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accept");
                let behind = behind.clone();
                connections.spawn(async move {
                    let answer = service_fn(|request| packets(request, behind.clone()));
                    let server = http2::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { network, certificate: String::new(), _tasks: tasks }
    }
}

/// Serves one CONNECT.
async fn connect(mut stream: impl AsyncRead + AsyncWrite + Unpin, network: Arc<Network>) {
    let Some(head) = Head::read(&mut stream).await else { return };
    let name = head.line.strip_prefix("CONNECT ").expect("CONNECT");
    assert_eq!(head.header("host"), Some("127.0.0.1"), "{head:?}");
    let Some(mut server) = network.connect(name).await else {
        let _ = stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await;
        return;
    };
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.expect("written");
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
}

/// The parts of a packet that a server reads.
#[derive(Default)]
struct Packet {
    dial: Option<(String, u64)>,
    data: Option<Bytes>,
    is_close: bool,
}

impl Packet {
    fn read(message: &[u8]) -> Self {
        let (mut packet, mut reader) = (Self::default(), Reader::new(message));
        while let Some(tag) = reader.tag().expect("a tag") {
            match tag.number() {
                1 => _ = reader.varint().expect("a type"),
                2 => {
                    let (mut name, mut random) = (String::new(), 0);
                    let mut inner = Reader::new(reader.bytes().expect("a request"));
                    while let Some(tag) = inner.tag().expect("a tag") {
                        match tag.number() {
                            1 => assert_eq!(inner.bytes().expect("a protocol"), b"tcp"),
                            2 => {
                                name =
                                    String::from_utf8(inner.bytes().expect("a name").to_vec()).expect("UTF-8")
                            }
                            _ => random = inner.varint().expect("a number"),
                        }
                    }
                    packet.dial = Some((name, random));
                }
                4 => {
                    let mut inner = Reader::new(reader.bytes().expect("data"));
                    while let Some(tag) = inner.tag().expect("a tag") {
                        match tag.number() {
                            1 => assert_eq!(inner.varint().expect("a connection"), CONNECTION),
                            _ => packet.data = Some(Bytes::copy_from_slice(inner.bytes().expect("data"))),
                        }
                    }
                }
                5 => {
                    reader.bytes().expect("a request");
                    packet.is_close = true;
                }
                other => panic!("a packet with {other}"),
            }
        }
        packet
    }
}

/// The number of each stream's connection.
const CONNECTION: u64 = 7;

/// A message of gRPC with a packet: its type, and a payload in this field.
fn packet(kind: u64, field: u8, payload: &[u8]) -> Frame<Bytes> {
    let mut message = Vec::new();
    put_number(&mut message, 1, kind);
    put(&mut message, field, payload);
    let mut framed = BytesMut::from(&[0][..]);
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(&message);
    Frame::data(framed.freeze())
}

type Frames = mpsc::Sender<Frame<Bytes>>;

/// Serves one stream of packets. As konnectivity's server, it says nothing before the first packet.
async fn packets(
    request: Request<Incoming>,
    network: Arc<Network>,
) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    assert_eq!(request.uri().path(), "/ProxyService/Proxy");
    let mut body = request.into_body();
    let (answers, mut frames) = mpsc::channel(1);
    let mut read = BytesMut::new();
    let first = message(&mut body, &mut read).await.expect("a packet");
    tokio::spawn(carry(first, body, read, answers, network));
    let frames = futures_util::stream::poll_fn(move |context| frames.poll_recv(context));
    let body = StreamBody::new(futures_util::StreamExt::map(frames, Ok));
    Ok(Response::builder().header("content-type", "application/grpc").body(body).expect("a response"))
}

async fn message(body: &mut Incoming, read: &mut BytesMut) -> Option<Packet> {
    loop {
        if read.len() >= 5 {
            let length = u32::from_be_bytes(read[1..5].try_into().expect("four bytes")) as usize;
            if read.len() >= 5 + length {
                read.advance(5);
                return Some(Packet::read(&read.split_to(length)));
            }
        }
        read.extend_from_slice(&body.frame().await?.ok()?.into_data().ok()?);
    }
}

async fn carry(
    first: Packet,
    mut body: Incoming,
    mut read: BytesMut,
    answers: Frames,
    network: Arc<Network>,
) {
    let (name, random) = first.dial.expect("a request to dial");
    let mut answer = Vec::new();
    let Some(server) = network.connect(&name).await else {
        put(&mut answer, 1, b"no route to host");
        put_number(&mut answer, 3, random);
        let _ = answers.send(packet(1, 3, &answer)).await;
        return;
    };
    put_number(&mut answer, 2, CONNECTION);
    put_number(&mut answer, 3, random);
    let _ = answers.send(packet(1, 3, &answer)).await;
    let (mut from, mut to) = server.into_split();
    let inwards = async {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let mut data = Vec::new();
            put_number(&mut data, 1, CONNECTION);
            put(&mut data, 3, &buffer[..length]);
            let _ = answers.send(packet(4, 4, &data)).await;
        }
    };
    let outwards = async {
        while let Some(packet) = message(&mut body, &mut read).await {
            match packet {
                Packet { data: Some(data), .. } => to.write_all(&data).await.expect("written"),
                Packet { is_close: true, .. } => break,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = inwards => {}
        () = outwards => {}
    }
    let mut close = Vec::new();
    put_number(&mut close, 2, CONNECTION);
    let _ = answers.send(packet(3, 6, &close)).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let _ = answers.send(Frame::trailers(trailers)).await;
}
