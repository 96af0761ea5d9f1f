//! The log sink: a line per event, to a file or to the standard output.

mod file;
mod gathering;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use self::file::File;
use self::gathering::{Gathering, Target, Writing, Written};
use super::config::{LogConfig, LogFormat, LogTarget, Mode, Truncation};
use super::delivery::{Delivery, Losses};
use super::event::{Event, append_line};
use super::policy::Stage;
use super::sink::{self, Receipt, Sink};
use crate::metrics::AuditMetrics;
use crate::tasks::Tasks;
use crate::wall_clock::WallClock;

const PLUGIN: &str = "log";
/// The largest buffer that a thread keeps for its next line.
const KEPT_LINE: usize = 16 << 10;

thread_local! {
    /// The line that a thread is making, emptied before the next one, whichever log that is for.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("ensureLogFile: cannot open the audit log {path:?}: {source}")]
pub struct OpenError {
    path: PathBuf,
    source: std::io::Error,
}

/// Opens the file and starts the thread that writes it while the disk is slow.
pub fn open(
    config: &LogConfig,
    clock: &WallClock,
    tasks: &Tasks,
    metrics: &AuditMetrics,
) -> Result<Box<dyn Sink>, OpenError> {
    let losses = Losses(metrics.clone());
    let log = Log::open(config, clock, tasks, &losses)?;
    let (mode, truncation) = (config.delivery.mode, config.delivery.truncation);
    Ok(match mode {
        Mode::Batch => sink::of(log, &config.delivery, tasks, metrics),
        Mode::Blocking | Mode::BlockingStrict => Box::new(Waited { log, mode, truncation, losses }),
    })
}

/// The log. [`Gathering`] says how its lines are written.
struct Log {
    format: LogFormat,
    gathering: Arc<Gathering>,
    /// Cancelled when the thread that writes to a slow disk has ended.
    ended: CancellationToken,
}

impl Log {
    fn open(
        config: &LogConfig,
        clock: &WallClock,
        tasks: &Tasks,
        losses: &Losses,
    ) -> Result<Self, OpenError> {
        let target = match &config.target {
            LogTarget::Stdout => Target::Stdout,
            LogTarget::File { path, rotation } => {
                let file = File::open(path.clone(), *rotation, clock);
                Target::File(file.map_err(|source| OpenError { path: path.clone(), source })?)
            }
        };
        let (gathering, work) = Gathering::new(target, tasks, losses.clone());
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        tasks.spawn("audit-log", async move {
            let _end = end;
            let _ = tokio::task::spawn_blocking(work).await;
        });
        Ok(Self { format: config.format, gathering, ended })
    }

    async fn close(&self) {
        self.gathering.close().await;
        self.ended.cancelled().await;
    }
}

/// Lines of the mode `batch`.
impl Delivery for Log {
    const PLUGIN: &'static str = PLUGIN;
    type Entry = Bytes;

    fn entry(&self, event: &Event<'_>, item: &[u8]) -> Bytes {
        let mut text = Vec::new();
        Line::of(self.format, event, item).append(&mut text);
        text.into()
    }

    async fn deliver(&self, lines: Vec<Bytes>) -> Result<(), String> {
        let append = |text: &mut Vec<u8>| lines.iter().for_each(|line| text.extend_from_slice(line));
        self.gathering.write(lines.len(), append).ended().await
    }

    async fn close(&self) {
        Self::close(self).await;
    }
}

/// The log in the blocking modes, in which requests wait until their lines are written.
struct Waited {
    log: Log,
    /// [`Mode::Blocking`] or [`Mode::BlockingStrict`].
    mode: Mode,
    truncation: Option<Truncation>,
    losses: Losses,
}

impl Waited {
    /// The receipt for a line that was written or lost.
    fn receipt(written: &Written, mode: Mode, losses: &Losses) -> Receipt {
        let Err(why) = written else { return Receipt::Taken };
        losses.lost(PLUGIN, 1, why);
        if mode == Mode::BlockingStrict { Receipt::Lost } else { Receipt::Taken }
    }
}

impl Waited {
    /// Makes the line of an event. `false` means that the event is too large, so it is lost.
    fn append(&self, event: &Event<'_>, line: &mut Vec<u8>) -> bool {
        if self.truncation.is_none() && self.log.format == LogFormat::Json {
            event.append_line(line);
            return true;
        }
        let item = sink::fitting(event, self.truncation, &self.losses);
        item.iter().for_each(|item| Line::of(self.log.format, event, item).append(line));
        item.is_some()
    }

    fn take_line(&self, event: &Event<'_>, line: &[u8]) -> Receipt {
        let gathering = &self.log.gathering;
        let append = |text: &mut Vec<u8>| text.extend_from_slice(line);
        if may_be_deferred(event, self.mode) && gathering.add(append) {
            return Receipt::Taken;
        }
        match gathering.write(1, append) {
            Writing::Ended(written) => Self::receipt(&written, self.mode, &self.losses),
            writing @ Writing::Underway(_) => {
                let (mode, losses) = (self.mode, self.losses.clone());
                let kept = async move {
                    let written = writing.ended().await;
                    matches!(Self::receipt(&written, mode, &losses), Receipt::Taken)
                };
                Receipt::Waiting(kept.boxed())
            }
        }
    }
}

impl Sink for Waited {
    fn take(&self, event: &Event<'_>) -> Receipt {
        LINE.with_borrow_mut(|line| {
            line.clear();
            let receipt = match self.append(event, line) {
                true => self.take_line(event, line),
                false => Receipt::Taken,
            };
            if line.capacity() > KEPT_LINE {
                *line = Vec::new();
            }
            receipt
        })
    }

    fn hurry(&self) {
        self.log.gathering.hurry();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.log.close().boxed()
    }
}

/// Whether an event may be written together with the next event of its request. The start of a read may: it is written
/// when the read ends, or first has to wait. The start of a write is in the log before the write is done.
fn may_be_deferred(event: &Event<'_>, mode: Mode) -> bool {
    mode == Mode::Blocking
        && event.stage == Stage::RequestReceived
        && matches!(&*event.head.verb, "get" | "list")
}

/// An event's line. No text in it has a line end.
enum Line<'a> {
    Json(&'a [u8]),
    Legacy(String),
}

impl<'a> Line<'a> {
    fn of(format: LogFormat, event: &Event<'_>, item: &'a [u8]) -> Self {
        match format {
            LogFormat::Json => Self::Json(item),
            LogFormat::Legacy => Self::Legacy(event.legacy()),
        }
    }

    fn append(&self, text: &mut Vec<u8>) {
        match self {
            Self::Json(item) => append_line(text, item),
            Self::Legacy(line) => {
                text.extend_from_slice(line.as_bytes());
                text.push(b'\n');
            }
        }
    }
}
