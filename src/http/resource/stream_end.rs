//! The ends of streams that have none of their own: a server that drains, and a right or a credential that is taken away.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Context;
use crate::api::error::Error;
use crate::auth::revocation::Permit;
use crate::http::server::ConnectionInfo;

/// The reason why a stream ends.
pub struct StreamEnd {
    pub token: CancellationToken,
    /// The permit of the stream. It can be revoked as long as it is kept.
    permit: Option<Permit>,
}

impl StreamEnd {
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
    /// The end of a stream that begins now: the drain of the connection's server, or that the request's permit is revoked.
    /// Whoever asks a server that drains already is served as long as the connection stands.
    pub(super) fn stream_end(&self) -> StreamEnd {
        let draining = self.draining();
        let draining = if draining.is_cancelled() { CancellationToken::new() } else { draining };
        self.ending_with(draining)
    }

    /// The end of a stream that goes on while the server drains.
    pub(super) fn revocation(&self) -> StreamEnd {
        self.ending_with(CancellationToken::new())
    }

    fn ending_with(&self, other: CancellationToken) -> StreamEnd {
        let (token, permit) = (other.child_token(), self.permit());
        permit.iter().for_each(|permit| permit.ends(token.clone()));
        StreamEnd { token, permit }
    }

    /// Fails if the permit was revoked meanwhile. Asked before a stream begins: what changes later ends it.
    pub(super) async fn check_permit(&self) -> Result<(), Error> {
        match self.permit() {
            Some(permit) => Ok(permit.check().await?),
            None => Ok(()),
        }
    }

    pub(super) fn permit(&self) -> Option<Permit> {
        self.parts.extensions.get::<Permit>().cloned()
    }

    /// When the request's server begins to drain, or its listener. A connection that leads to one server has a token of its
    /// own; one that leads to several has that of each.
    pub(super) fn draining(&self) -> CancellationToken {
        let door = &self.app.door;
        match (self.parts.extensions.get::<Arc<ConnectionInfo>>(), &door.listener_shutdown) {
            (Some(_), Some(shutdown)) => shutdown.clone(),
            (Some(connection), None) => connection.draining.clone(),
            (None, _) => door.shutdown.clone(),
        }
    }
}
