//! Connections that a server of konnectivity makes (`ProxyService` of apiserver-network-proxy): one stream of gRPC for each,
//! as upstream's single-use tunnels.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::Uri;
use hyper::client::conn::http2;
use hyper::http::uri::PathAndQuery;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::{Message, Oneof};
use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::Stream;
use crate::grpc::CallError;

/// Bytes that wait on this side for either end; also the largest piece.
const BUFFER: usize = 32 << 10;
/// How long the proxy may take to close a connection, as upstream has it.
const CLOSE_TIME: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(enumeration = "PacketType", tag = "1")]
    r#type: i32,
    #[prost(oneof = "Payload", tags = "2, 3, 4, 5, 6, 7")]
    payload: Option<Payload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum PacketType {
    DialRequest = 0,
    DialResponse = 1,
    CloseRequest = 2,
    CloseResponse = 3,
    Data = 4,
    DialClose = 5,
    Drain = 6,
}

#[derive(Clone, PartialEq, Oneof)]
enum Payload {
    #[prost(message, tag = "2")]
    DialRequest(DialRequest),
    #[prost(message, tag = "3")]
    DialResponse(DialResponse),
    #[prost(message, tag = "4")]
    Data(Data),
    #[prost(message, tag = "5")]
    CloseRequest(CloseRequest),
    #[prost(message, tag = "6")]
    CloseResponse(CloseResponse),
    #[prost(message, tag = "7")]
    DialClose(DialClose),
}

#[derive(Clone, PartialEq, Eq, Message)]
struct DialRequest {
    #[prost(string, tag = "1")]
    protocol: String,
    #[prost(string, tag = "2")]
    address: String,
    #[prost(int64, tag = "3")]
    random: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct DialResponse {
    #[prost(string, tag = "1")]
    error: String,
    #[prost(int64, tag = "2")]
    connection: i64,
    #[prost(int64, tag = "3")]
    random: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Data {
    #[prost(int64, tag = "1")]
    connection: i64,
    #[prost(string, tag = "2")]
    error: String,
    #[prost(bytes = "bytes", tag = "3")]
    data: Bytes,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct CloseRequest {
    #[prost(int64, tag = "1")]
    connection: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct CloseResponse {
    #[prost(string, tag = "1")]
    error: String,
    #[prost(int64, tag = "2")]
    connection: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct DialClose {
    #[prost(int64, tag = "1")]
    random: i64,
}

/// Lets the proxy connect to `server`.
pub(super) async fn tunnel(proxy: Stream, server: &str) -> Result<Stream, String> {
    let (to_proxy, packets) = mpsc::channel::<Packet>(1);
    #[expect(clippy::disallowed_methods, reason = "it only has to differ from others")]
    let random = rand::rng().random_range(0..i64::MAX);
    let request = DialRequest { protocol: "tcp".to_owned(), address: server.to_owned(), random };
    // A server may answer the call itself only with its first packet.
    send(&to_proxy, PacketType::DialRequest, Payload::DialRequest(request)).await;
    let mut answers = open(proxy, packets).await.map_err(told)?;
    let connection = dialled(&mut answers, random).await?;
    let (here, there) = tokio::io::duplex(BUFFER);
    tokio::spawn(carry(there, connection, to_proxy, answers));
    Ok(Box::new(here))
}

/// Begins the stream of packets to and fro.
async fn open(proxy: Stream, mut packets: mpsc::Receiver<Packet>) -> Result<Streaming<Packet>, Status> {
    let proxy = TokioIo::new(proxy);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), proxy).await.map_err(broken)?;
    // It ends once the stream, which holds the sender, is dropped.
    tokio::spawn(connection);
    let service = service_fn(move |request| {
        let answer = sender.send_request(request);
        async { answer.await.map(|answer| answer.map(|body| body.map_err(broken))).map_err(broken) }
    });
    let mut client = Grpc::with_origin(service, Uri::from_static("http://localhost"));
    let packets = stream::poll_fn(move |context| packets.poll_recv(context));
    let path = PathAndQuery::from_static("/ProxyService/Proxy");
    let codec = ProstCodec::<Packet, Packet>::default();
    Ok(client.streaming(Request::new(packets), path, codec).await?.into_inner())
}

/// The number that the proxy gives to the connection that it has made.
async fn dialled(answers: &mut Streaming<Packet>, random: i64) -> Result<i64, String> {
    loop {
        let packet = answers.message().await.map_err(told)?;
        match packet.ok_or("tunnel is closed")?.payload {
            Some(Payload::DialResponse(answer)) if answer.random == random => {
                return if answer.error.is_empty() { Ok(answer.connection) } else { Err(answer.error) };
            }
            Some(Payload::DialClose(_)) => return Err("dial closed".to_owned()),
            _ => {}
        }
    }
}

async fn send(to_proxy: &mpsc::Sender<Packet>, kind: PacketType, payload: Payload) -> bool {
    to_proxy.send(Packet { r#type: kind.into(), payload: Some(payload) }).await.is_ok()
}

/// Carries what is written on this side to the proxy, and back, until either ends.
async fn carry(
    here: DuplexStream,
    connection: i64,
    to_proxy: mpsc::Sender<Packet>,
    mut answers: Streaming<Packet>,
) {
    let (mut written, mut read) = tokio::io::split(here);
    let outwards = async {
        let mut buffer = vec![0; BUFFER];
        while let Ok(length @ 1..) = written.read(&mut buffer).await {
            let data = Bytes::copy_from_slice(&buffer[..length]);
            let data = Data { connection, error: String::new(), data };
            if !send(&to_proxy, PacketType::Data, Payload::Data(data)).await {
                return;
            }
        }
        // The proxy answers with what it still has, and CLOSE_RSP.
        send(&to_proxy, PacketType::CloseRequest, Payload::CloseRequest(CloseRequest { connection })).await;
    };
    let inwards = async {
        while let Ok(Some(packet)) = answers.message().await {
            let is_taken = match packet.payload {
                Some(Payload::Data(data)) if data.connection == connection => {
                    read.write_all(&data.data).await.is_ok()
                }
                Some(Payload::CloseResponse(_)) => false,
                _ => true,
            };
            if !is_taken {
                break;
            }
        }
        let _ = read.shutdown().await;
    };
    let (mut outwards, mut inwards) = (pin!(outwards), pin!(inwards));
    tokio::select! {
        () = &mut inwards => {}
        () = &mut outwards => drop(tokio::time::timeout(CLOSE_TIME, inwards).await),
    }
}

fn broken(error: hyper::Error) -> Status {
    Status::unavailable(error.to_string())
}

fn told(status: Status) -> String {
    CallError::from(status).to_string()
}
