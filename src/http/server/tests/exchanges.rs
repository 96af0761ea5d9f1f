//! Raw exchanges over HTTP/1.1, answered as Go's net/http answers them (tests/upstream/http makes them), and answers that come
//! before the body.

use std::io::Read as _;

use axum::http::{HeaderMap, header};
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use tokio::io::{ReadHalf, WriteHalf};

use super::*;
use crate::http::request::raw_query;

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

#[derive(Deserialize)]
struct Exchange {
    sent: String,
    #[serde(default)]
    ends: bool,
    answers: Vec<Answer>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Answer {
    status: u16,
    close: bool,
    #[serde(default)]
    seen: Option<Seen>,
    #[serde(default)]
    text: String,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Seen {
    method: String,
    host: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: String,
    broken: bool,
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

/// Whatever is about the connection, or about how the body comes.
fn is_of_connection(name: &str) -> bool {
    let names = ["connection", "content-length", "transfer-encoding", "expect", "trailer", "host"];
    names.contains(&name)
}

fn headers(map: &HeaderMap) -> Vec<(String, String)> {
    let all = map.iter().map(|(name, value)| (name.as_str().to_owned(), latin1(value.as_bytes())));
    let mut all: Vec<_> = all.filter(|(name, _)| !is_of_connection(name)).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Tells what it has seen. What begins with `/early` is answered before its body is read.
async fn echo(request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let host = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = host.or_else(|| parts.headers.get(header::HOST).map(|host| host.as_bytes()));
    let path = decoded(parts.uri.path()).unwrap();
    let query = raw_query(&parts).unwrap_or_default();
    let query = decoded(query).unwrap_or_else(|| query.as_bytes().to_vec());
    let is_early = path.starts_with(b"/early");
    let read = if is_early { Ok(Bytes::new()) } else { body.collect().await.map(|body| body.to_bytes()) };
    let seen = Seen {
        method: parts.method.to_string(),
        host: latin1(host.unwrap_or_default()),
        path: latin1(&path),
        query: latin1(&query),
        headers: headers(&parts.headers),
        broken: read.is_err(),
        body: latin1(&read.unwrap_or_default()),
    };
    let status = match is_early {
        true => StatusCode::FORBIDDEN,
        false if seen.broken => StatusCode::BAD_REQUEST,
        false => StatusCode::OK,
    };
    let body = Body::from(serde_json::to_vec(&seen).unwrap());
    Response::builder().status(status).header("handler", "echo").body(body).unwrap()
}

async fn echoing(site: &Site) -> Running {
    let router = Router::new().fallback(echo);
    Running::limited(site.tls(WallClock::default()), GRACE, Limits::default(), router).await
}

/// Sends bytes, and reads what comes until the server closes the connection.
async fn ask(stream: Stream, sent: Vec<u8>, ends: bool) -> Vec<u8> {
    let (mut reader, mut writer): (ReadHalf<_>, WriteHalf<_>) = tokio::io::split(stream);
    let send = async move {
        let _ = writer.write_all(&sent).await;
        if ends {
            let _ = writer.shutdown().await;
        }
        writer
    };
    let read = async move {
        let mut text = Vec::new();
        let _ = reader.read_to_end(&mut text).await;
        text
    };
    tokio::join!(send, read).1
}

fn answers(mut text: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while let Some(end) = memchr::memmem::find(text, b"\r\n\r\n") {
        let (head, rest) = (String::from_utf8_lossy(&text[..end]).to_lowercase(), &text[end + 4..]);
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length = field("content-length: ").map_or(0, |length| length.parse().unwrap());
        let (body, rest) = rest.split_at(length);
        text = rest;
        let status: u16 = head[9..12].parse().unwrap();
        if status < 200 {
            continue;
        }
        let is_handled = field("handler: ").is_some();
        answers.push(Answer {
            status,
            close: field("connection: ") == Some("close"),
            seen: is_handled.then(|| serde_json::from_slice(body).unwrap()),
            text: if is_handled { String::new() } else { latin1(body) },
        });
    }
    assert!(text.is_empty(), "{}", latin1(text));
    answers
}

/// Whether an answer says what Go's says. The words may be more. Go reads a body in chunks before it answers, and so knows that it
/// cannot be read.
fn agrees(answer: &Answer, go: &Answer) -> bool {
    let is_alike = (answer.status, &answer.seen) == (go.status, &go.seen);
    let is_early = answer.status == StatusCode::FORBIDDEN && !answer.close;
    let ends_alike = answer.close == go.close || is_early;
    is_alike && ends_alike && answer.text.contains(&go.text) && answer.text.is_empty() == go.seen.is_some()
}

#[tokio::test]
async fn exchanges_are_those_of_go() {
    let mut text = String::new();
    let packed = include_bytes!("../../../../testdata/http/server.json.gz");
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let cases: Vec<Exchange> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= 1000);
    let site = Site::new();
    let server = echoing(&site).await;
    let client = site.client(b"http/1.1", None);
    let mut wrong = Vec::new();
    for case in &cases {
        let sent: Vec<u8> = case.sent.chars().map(|c| c as u8).collect();
        let found = answers(&ask(server.connect(client.clone()).await, sent, case.ends).await);
        let is_right = found.len() == case.answers.len()
            && found.iter().zip(&case.answers).all(|(answer, go)| agrees(answer, go));
        if !is_right {
            let brief = |answers: &[Answer]| format!("{answers:?}").chars().take(700).collect::<String>();
            let sent: String = case.sent.chars().take(500).collect();
            wrong.push(format!("{sent:?}\n  here {}\n  Go   {}", brief(&found), brief(&case.answers)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn post(path: &str, fields: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes()
}

/// The answers to a client that reads nothing until it has sent everything.
async fn answer_after(stream: Stream, sent: &[u8]) -> Vec<Answer> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    writer.write_all(sent).await.unwrap();
    let mut text = Vec::new();
    reader.read_to_end(&mut text).await.unwrap();
    answers(&text)
}

#[tokio::test]
async fn an_answer_before_the_body_is_read_by_whoever_sends_the_body_first() {
    let site = Site::new();
    let server = echoing(&site).await;
    let client = site.client(b"http/1.1", None);
    for megabytes in [1_usize, 4, 60] {
        let length = megabytes << 20;
        let mut sent = post("/early", &format!("Content-Length: {length}\r\n"));
        sent.resize(sent.len() + length, b'x');
        let answers = answer_after(server.connect(client.clone()).await, &sent).await;
        let found: Vec<_> = answers.iter().map(|answer| (answer.status, answer.close)).collect();
        assert_eq!(found, [(403, true)], "{megabytes} MiB");
    }
    // Nobody knows how long it is, so the connection goes on.
    let mut sent = post("/early", "Transfer-Encoding: chunked\r\n");
    sent.extend(b"400000\r\n");
    sent.resize(sent.len() + 0x40_0000, b'x');
    sent.extend(b"\r\n0\r\n\r\nGET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let answers = answer_after(server.connect(client.clone()).await, &sent).await;
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [403, 200]);
    // What is too large for a head, too.
    let mut sent = b"GET / HTTP/1.1\r\nHost: h\r\nX: ".to_vec();
    sent.resize(4 << 20, b'x');
    let answers = answer_after(server.connect(client).await, &sent).await;
    assert_eq!(answers[0].status, 431);
    assert!(!answers[0].text.is_empty());
}

#[tokio::test]
async fn an_answer_before_the_body_is_read_over_http2_too() {
    let site = Site::new();
    let server = echoing(&site).await;
    let mut client = server.http2(site.client(b"h2", None)).await;
    let early = Request::post("https://kubernetes/early").body(Body::from(vec![b'x'; 8 << 20])).unwrap();
    assert_eq!(client.send_request(early).await.unwrap().status(), StatusCode::FORBIDDEN);
    let long = Request::get("https://kubernetes/echo").header("x", "v".repeat(1_000_000));
    let long = client.send_request(long.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(long.status(), StatusCode::OK);
    let seen: Seen = serde_json::from_str(&text(long).await).unwrap();
    assert_eq!(seen.headers[0].1.len(), 1_000_000);
}
