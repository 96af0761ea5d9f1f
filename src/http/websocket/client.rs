//! A WebSocket's client: what it is sent, and what it says.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink, split};

use super::messages::{CLOSE, NORMAL, PING, PROTOCOL_ERROR, Replies};

pub const MASKED: u8 = 0x80;
/// The most that a frame beside messages may hold.
pub const MOST_OF_CONTROL: u64 = 125;

/// Sends the body, whose frames are messages, until it ends or the client has gone.
pub async fn speak(client: OnUpgrade, body: Body, replies: Arc<Replies>) {
    let Ok(client) = client.await else { return };
    let (from, to) = split(TokioIo::new(client));
    let mut sent = pin!(send(to, body));
    let heard = pin!(listen(from, &replies));
    tokio::select! {
        _ = &mut sent => {}
        // One that says goodbye is answered.
        heard = heard => if heard.is_ok() { let _ = sent.await; },
    }
}

async fn send(mut to: impl AsyncWrite + Unpin, mut body: Body) -> io::Result<()> {
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            to.write_all(&data).await?;
            to.flush().await?;
        }
    }
    to.shutdown().await
}

/// Reads until the client says goodbye, or what makes no sense.
async fn listen(mut from: impl AsyncRead + Unpin, replies: &Replies) -> io::Result<()> {
    loop {
        let mut head = [0; 2];
        from.read_exact(&mut head).await?;
        let length = match head[1] & !MASKED {
            126 => from.read_u16().await?.into(),
            127 => from.read_u64().await?,
            length => length.into(),
        };
        if head[1] & MASKED == 0 {
            replies.end(PROTOCOL_ERROR);
            return Ok(());
        }
        let mut mask = [0; 4];
        from.read_exact(&mut mask).await?;
        match head[0] & 0xf {
            CLOSE => {
                replies.end(NORMAL);
                return Ok(());
            }
            PING => {
                let mut payload = Vec::new();
                (&mut from).take(length.min(MOST_OF_CONTROL)).read_to_end(&mut payload).await?;
                payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                skip(&mut from, length.saturating_sub(MOST_OF_CONTROL)).await?;
                replies.pong(&payload);
            }
            _ => skip(&mut from, length).await?,
        }
    }
}

async fn skip(from: &mut (impl AsyncRead + Unpin), length: u64) -> io::Result<()> {
    match copy(&mut from.take(length), &mut sink()).await? {
        skipped if skipped == length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
