//! The log backend: a line per event, to a file or to the standard output.

mod file;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::file::File;
use super::backend::Delivery;
use super::config::{LogConfig, LogFormat, LogTarget};
use super::event::{Event, line_of};
use crate::tasks::Tasks;

/// Requests whose lines wait to be written; more wait for room.
const WAITING: usize = 1024;
/// A write that takes longer shows a disk that is slow.
const QUICK: Duration = Duration::from_millis(1);
/// How long a disk counts as slow.
const SLOW_FOR: Duration = Duration::from_secs(1);

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("ensureLogFile: cannot open the audit log {path:?}: {source}")]
pub struct OpenError {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes the line of a request where the request is answered, since the page cache takes a line in a few microseconds
/// and two changes of thread cost more. While the disk is slow, another line is being written, or the file has to be put
/// aside, lines go to a thread of their own, which writes those of many requests at once: so a disk that hangs stops one
/// request that had begun its write, and no other.
pub struct Log {
    format: LogFormat,
    open: Arc<Mutex<Open>>,
    lines: mpsc::Sender<Message>,
    /// Cancelled when the thread has ended.
    ended: CancellationToken,
}

enum Message {
    /// Lines to write, and who wants to know whether that worked.
    Write(Vec<Bytes>, oneshot::Sender<Result<(), String>>),
    End,
}

/// What lines are written to.
struct Open {
    target: Target,
    /// Until when the disk counts as slow.
    slow_until: Option<Instant>,
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
        let open = Arc::new(Mutex::new(Open { target, slow_until: None }));
        let (lines, receiver) = mpsc::channel(WAITING);
        let ended = CancellationToken::new();
        let (end, written) = (ended.clone().drop_guard(), open.clone());
        tasks.spawn("audit-log", async move {
            let _end = end;
            let _ = tokio::task::spawn_blocking(move || write(&written, receiver)).await;
        });
        Ok(Self { format: config.format, open, lines, ended })
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

    fn deliver_at_once(&self, line: Bytes) -> Result<Result<(), String>, Bytes> {
        match self.open.try_lock() {
            Ok(mut open) => open.write_at_once(line),
            Err(_) => Err(line),
        }
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
fn write(open: &Mutex<Open>, mut messages: mpsc::Receiver<Message>) {
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
        let written = open.lock().unwrap_or_else(PoisonError::into_inner).write(&lines);
        for answer in waiting {
            let _ = answer.send(written.clone());
        }
        if ends {
            return;
        }
    }
}

impl Open {
    /// Writes a line, unless that may take long.
    fn write_at_once(&mut self, line: Bytes) -> Result<Result<(), String>, Bytes> {
        let begun = Instant::now();
        let is_quick = self.slow_until.is_none_or(|until| begun >= until) && self.target.takes_at_once(&line);
        if is_quick { Ok(self.timed(begun, &[line])) } else { Err(line) }
    }

    fn write(&mut self, lines: &[Bytes]) -> Result<(), String> {
        self.timed(Instant::now(), lines)
    }

    fn timed(&mut self, begun: Instant, lines: &[Bytes]) -> Result<(), String> {
        let written = self.target.write(lines);
        let ended = Instant::now();
        if ended.duration_since(begun) > QUICK {
            self.slow_until = Some(ended + SLOW_FOR);
        }
        written.map_err(|error| error.to_string())
    }
}

impl Target {
    /// Whether the line goes into a file that is on a disk and is not full.
    fn takes_at_once(&self, line: &Bytes) -> bool {
        matches!(self, Self::File(file) if file.is_regular() && file.has_room(line))
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::config::{self, Batching, Mode, Rotation};

    /// Not used.
    const BATCHES: Batching =
        Batching { buffer: 1, largest: 1, wait: Duration::ZERO, throttle: None, overlap: false };

    fn config(path: PathBuf) -> LogConfig {
        let rotation = Rotation { largest: 0, days: 0, backups: 0, compress: false };
        LogConfig {
            target: LogTarget::File { path, rotation },
            format: LogFormat::Json,
            delivery: config::Delivery { mode: Mode::Blocking, batches: BATCHES, truncation: None },
        }
    }

    #[tokio::test]
    async fn a_line_waits_on_the_thread_while_the_disk_hangs_or_is_slow() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let tasks = Tasks::new();
        let log = Log::open(&config(path.clone()), &tasks).expect("an open log");
        let line = |text: &'static str| Bytes::from_static(text.as_bytes());
        assert_eq!(log.deliver_at_once(line("a\n")), Ok(Ok(())));
        // Another request writes, for ever as it seems.
        let hangs = log.open.lock().expect("a lock");
        assert_eq!(log.deliver_at_once(line("b\n")), Err(line("b\n")));
        drop(hangs);
        log.deliver(vec![line("b\n")]).await.expect("written");
        log.open.lock().expect("a lock").slow_until = Some(Instant::now() + Duration::from_secs(3600));
        assert_eq!(log.deliver_at_once(line("c\n")), Err(line("c\n")));
        log.deliver(vec![line("c\n")]).await.expect("written");
        log.open.lock().expect("a lock").slow_until = Some(Instant::now());
        assert_eq!(log.deliver_at_once(line("d\n")), Ok(Ok(())));
        log.close().await;
        assert_eq!(std::fs::read_to_string(path).expect("a file"), "a\nb\nc\nd\n");
    }
}
