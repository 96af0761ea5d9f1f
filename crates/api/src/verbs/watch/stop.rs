//! The end of a watch before its time.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// The end that somebody makes of a watch.
#[derive(Debug, Default)]
pub struct Stop {
    /// Cancelled when the watch ends.
    pub token: CancellationToken,
    /// The last event; set before that, if ever.
    pub why: OnceLock<Error>,
}
