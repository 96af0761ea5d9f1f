//! exec and attach in a WebSocket of version 5, towards a kubelet that speaks SPDY alone: the channels of the one are the streams
//! of the other (upstream's `StreamTranslatorHandler`). What goes wrong once the client is connected is told in its channel
//! for errors.

mod outcome;
mod terminal;

use std::num::NonZeroU64;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version, header};
use axum::response::Response;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{interval, sleep, timeout};

use self::outcome::Outcome;
use self::terminal::sizes;
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
use crate::tree::Value;

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
/// How much of a refusal, and of an error, is kept, in bytes.
const MOST_TOLD: usize = 1 << 20;

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
        let headers = websocket::open(accept, Some(HeaderValue::from_static(CHANNELS)));
        Ok(takeover.response(headers, Body::empty()))
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
