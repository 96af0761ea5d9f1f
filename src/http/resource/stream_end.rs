//! The ends of streams that have none of their own: a server that drains, and a right or a credential that is taken away.

use std::sync::Arc;

use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::api::error::Error;
use crate::auth::revocation::Permit;
use crate::http::door::Door;
use crate::http::server::ConnectionInfo;

/// The reason why a stream ends.
pub struct StreamEnd {
    pub token: CancellationToken,
    /// The permit of the stream. It can be revoked as long as it is kept.
    permit: Option<Permit>,
}

impl StreamEnd {
    /// The end of a stream that begins now: the drain of the connection's server, or that the request's permit is revoked.
    /// Whoever asks a server that drains already is served as long as the connection stands.
    pub fn of(door: &Door, parts: &Parts) -> Self {
        let draining = draining(door, parts);
        let draining = if draining.is_cancelled() { CancellationToken::new() } else { draining };
        Self::with(&draining, parts)
    }

    /// The end of a stream that goes on while the server drains.
    pub fn of_permit(parts: &Parts) -> Self {
        Self::with(&CancellationToken::new(), parts)
    }

    fn with(other: &CancellationToken, parts: &Parts) -> Self {
        let (token, permit) = (other.child_token(), parts.extensions.get::<Permit>().cloned());
        permit.iter().for_each(|permit| permit.ends(token.clone()));
        Self { token, permit }
    }

    /// Runs until the end of the stream.
    pub async fn run_until<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.token.run_until_cancelled(work).await
    }

    /// Why the stream ends.
    pub fn why(&self) -> &'static str {
        match &self.permit {
            Some(permit) if permit.revoked().is_err() => {
                "the credential or the right of the request has ended"
            }
            _ => "the server is shutting down",
        }
    }
}

impl Context<'_> {
    pub(super) fn stream_end(&self) -> StreamEnd {
        StreamEnd::of(&self.app.door, self.parts)
    }

    pub(super) fn revocation(&self) -> StreamEnd {
        StreamEnd::of_permit(self.parts)
    }

    /// Fails if the permit was revoked meanwhile. Asked before a stream begins: what changes later ends it.
    pub(super) async fn check_permit(&self) -> Result<(), Error> {
        check_permit(self.parts).await
    }

    pub(super) fn permit(&self) -> Option<Permit> {
        self.parts.extensions.get::<Permit>().cloned()
    }

    pub(super) fn draining(&self) -> CancellationToken {
        draining(&self.app.door, self.parts)
    }
}

/// Fails if the permit of a long-running request was revoked since the door has let it in.
pub async fn check_permit(parts: &Parts) -> Result<(), Error> {
    match parts.extensions.get::<Permit>() {
        Some(permit) => Ok(permit.check().await?),
        None => Ok(()),
    }
}

/// When the request's server begins to drain, or its listener. A connection that leads to one server has a token of its
/// own; one that leads to several has that of each.
fn draining(door: &Door, parts: &Parts) -> CancellationToken {
    match (parts.extensions.get::<Arc<ConnectionInfo>>(), &door.listener_shutdown) {
        (Some(_), Some(shutdown)) => shutdown.clone(),
        (Some(connection), None) => connection.draining.clone(),
        (None, _) => door.shutdown.clone(),
    }
}
