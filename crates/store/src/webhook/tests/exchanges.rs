//! Raw answers, read as Go's client reads them (tests/upstream/http makes them), redirects, and HTTP/2.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

#[derive(Deserialize)]
struct Reply {
    sent: String,
    /// 0 if Go's client fails.
    status: u16,
    body: String,
}

fn bytes(latin1: &str) -> Vec<u8> {
    latin1.chars().map(|c| c as u8).collect()
}

/// Answers the first request of each connection with the next of these texts, and ends the connection without a goodbye.
async fn say(listener: TcpListener, acceptor: TlsAcceptor, texts: Arc<Mutex<VecDeque<Vec<u8>>>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let (acceptor, texts) = (acceptor.clone(), texts.clone());
        connections.spawn(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let _ = stream.read(&mut [0; 4096]).await;
            let text = texts.lock().expect("a lock").pop_front().expect("an answer");
            let _ = stream.write_all(&text).await;
            let _ = stream.flush().await;
            let (mut tcp, _) = stream.into_inner();
            let _ = tcp.shutdown().await;
            // Whatever is unread would reset the connection.
            let _ = tcp.read_to_end(&mut Vec::new()).await;
        });
    }
}

/// A hook that says these texts, one to each request.
async fn saying(texts: Vec<Vec<u8>>) -> (Server, Webhook) {
    let texts = Arc::new(Mutex::new(VecDeque::from(texts)));
    let server =
        Server::speaking(&["127.0.0.1"], 2100, &[], |listener, acceptor| say(listener, acceptor, texts));
    let server = server.await;
    let endpoint = Endpoint::parse(&format!("https://{}/hook", server.address)).expect("a URL");
    let hook = Webhook::new(endpoint, server.certificate.as_bytes(), Duration::from_secs(30));
    (server, hook)
}

/// Whether an answer is of a kind that no server sends, and hyper reads otherwise: it takes two blanks, `HTTP/2.0`, names with
/// blanks and chunks in HTTP/1.0 for no HTTP, and some lines of chunks that are too long or have a blank for one.
fn is_read_otherwise(sent: &str) -> bool {
    let has_chunks = sent.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let in_chunks = sent.contains("HTTP/1.0") || sent.contains(" ;a") || sent.contains(&"e".repeat(4000));
    let kinds = ["HTTP/1.1  200", "HTTP/2.0 200", "X A: b", "\na b: c"];
    has_chunks && in_chunks || kinds.iter().any(|kind| sent.contains(kind))
}

#[tokio::test]
async fn answers_are_read_as_go_reads_them() {
    let mut text = String::new();
    let packed = include_bytes!("../../../../../testdata/http/client.json.gz");
    GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("packed");
    let replies: Vec<Reply> = serde_json::from_str(&text).expect("replies");
    assert!(replies.len() >= 1000);
    let mut wrong = Vec::new();
    let alike = replies.iter().filter(|reply| !is_read_otherwise(&reply.sent));
    assert!(alike.clone().count() > 800);
    for reply in alike {
        let sent = bytes(&reply.sent);
        let (server, hook) = saying(vec![sent]).await;
        let found = hook.exchange_at(&|| server.at(), "/hook", Sent::of(&Bytes::from_static(b"{}"))).await;
        let is_right = match &found {
            Ok(answer) => answer.status == reply.status && answer.body == bytes(&reply.body),
            Err(_) => reply.status == 0,
        };
        if !is_right {
            let found =
                found.map(|answer| (answer.status, String::from_utf8_lossy(&answer.body).into_owned()));
            let brief = |text: &str| text.chars().take(400).collect::<String>();
            wrong.push(format!(
                "{:?}\n  here {found:?}\n  Go   {} {:?}",
                brief(&reply.sent),
                reply.status,
                brief(&reply.body)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), replies.len(), wrong.join("\n"));
}

fn whole(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn redirects_stay_at_their_server() {
    let moved = |status: &str, to: &str| whole(status, &format!("Location: {to}\r\n"), b"");
    let answer = || whole("200 OK", "", b"{}");
    let post = async |texts: Vec<Vec<u8>>| {
        let (server, hook) = saying(texts).await;
        let answer = hook.post(&|| server.at(), Bytes::from_static(b"{}")).await;
        (answer.map_err(|error| error.0), server.address)
    };
    let (found, _) =
        post(vec![moved("307 Temporary Redirect", "/other"), moved("308 Permanent", "x?y"), answer()]).await;
    assert_eq!(found.as_deref(), Ok(&b"{}"[..]));
    for to in ["https://169.254.169.254/latest", "http://127.0.0.1/", "//127.0.0.1:1/", "https://localhost/"]
    {
        let (found, _) = post(vec![moved("307 Temporary Redirect", to), answer()]).await;
        let why = found.expect_err("another server");
        assert!(why.contains("leads to another server, so it is not followed"), "{why}");
        assert!(why.contains(to.rsplit("//").next().expect("a host")), "{why}");
    }
    let (found, _) = post(vec![moved("302 Found", "/other"), answer()]).await;
    assert!(found.expect_err("another method").contains("302"));
    let (found, _) = post((0..12).map(|_| moved("307 Again", "/hook")).collect()).await;
    assert!(found.expect_err("no end").ends_with("stopped after 10 redirects"));
}

#[tokio::test]
async fn what_is_packed_is_bounded_as_unpacked() {
    let packed = |length: usize| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&vec![b'x'; length]).expect("packs");
        whole("200 OK", "Content-Encoding: gzip\r\n", &packer.finish().expect("packs"))
    };
    let (server, hook) = saying(vec![packed(LARGEST_ANSWER), packed(LARGEST_ANSWER + 1)]).await;
    let at = || server.at();
    let post = || hook.post(&at, Bytes::from_static(b"{}"));
    assert_eq!(post().await.map(|body| body.len()), Ok(LARGEST_ANSWER));
    let error = post().await.expect_err("too long");
    assert!(error.0.ends_with("length limit exceeded"), "{error}");
}

#[tokio::test]
async fn only_five_answers_may_come_before_the_answer() {
    let early =
        |count: usize| [b"HTTP/1.1 103 Early\r\n\r\n".repeat(count), whole("200 OK", "", b"{}")].concat();
    let (server, hook) = saying(vec![early(5), early(6), early(100_000)]).await;
    let at = || server.at();
    let post = || hook.post(&at, Bytes::from_static(b"{}"));
    assert_eq!(post().await.as_deref(), Ok(&b"{}"[..]));
    for _ in 0..2 {
        let error = post().await.expect_err("too many");
        assert!(error.0.ends_with("too many 1xx informational responses"), "{error}");
    }
}

/// Answers over HTTP/2, and counts connections.
async fn multiplexed(listener: TcpListener, acceptor: TlsAcceptor, count: Arc<AtomicU32>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        count.fetch_add(1, Ordering::SeqCst);
        let acceptor = acceptor.clone();
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(async |request: Request<Incoming>| {
                Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::from(request.uri().to_string()))))
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

#[tokio::test]
async fn a_connection_of_http2_is_used_by_all() {
    let count = Arc::<AtomicU32>::default();
    let counted = count.clone();
    let names = ["127.0.0.1"];
    let server = Server::speaking(&names, 2100, &[b"h2"], |listener, acceptor| {
        multiplexed(listener, acceptor, counted)
    });
    let server = server.await;
    let url = format!("https://{}/hook", server.address);
    let endpoint = Endpoint::parse(&url).expect("a URL");
    let hook = Webhook::new(endpoint, server.certificate.as_bytes(), Duration::from_secs(30));
    let at = || server.at();
    let post = || hook.post(&at, Bytes::from_static(b"{}"));
    let want = format!("{url}?timeout=30s");
    assert_eq!(post().await.as_deref(), Ok(want.as_bytes()));
    let (one, two, three) = tokio::join!(post(), post(), post());
    assert!([one, two, three].into_iter().all(|found| found.as_deref() == Ok(want.as_bytes())));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let fetcher = Fetcher::new(server.certificate.as_bytes(), Duration::from_secs(30));
    for _ in 0..3 {
        assert_eq!(fetcher.get(&url).await.as_deref(), Ok(url.as_bytes()));
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
