//! Signals, and the end of the standard input.

use std::io::{self, Read as _};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::config::Lifetime;

/// The events that ask a server to end: SIGTERM and SIGINT, caught from creation on, and the end of the standard input if it
/// counts.
pub(super) struct Ends {
    terminate: Signal,
    interrupt: Signal,
    /// Sent once. `None` if it does not count, or has been reported.
    stdin: Option<oneshot::Receiver<()>>,
}

impl Ends {
    pub(super) fn catch(lifetime: Lifetime) -> io::Result<Self> {
        let stdin = match lifetime {
            Lifetime::UntilSignal => None,
            Lifetime::UntilStdinEnds => Some(end_of_stdin()?),
        };
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt, stdin })
    }

    /// The name of the next event.
    pub(super) async fn next(&mut self) -> &'static str {
        let Self { terminate, interrupt, stdin } = self;
        let ended = async {
            match &mut *stdin {
                Some(stdin) => stdin.await.ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = ended => {
                *stdin = None;
                "end of standard input"
            }
        }
    }
}

/// Reads the standard input to its end in a thread that nobody waits for: the read cannot be cancelled.
fn end_of_stdin() -> io::Result<oneshot::Receiver<()>> {
    let (ended, receiver) = oneshot::channel();
    std::thread::Builder::new().name("rowplane-stdin".to_owned()).spawn(move || {
        let (mut stdin, mut buffer) = (io::stdin().lock(), [0; 1024]);
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                Ok(_) | Err(_) => {}
            }
        }
        // Nobody may listen any more, since the server is ending.
        let _ = ended.send(());
    })?;
    Ok(receiver)
}
