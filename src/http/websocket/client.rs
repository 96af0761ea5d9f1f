//! A WebSocket's client: what it is sent, and what it says.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, split};

use super::frames::{Frames, NORMAL, PROTOCOL_ERROR, Part};
use super::messages::Replies;

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

/// Reads until the client says goodbye, or what makes no sense. A ping that is too long is answered by its beginning, as
/// upstream does.
async fn listen(from: impl AsyncRead + Unpin, replies: &Replies) -> io::Result<()> {
    let (mut frames, mut ignored) = (Frames::new(from), [0; 256]);
    loop {
        match frames.next(&mut ignored).await? {
            Part::Ping { payload, .. } => replies.pong(&payload),
            Part::Close => break replies.end(NORMAL),
            Part::Malformed => break replies.end(PROTOCOL_ERROR),
            Part::Message(_) | Part::Bytes(_) | Part::End => {}
        }
    }
    Ok(())
}
