//! The log backend: a line per event, to a file or to the standard output.

mod file;

use std::io::Write as _;
use std::path::PathBuf;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::file::File;
use super::backend::Delivery;
use super::config::{LogConfig, LogFormat, LogTarget};
use super::event::{Event, standing_alone};
use crate::tasks::Tasks;

/// Requests whose lines wait to be written; more wait for room.
const WAITING: usize = 1024;

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("ensureLogFile: cannot open the audit log {path:?}: {source}")]
pub struct OpenError {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes lines on a thread of its own, those of many requests at once.
pub struct Log {
    format: LogFormat,
    lines: mpsc::Sender<Message>,
    /// Cancelled when the thread has ended.
    ended: CancellationToken,
}

enum Message {
    /// Lines to write, and who wants to know whether that worked.
    Write(Vec<Bytes>, oneshot::Sender<Result<(), String>>),
    End,
}

enum Target {
    Stdout,
    File(File),
}

impl Log {
    /// Opens the file and starts the thread that writes it.
    pub fn open(config: &LogConfig, tasks: &Tasks) -> Result<Self, OpenError> {
        let target = match &config.target {
            LogTarget::Stdout => Target::Stdout,
            LogTarget::File { path, rotation } => {
                let file = File::open(path.clone(), *rotation);
                Target::File(file.map_err(|source| OpenError { path: path.clone(), source })?)
            }
        };
        let (lines, receiver) = mpsc::channel(WAITING);
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        tasks.spawn("audit-log", async move {
            let _end = end;
            let _ = tokio::task::spawn_blocking(move || write(target, receiver)).await;
        });
        Ok(Self { format: config.format, lines, ended })
    }
}

impl Delivery for Log {
    const PLUGIN: &'static str = "log";
    type Entry = Bytes;

    fn entry(&self, event: &Event<'_>, item: Bytes) -> Bytes {
        let mut line = match self.format {
            LogFormat::Json => standing_alone(&item),
            LogFormat::Legacy => event.legacy().into_bytes(),
        };
        line.push(b'\n');
        line.into()
    }

    async fn deliver(&self, lines: Vec<Bytes>) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let sent = self.lines.send(Message::Write(lines, answer)).await;
        sent.map_err(|_| "the audit log is closed".to_owned())?;
        answered.await.unwrap_or_else(|_| Err("the audit log is closed".to_owned()))
    }

    async fn close(&self) {
        let _ = self.lines.send(Message::End).await;
        self.ended.cancelled().await;
    }
}

/// Writes what arrives until the end: everything that waits goes into one write.
fn write(mut target: Target, mut messages: mpsc::Receiver<Message>) {
    while let Some(first) = messages.blocking_recv() {
        let (mut lines, mut waiting, mut ends) = (Vec::new(), Vec::new(), false);
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Write(more, answer) => {
                    lines.extend(more);
                    waiting.push(answer);
                }
                Message::End => ends = true,
            }
            next = messages.try_recv().ok();
        }
        let written = target.write(&lines).map_err(|error| error.to_string());
        for answer in waiting {
            let _ = answer.send(written.clone());
        }
        if ends {
            return;
        }
    }
}

impl Target {
    fn write(&mut self, lines: &[Bytes]) -> std::io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&lines.concat())?;
                stdout.flush()
            }
            Self::File(file) => file.write(lines),
        }
    }
}
