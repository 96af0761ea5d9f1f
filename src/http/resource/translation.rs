//! exec and attach in a WebSocket of version 5, towards a kubelet that speaks SPDY alone: the channels of the one are the streams
//! of the other (upstream's `StreamTranslatorHandler`). What goes wrong once the client is connected is told in its channel
//! for errors.

use std::num::NonZeroU64;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version, header};
use axum::response::Response;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{interval, sleep, timeout};

use super::Context;
use super::tunnel::{PROTOCOL, SPDY, is_spdy};
use crate::api::ObjectMap;
use crate::api::error::Error;
use crate::api::subresource::connect::Location;
use crate::auth::authn::is_websocket;
use crate::http::request::header_text;
use crate::http::server::takeover::Takeover;
use crate::http::websocket;
use crate::http::websocket::channels::{Channels, Said, message, normal_end, pong};
use crate::metrics::LongRunning;
use crate::relay::dial::dial;
use crate::relay::exchange::exchange;
use crate::relay::spdy::{self, Frame, Opener};
use crate::tree::{Value, json};

const CHANNELS: &str = "v5.channel.k8s.io";
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Frames that wait for each side.
const ROOM: usize = 4;
const BETWEEN_PINGS: Duration = Duration::from_secs(5);
/// The time in which the last words have to be sent.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How much of a refusal, of an error, and of a size that is not whole is kept.
const MOST_TOLD: usize = 1 << 20;
const LONGEST_SIZE: usize = 4096;

/// Whether a client speaks the version in which channels are closed.
pub fn offers_channels(headers: &HeaderMap) -> bool {
    let offered = header_text(headers, header::SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    is_websocket(headers) && offered.split(',').any(|offered| offered.trim() == CHANNELS)
}

/// A session of a client with a container.
struct Session {
    location: Location,
    has_stdin: bool,
    has_stdout: bool,
    has_stderr: bool,
    has_terminal: bool,
    limit: Option<NonZeroU64>,
}

/// The result of a session: its status, and the code under which it is counted.
struct Outcome {
    status: Value,
    code: u16,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    #[serde(default, alias = "width")]
    width: u16,
    #[serde(default, alias = "height")]
    height: u16,
}

impl Context<'_> {
    pub(super) async fn translate(
        &self,
        location: Location,
        options: &ObjectMap,
        active: LongRunning,
    ) -> Result<Response, Error> {
        let client = self.client()?;
        let accept = match websocket::accept_tunnel(&self.parts.headers) {
            Ok(accept) => accept,
            Err(refusal) => {
                self.app.metrics.stream_translated(StatusCode::BAD_REQUEST.as_u16());
                return Ok(*refusal);
            }
        };
        let has = |name: &str| options.get(name) == Some(&Value::Bool(true));
        let session = Session {
            location,
            has_stdin: has("stdin"),
            has_stdout: has("stdout"),
            has_stderr: has("stderr"),
            has_terminal: has("tty"),
            limit: self.app.api.kubelets.config().most_bytes,
        };
        let (end, metrics) = (self.stream_end(), self.app.metrics.clone());
        let takeover = Takeover::new(async move {
            if let Some(Some(code)) = end.run_until(session.hold(client)).await {
                metrics.stream_translated(code);
            }
            drop(active);
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(CHANNELS));
        response.extensions_mut().insert(takeover);
        Ok(response)
    }
}

impl Session {
    /// Holds the session. Returns the code of its end, `None` if the client has gone before.
    async fn hold(self, client: OnUpgrade) -> Option<u16> {
        let (from_client, to_client) = split(TokioIo::new(client.await.ok()?));
        let (says, due) = channel(ROOM);
        let mut sent = Box::pin(send(to_client, due));
        let held = async {
            let lowest = if self.has_stdout {
                STDOUT
            } else if self.has_stderr {
                STDERR
            } else {
                ERROR
            };
            says.send(message(lowest, &[])).await.ok()?;
            let outcome = self.talk(Channels::new(from_client), &says).await?;
            says.send(message(ERROR, outcome.status.to_string().as_bytes())).await.ok()?;
            says.send(normal_end()).await.ok()?;
            Some(outcome.code)
        };
        let code = tokio::select! {
            () = &mut sent => return None,
            code = held => code,
        };
        drop(says);
        let _ = timeout(LAST_WORDS, sent).await;
        code
    }

    async fn talk<R: AsyncRead + Unpin>(&self, client: Channels<R>, says: &Sender<Bytes>) -> Option<Outcome> {
        let kubelet = match self.connect().await {
            Ok(kubelet) => kubelet,
            Err(why) => return Some(Outcome::failure(&why)),
        };
        let (mut from_kubelet, mut to_kubelet) = split(TokioIo::new(kubelet));
        let streams = match self.open(&mut to_kubelet).await {
            Ok(streams) => streams,
            Err(why) => return Some(Outcome::failure(&why)),
        };
        let (frames, due) = channel(ROOM);
        tokio::select! {
            () = send_to_kubelet(to_kubelet, due) => Some(Outcome::failure("the kubelet's connection is broken")),
            () = self.listen_to_client(client, &streams, &frames, says) => None,
            outcome = self.listen_to_kubelet(&mut from_kubelet, &streams, &frames, says) => outcome,
        }
    }

    /// The connection to the kubelet, once it speaks SPDY.
    async fn connect(&self) -> Result<Upgraded, String> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.location.target().parse().map_err(|error| format!("{error}"))?;
        *request.version_mut() = Version::HTTP_11;
        let headers = request.headers_mut();
        let host = HeaderValue::try_from(self.location.address.authority());
        headers.insert(header::HOST, host.map_err(|error| error.to_string())?);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, SPDY);
        for protocol in [CHANNELS, "v4.channel.k8s.io"] {
            headers.append(PROTOCOL, HeaderValue::from_static(protocol));
        }
        let answer = exchange(dial(&self.location.address).await?, request).await?;
        let upgrades = answer.status() == StatusCode::SWITCHING_PROTOCOLS && is_spdy(answer.headers());
        let (mut head, body) = answer.into_parts();
        if !upgrades {
            let read = timeout(LAST_WORDS, Limited::new(body, MOST_TOLD).collect()).await;
            let unread = "unable to upgrade connection: unable to read error from server response";
            let told = read.map_err(|_| unread)?.map_err(|_| unread)?.to_bytes();
            let status = serde_json::from_slice::<Value>(&told).ok().filter(|told| told["kind"] == "Status");
            let message = status.as_ref().and_then(|status| status["message"].as_str());
            let told =
                message.map_or_else(|| String::from_utf8_lossy(&told).trim().to_owned(), str::to_owned);
            return Err(format!("unable to upgrade connection: {told}"));
        }
        let (_, mut driven) = body.into_parts();
        let upgraded =
            head.extensions.remove::<OnUpgrade>().ok_or("the kubelet's connection cannot be upgraded")?;
        driven.until(upgraded).await.map_err(|error| error.to_string())
    }

    /// Opens the streams of the session: their numbers, by channel.
    async fn open(&self, to: &mut (impl AsyncWrite + Unpin)) -> Result<[Option<u32>; 5], String> {
        let mut opener = Opener::new()?;
        let mut streams = [None; 5];
        for (is_wanted, channel, name) in [
            (true, ERROR, "error"),
            (self.has_stdin, STDIN, "stdin"),
            (self.has_stdout, STDOUT, "stdout"),
            // A terminal has one stream of output.
            (self.has_stderr && !self.has_terminal, STDERR, "stderr"),
            (self.has_terminal, RESIZE, "resize"),
        ] {
            if is_wanted {
                let (stream, frame) = opener.open("streamtype", name)?;
                to.write_all(&frame).await.map_err(|error| error.to_string())?;
                streams[usize::from(channel)] = Some(stream);
            }
        }
        to.flush().await.map_err(|error| error.to_string())?;
        Ok(streams)
    }

    /// Passes on what the client says, until it goes.
    async fn listen_to_client<R: AsyncRead + Unpin>(
        &self,
        mut client: Channels<R>,
        streams: &[Option<u32>; 5],
        frames: &Sender<Vec<u8>>,
        says: &Sender<Bytes>,
    ) {
        let mut stdin = streams[usize::from(STDIN)];
        let (mut resize, mut size) = (streams[usize::from(RESIZE)], Vec::new());
        while let Ok(said) = client.next().await {
            let is_passed_on = match said {
                Said::Piece { channel: STDIN, bytes } => match stdin {
                    Some(stream) => {
                        self.rest(bytes.len()).await;
                        frames.send(spdy::data(stream, &bytes, false)).await.is_ok()
                    }
                    None => true,
                },
                Said::Closed(STDIN) => match stdin.take() {
                    Some(stream) => frames.send(spdy::data(stream, &[], true)).await.is_ok(),
                    None => true,
                },
                Said::Piece { channel: RESIZE, bytes } => match resize {
                    Some(stream) => match sizes(&mut size, &bytes) {
                        Some(sizes) if sizes.is_empty() => true,
                        Some(sizes) => frames.send(spdy::data(stream, &sizes, false)).await.is_ok(),
                        None => {
                            resize = None;
                            true
                        }
                    },
                    None => true,
                },
                Said::Piece { .. } => true,
                Said::Closed(channel) => channel <= RESIZE,
                Said::Ping(payload) => says.send(pong(&payload)).await.is_ok(),
                Said::End(goodbye) => {
                    let _ = says.send(goodbye).await;
                    false
                }
            };
            if !is_passed_on {
                return;
            }
        }
    }

    /// Passes on what the kubelet says, until all of its streams have ended.
    async fn listen_to_kubelet(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        streams: &[Option<u32>; 5],
        frames: &Sender<Vec<u8>>,
        says: &Sender<Bytes>,
    ) -> Option<Outcome> {
        let mut open = [STDOUT, STDERR, ERROR].map(|channel| (channel, streams[usize::from(channel)]));
        let mut error = Vec::new();
        while open.iter().any(|(_, stream)| stream.is_some()) {
            let Ok(frame) = spdy::read(from).await else {
                return Some(Outcome::failure("the kubelet's connection is broken"));
            };
            let (stream, payload, is_last) = match frame {
                Frame::Data { stream, payload, is_last } => (stream, payload, is_last),
                Frame::Reset { stream } => (stream, Vec::new(), true),
                // Odd ones are answers.
                Frame::Ping(number) if number % 2 == 0 => {
                    frames.send(spdy::ping(number)).await.ok()?;
                    continue;
                }
                Frame::Ping(_) | Frame::GoAway | Frame::Other => continue,
            };
            let Some((channel, known)) = open.iter_mut().find(|(_, known)| *known == Some(stream)) else {
                continue;
            };
            match *channel {
                ERROR if error.len() < MOST_TOLD => error.extend(payload),
                ERROR => {}
                _ if payload.is_empty() => {}
                channel => {
                    self.rest(payload.len()).await;
                    says.send(message(channel, &payload)).await.ok()?;
                }
            }
            if is_last {
                *known = None;
            }
        }
        Some(Outcome::of(&error))
    }

    /// Holds each direction to the limit.
    async fn rest(&self, bytes: usize) {
        if let Some(limit) = self.limit {
            sleep(Duration::from_secs_f64(bytes as f64 / limit.get() as f64)).await;
        }
    }
}

impl Outcome {
    fn failure(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let status = json!({"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError",
            "details": {"causes": [{"message": why}]}, "code": 500});
        Self { status, code: 500 }
    }

    /// The outcome that the kubelet has sent in the error stream at the end.
    fn of(error: &[u8]) -> Self {
        let success = || Self { status: json!({"metadata": {}, "status": "Success"}), code: 200 };
        if error.is_empty() {
            return success();
        }
        let wrong = |why: &str| Self::failure(&format!("error stream protocol error: {why}"));
        let told = match serde_json::from_slice::<Value>(error) {
            Ok(told) => told,
            Err(why) => {
                return wrong(&format!("{why} in {}", crate::gotext::quote(&String::from_utf8_lossy(error))));
            }
        };
        match told["status"].as_str() {
            Some("Success") => success(),
            Some("Failure") if told["reason"] == "NonZeroExitCode" => {
                let causes = told["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
                let Some(cause) = causes.iter().find(|cause| cause["reason"] == "ExitCode") else {
                    return wrong("no ExitCode cause given");
                };
                let text = cause["message"].as_str().unwrap_or_default();
                let Ok(code) = text.parse::<u8>() else {
                    return wrong(&format!("invalid exit code value {}", crate::gotext::quote(text)));
                };
                let message = format!(
                    "command terminated with non-zero exit code: command terminated with exit code {code}"
                );
                let causes = json!([{"reason": "ExitCode", "message": code.to_string()}]);
                let status = json!({"metadata": {}, "status": "Failure", "message": message,
                    "reason": "NonZeroExitCode", "details": {"causes": causes}});
                Self { status, code: 200 }
            }
            Some("Failure") => Self::failure(told["message"].as_str().unwrap_or_default()),
            _ => wrong("unknown error"),
        }
    }
}

/// The sizes that have come, as they are passed on; `None` after what is no size.
fn sizes(begun: &mut Vec<u8>, bytes: &[u8]) -> Option<Vec<u8>> {
    begun.extend_from_slice(bytes);
    let mut found = Vec::new();
    let mut read = serde_json::Deserializer::from_slice(begun).into_iter::<Size>();
    let mut end = 0;
    loop {
        match read.next() {
            Some(Ok(size)) => {
                serde_json::to_writer(&mut found, &size).ok()?;
                found.push(b'\n');
                end = read.byte_offset();
            }
            Some(Err(error)) if !error.is_eof() => return None,
            Some(Err(_)) | None => break,
        }
    }
    begun.drain(..end);
    (begun.len() <= LONGEST_SIZE).then_some(found)
}

async fn send(mut to: impl AsyncWrite + Unpin, mut due: Receiver<Bytes>) {
    while let Some(frame) = due.recv().await {
        if to.write_all(&frame).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Sends frames, and pings between them.
async fn send_to_kubelet(mut to: impl AsyncWrite + Unpin, mut due: Receiver<Vec<u8>>) {
    let mut pings = interval(BETWEEN_PINGS);
    let mut number = 1;
    pings.tick().await;
    loop {
        let frame = tokio::select! {
            frame = due.recv() => match frame {
                Some(frame) => frame,
                None => return,
            },
            _ = pings.tick() => {
                number += 2;
                spdy::ping(number)
            }
        };
        if to.write_all(&frame).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_in_pieces() {
        let mut begun = Vec::new();
        assert_eq!(sizes(&mut begun, b"{\"Width\":8").as_deref(), Some(&b""[..]));
        let found = sizes(&mut begun, b"0,\"Height\":24}{\"width\":1,\"height\":2} ").expect("sizes");
        assert_eq!(
            String::from_utf8_lossy(&found),
            "{\"Width\":80,\"Height\":24}\n{\"Width\":1,\"Height\":2}\n"
        );
        assert_eq!(sizes(&mut begun, b"{}").as_deref(), Some(&b"{\"Width\":0,\"Height\":0}\n"[..]));
        assert_eq!(sizes(&mut begun, b"x"), None);
    }

    #[test]
    fn ends_are_told_in_upstream_s_words() {
        for (error, want) in [
            ("", r#"{"metadata":{},"status":"Success"}"#),
            (r#"{"status":"Success"}"#, r#"{"metadata":{},"status":"Success"}"#),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#,
                r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 42","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#,
            ),
            (
                r#"{"status":"Failure","message":"gone"}"#,
                r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: gone","reason":"InternalError","details":{"causes":[{"message":"gone"}]},"code":500}"#,
            ),
        ] {
            assert_eq!(Outcome::of(error.as_bytes()).status.to_string(), want);
        }
        for wrong in ["x", "{}", r#"{"status":"Failure","reason":"NonZeroExitCode"}"#] {
            let status = Outcome::of(wrong.as_bytes()).status;
            let text = status["message"].as_str().unwrap_or_default();
            assert!(text.starts_with("Internal error occurred: error stream protocol error: "), "{text}");
        }
    }
}
