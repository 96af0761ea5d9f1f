//! The log backend: a line per event, to a file or to the standard output.

mod file;
mod gathering;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use self::file::File;
use self::gathering::{Gathering, Target};
use super::backend::Delivery;
use super::config::{LogConfig, LogFormat, LogTarget};
use super::event::{Event, line_of};
use crate::tasks::Tasks;

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("ensureLogFile: cannot open the audit log {path:?}: {source}")]
pub struct OpenError {
    path: PathBuf,
    source: std::io::Error,
}

/// The log; how its lines are written, [`Gathering`] says.
pub struct Log {
    format: LogFormat,
    gathering: Arc<Gathering>,
    /// Cancelled when the thread that writes to a slow disk has ended.
    ended: CancellationToken,
}

impl Log {
    /// Opens the file and starts the thread that writes it while the disk is slow.
    pub fn open(config: &LogConfig, tasks: &Tasks) -> Result<Self, OpenError> {
        let target = match &config.target {
            LogTarget::Stdout => Target::Stdout,
            LogTarget::File { path, rotation } => {
                let file = File::open(path.clone(), *rotation);
                Target::File(file.map_err(|source| OpenError { path: path.clone(), source })?)
            }
        };
        let (gathering, work) = Gathering::new(target, tasks);
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        tasks.spawn("audit-log", async move {
            let _end = end;
            let _ = tokio::task::spawn_blocking(work).await;
        });
        Ok(Self { format: config.format, gathering, ended })
    }
}

impl Delivery for Log {
    const PLUGIN: &'static str = "log";
    type Entry = Bytes;

    fn entry(&self, event: &Event<'_>, item: Bytes) -> Bytes {
        match self.format {
            LogFormat::Json => line_of(&item).into(),
            LogFormat::Legacy => (event.legacy() + "\n").into(),
        }
    }

    fn defer(&self, line: Bytes) -> Result<(), Bytes> {
        self.gathering.add(line)
    }

    fn hurry(&self) {
        self.gathering.hurry();
    }

    async fn deliver(&self, lines: Vec<Bytes>) -> Result<(), String> {
        self.gathering.write(lines).await
    }

    async fn close(&self) {
        self.gathering.close().await;
        self.ended.cancelled().await;
    }
}
