//! A real listener, and clients that speak TLS to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

mod exchanges;

use std::convert::Infallible;

use super::delivery::Terms;
use super::*;
use crate::auth::pki::{Admin, Overrides, Pki, ServingNames, Sources};
use crate::http::tls::ServingCertificate;
use crate::metrics::{Metrics, RequestLabels, Scope};
use crate::wall_clock::WallClock;

const GRACE: Duration = Duration::from_secs(60);

/// A CA, and clients with or without one of its certificates.
struct Site {
    pki: Pki,
    _dir: TempDir,
}

impl Site {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let bind_address = [127, 0, 0, 1].into();
        let names = ServingNames { bind_address, hostname: None, extra: Vec::new() };
        let sources = Sources { dir: dir.path().to_owned(), names, overrides: Overrides::default() };
        let pki = sources.ensure(SystemTime::now()).unwrap();
        Self { pki, _dir: dir }
    }

    fn serving(&self) -> ServingCertificate {
        ServingCertificate { chain: self.pki.serving.chain.clone(), key: self.pki.serving.key.clone_key() }
    }

    fn tls(&self, clock: WallClock) -> Tls {
        Tls::new(self.serving(), self.pki.client_roots.clone(), crate::http::tls::Settings::default(), clock)
            .unwrap()
    }

    fn admin(&self) -> &Admin {
        self.pki.admin.as_ref().unwrap()
    }

    fn client(&self, protocol: &[u8], admin_of: Option<&Site>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.pki.client_roots[0].clone()).unwrap();
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots);
        let mut config = match admin_of {
            None => builder.with_no_client_auth(),
            Some(site) => {
                let chain = CertificateDer::from_pem_slice(site.admin().certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(site.admin().key.as_bytes()).unwrap();
                // The server hints at the CAs that it knows; the client sends a certificate of another CA nevertheless.
                let provider = rustls::crypto::aws_lc_rs::default_provider();
                let key = provider.key_provider.load_private_key(key).unwrap();
                let certified = rustls::sign::CertifiedKey::new(vec![chain], key);
                let resolver = rustls::sign::SingleCertAndKey::from(certified);
                builder.with_client_cert_resolver(Arc::new(resolver))
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

/// A server in a task, and the tokens that end it.
struct Running {
    address: SocketAddr,
    ending: Ending,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(site: &Site, grace: Duration) -> Self {
        Self::start_with(site.tls(WallClock::default()), grace).await
    }

    async fn start_with(tls: Tls, grace: Duration) -> Self {
        Self::limited(tls, grace, Limits::default(), router()).await
    }

    async fn limited(tls: Tls, grace: Duration, limits: Limits, router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ending = Ending::new(grace);
        let serving = Serving {
            tls,
            clusters: Clusters::alone(Routes::new(router)),
            limits,
            ending: ending.clone(),
            metrics: Arc::default(),
            scheduling: Scheduling::default(),
        };
        let task = tokio::spawn(serve(listener, serving));
        Self { address, ending, task }
    }

    async fn connect(&self, client: TlsConnector) -> tokio_rustls::client::TlsStream<TcpStream> {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        client.connect(ServerName::try_from("kubernetes").unwrap(), tcp).await.unwrap()
    }

    async fn http1(&self, client: TlsConnector) -> http1::SendRequest<Body> {
        let (sender, connection) = http1::handshake(TokioIo::new(self.connect(client).await)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn http2(&self, client: TlsConnector) -> http2::SendRequest<Body> {
        let stream = TokioIo::new(self.connect(client).await);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}

/// `/who` returns the user's name; `/watch` streams until the server drains; `/stuck` never ends; `/panic` panics.
fn router() -> Router {
    async fn who(Extension(connection): Extension<Arc<ConnectionInfo>>) -> String {
        let user = connection.certified().and_then(|certified| certified.user.ok().flatten());
        user.map_or("nobody".to_owned(), |user| user.name.clone())
    }
    async fn watch(Extension(connection): Extension<Arc<ConnectionInfo>>) -> Body {
        let started = futures_util::stream::iter([Ok::<_, Infallible>("started\n")]);
        let ended = futures_util::stream::once(async move {
            connection.draining.cancelled().await;
            Ok("ended\n")
        });
        Body::from_stream(futures_util::StreamExt::chain(started, ended))
    }
    async fn stuck() -> Body {
        let started = futures_util::stream::iter([Ok::<_, Infallible>("started\n")]);
        Body::from_stream(futures_util::StreamExt::chain(started, futures_util::stream::pending()))
    }
    async fn panic() -> StatusCode {
        std::panic::panic_any("on purpose")
    }
    Router::new()
        .route("/who", get(who))
        .route("/watch", get(watch))
        .route("/stuck", get(stuck))
        .route("/panic", get(panic))
}

fn to(path: &str) -> Request<Body> {
    let uri = format!("https://kubernetes{path}");
    Request::builder().uri(uri).header("host", "kubernetes").body(Body::empty()).unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn client_certificates_become_users_in_both_protocols() {
    let (site, foreign) = (Site::new(), Site::new());
    let server = Running::start(&site, GRACE).await;
    for (admin_of, name) in [(Some(&site), "kubernetes-admin"), (None, "nobody"), (Some(&foreign), "nobody")]
    {
        let mut client = server.http1(site.client(b"http/1.1", admin_of)).await;
        assert_eq!(text(client.send_request(to("/who")).await.unwrap()).await, name);
        let mut client = server.http2(site.client(b"h2", admin_of)).await;
        assert_eq!(text(client.send_request(to("/who")).await.unwrap()).await, name);
    }
}

async fn who(client: &mut http2::SendRequest<Body>) -> String {
    text(client.send_request(to("/who")).await.unwrap()).await
}

#[tokio::test]
async fn a_certificate_names_its_user_until_its_end_also_on_a_connection_that_stands() {
    let site = Site::new();
    let days = Arc::new(AtomicU64::new(0));
    let since = days.clone();
    let clock = WallClock::new(move || {
        SystemTime::now() + Duration::from_secs(since.load(Ordering::SeqCst) * 24 * 60 * 60)
    });
    let server = Running::start_with(site.tls(clock), GRACE).await;
    let mut client = server.http2(site.client(b"h2", Some(&site))).await;
    for (day, name) in
        [(0, "kubernetes-admin"), (364, "kubernetes-admin"), (366, "nobody"), (1, "kubernetes-admin")]
    {
        days.store(day, Ordering::SeqCst);
        assert_eq!(who(&mut client).await, name, "on day {day}");
    }
}

#[tokio::test]
async fn a_ca_that_is_trusted_no_more_takes_its_users_with_it() {
    let (site, other) = (Site::new(), Site::new());
    let tls = site.tls(WallClock::default());
    let server = Running::start_with(tls.clone(), GRACE).await;
    let mut client = server.http2(site.client(b"h2", Some(&site))).await;
    let mut stranger = server.http2(site.client(b"h2", Some(&other))).await;
    assert_eq!(
        (who(&mut client).await, who(&mut stranger).await),
        ("kubernetes-admin".into(), "nobody".into())
    );
    tls.replace(site.serving(), other.pki.client_roots.clone()).unwrap();
    assert_eq!(
        (who(&mut client).await, who(&mut stranger).await),
        ("nobody".into(), "kubernetes-admin".into())
    );
    let refused = tls.replace(site.serving(), vec![CertificateDer::from_slice(b"none")]);
    assert!(refused.is_err());
    assert_eq!(who(&mut stranger).await, "kubernetes-admin");
}

#[tokio::test]
async fn a_replaced_serving_certificate_is_shown_to_the_next_handshake() {
    let (site, other) = (Site::new(), Site::new());
    let tls = site.tls(WallClock::default());
    let server = Running::start_with(tls.clone(), GRACE).await;
    let shown = async |site: &Site| {
        let stream = server.connect(site.client(b"h2", None)).await;
        stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
    };
    let mut standing = server.http2(site.client(b"h2", Some(&site))).await;
    assert_eq!(shown(&site).await, site.pki.serving.chain[0]);
    tls.replace(other.serving(), site.pki.client_roots.clone()).unwrap();
    assert_eq!(shown(&other).await, other.pki.serving.chain[0]);
    // A key that does not belong to the certificate is refused, and nothing changes.
    let mixed = ServingCertificate { chain: site.serving().chain, key: other.serving().key };
    assert!(tls.replace(mixed, site.pki.client_roots.clone()).is_err());
    assert_eq!(shown(&other).await, other.pki.serving.chain[0]);
    assert_eq!(who(&mut standing).await, "kubernetes-admin");
}

#[tokio::test]
async fn shutdown_ends_watches_and_then_the_server() {
    let site = Site::new();
    let server = Running::start(&site, GRACE).await;
    let mut one = server.http1(site.client(b"http/1.1", None)).await;
    let mut two = server.http2(site.client(b"h2", None)).await;
    let _idle = server.connect(site.client(b"h2", None)).await;
    let first = one.send_request(to("/watch")).await.unwrap();
    let second = two.send_request(to("/watch")).await.unwrap();
    server.ending.draining.cancel();
    assert_eq!(text(first).await, "started\nended\n");
    assert_eq!(text(second).await, "started\nended\n");
    server.task.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn what_outlives_the_grace_is_dropped() {
    let site = Site::new();
    let server = Running::start(&site, Duration::ZERO).await;
    let mut client = server.http2(site.client(b"h2", None)).await;
    let mut stuck = client.send_request(to("/stuck")).await.unwrap().into_body();
    assert!(stuck.frame().await.unwrap().is_ok());
    server.ending.draining.cancel();
    server.task.await.unwrap();
    // An error or an end, but no endless wait.
    while let Some(Ok(_)) = stuck.frame().await {}
}

#[tokio::test]
async fn a_panic_is_the_request_s_alone() {
    let site = Site::new();
    let server = Running::start(&site, GRACE).await;
    let mut client = server.http2(site.client(b"h2", None)).await;
    let response = client.send_request(to("/panic")).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(text(client.send_request(to("/who")).await.unwrap()).await, "nobody");
}

#[tokio::test]
async fn plain_http_is_told_so() {
    let site = Site::new();
    let server = Running::start(&site, GRACE).await;
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = tcp.read_to_string(&mut answer).await;
    assert!(answer.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{answer}");
}

#[tokio::test]
async fn a_malformed_request_is_answered() {
    let site = Site::new();
    let server = Running::start(&site, GRACE).await;
    let mut stream = server.connect(site.client(b"http/1.1", None)).await;
    stream.write_all(b"GET /\x01 nonsense\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{:?}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn silence_and_garbage_do_not_stop_the_listener() {
    let site = Site::new();
    let server = Running::start(&site, GRACE).await;
    let _silent = TcpStream::connect(server.address).await.unwrap();
    let mut garbage = TcpStream::connect(server.address).await.unwrap();
    garbage.write_all(&[0x16, 3, 1, 0, 5, 0xff, 0xff, 0xff, 0xff, 0xff]).await.unwrap();
    let mut client = server.http1(site.client(b"http/1.1", None)).await;
    assert_eq!(text(client.send_request(to("/who")).await.unwrap()).await, "nobody");
    server.ending.draining.cancel();
    drop(client);
    server.task.await.unwrap();
}

/// A body without an end that reports when it is dropped.
struct Endless {
    dropped: tokio::sync::mpsc::UnboundedSender<()>,
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.dropped.send(());
    }
}

/// `/endless` streams for ever, as fast as it is read; `/trickle` sends once and then nothing. The receiver gets a
/// message for each such body that is dropped.
fn endless_router(until: Option<Duration>) -> (Router, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let (dropped, hears) = tokio::sync::mpsc::unbounded_channel();
    let metrics = Metrics::default().request(&RequestLabels {
        verb: "LIST",
        dry_run: "",
        resource: Default::default(),
        subresource: "".into(),
        scope: Scope::None,
    });
    let respond = move |first: usize, rest: bool| {
        let endless = Endless { dropped: dropped.clone() };
        let pieces = futures_util::stream::unfold((endless, 0), move |(endless, piece)| async move {
            if piece >= first && !rest {
                std::future::pending::<()>().await;
            }
            Some((Ok::<_, Infallible>(vec![b'x'; 1 << 16]), (endless, piece + 1)))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        if let Some(until) = until {
            let until = tokio::time::Instant::now() + until;
            response.extensions_mut().insert(Terms { until, in_flight: None, metrics: metrics.clone() });
        }
        response
    };
    let trickle = respond.clone();
    let router = router()
        .route("/endless", get(move || std::future::ready(respond(0, true))))
        .route("/trickle", get(move || std::future::ready(trickle(1, false))));
    (router, hears)
}

#[tokio::test]
async fn a_reader_who_takes_nothing_is_let_go() {
    let site = Site::new();
    let limits = Limits { response_progress: Duration::from_millis(200), ..Limits::default() };
    let (router, mut dropped) = endless_router(None);
    let server = Running::limited(site.tls(WallClock::default()), GRACE, limits, router).await;
    let mut client = server.http2(site.client(b"h2", Some(&site))).await;
    let mut trickle = client.send_request(to("/trickle")).await.unwrap().into_body();
    assert!(trickle.frame().await.unwrap().is_ok());
    let mut unread = client.send_request(to("/endless")).await.unwrap().into_body();
    dropped.recv().await.unwrap();
    // Data that was sent before can be read; then the stream is reset.
    while unread.frame().await.expect("an error at its end").is_ok() {}
    assert_eq!(text(client.send_request(to("/who")).await.unwrap()).await, "kubernetes-admin");
    assert!(dropped.try_recv().is_err(), "who waits for more is no reader who takes nothing");

    let mut client = server.http1(site.client(b"http/1.1", Some(&site))).await;
    let mut unread = client.send_request(to("/endless")).await.unwrap().into_body();
    dropped.recv().await.unwrap();
    while unread.frame().await.expect("an error at its end").is_ok() {}
}

#[tokio::test]
async fn a_response_ends_when_its_time_is_up_whoever_is_waited_for() {
    let site = Site::new();
    for path in ["/endless", "/trickle"] {
        let (router, mut dropped) = endless_router(Some(Duration::from_millis(200)));
        let limits = Limits { idle: Duration::from_secs(1), ..Limits::default() };
        let server = Running::limited(site.tls(WallClock::default()), GRACE, limits, router).await;
        let mut client = server.http2(site.client(b"h2", Some(&site))).await;
        let mut unread = client.send_request(to(path)).await.unwrap().into_body();
        dropped.recv().await.unwrap();
        while unread.frame().await.expect("an error at its end").is_ok() {}
    }
}

#[tokio::test]
async fn idle_connections_end_in_both_protocols() {
    let site = Site::new();
    let limits = Limits { idle: Duration::from_millis(200), ..Limits::default() };
    let (router, _dropped) = endless_router(None);
    let server = Running::limited(site.tls(WallClock::default()), GRACE, limits, router).await;
    // One connection with a silent watch, one with a finished request, and one without any request.
    let stream = TokioIo::new(server.connect(site.client(b"h2", Some(&site))).await);
    let (mut busy, connection) = http2::handshake::<_, _, Body>(TokioExecutor::new(), stream).await.unwrap();
    let mut connection = tokio::spawn(connection);
    let mut watch = busy.send_request(to("/trickle")).await.unwrap().into_body();
    assert!(watch.frame().await.unwrap().is_ok());
    for said in [true, false] {
        let stream = TokioIo::new(server.connect(site.client(b"h2", Some(&site))).await);
        let (mut client, connection) =
            http2::handshake::<_, _, Body>(TokioExecutor::new(), stream).await.unwrap();
        let connection = tokio::spawn(connection);
        if said {
            client.send_request(to("/who")).await.unwrap();
        }
        connection.await.unwrap().unwrap();
    }
    for protocol in [b"h2".as_slice(), b"http/1.1"] {
        let mut silent = server.connect(site.client(protocol, None)).await;
        let mut sent = Vec::new();
        let _ = silent.read_to_end(&mut sent).await;
    }
    assert!(futures_util::FutureExt::now_or_never(&mut connection).is_none(), "a watch keeps its connection");
}

#[tokio::test]
async fn connections_without_a_credential_push_each_other_out() {
    let site = Site::new();
    let limits = Limits { unauthenticated_connections: 3, ..Limits::default() };
    let server = Running::limited(site.tls(WallClock::default()), GRACE, limits, router()).await;
    let mut known = server.http2(site.client(b"h2", Some(&site))).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(server.connect(site.client(b"http/1.1", None)).await);
    }
    for pushed_out in &mut idle[..17] {
        let mut sent = Vec::new();
        let _ = pushed_out.read_to_end(&mut sent).await;
    }
    assert_eq!(text(known.send_request(to("/who")).await.unwrap()).await, "kubernetes-admin");
    let mut new = server.http1(site.client(b"http/1.1", None)).await;
    assert_eq!(text(new.send_request(to("/who")).await.unwrap()).await, "nobody");
}
