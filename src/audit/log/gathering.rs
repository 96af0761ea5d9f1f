//! Lines of many requests in one write.
//!
//! The page cache takes a line in about a microsecond, and a change of thread costs more, so lines are written where the
//! requests run. The first request that has to wait for its line becomes the writer: it lets all other tasks that are
//! ready run before it writes, and what these add goes into the same write. While the disk is slow, or the file has to be put aside, a
//! thread of its own writes instead: so a disk that hangs stops one thread of the runtime at most once.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::file::File;
use crate::tasks::Tasks;

/// The most lines that wait to be written. Only a disk that hangs makes so many; what comes then is lost.
const MOST: usize = 1 << 16;
/// A write that takes longer shows a disk that is slow.
const QUICK: Duration = Duration::from_millis(1);
/// How long a disk counts as slow.
const SLOW_FOR: Duration = Duration::from_secs(1);

const CLOSED: &str = "the audit log is closed";
const FULL: &str = "too many audit events wait for the disk";

/// What became of lines.
type Written = Result<(), String>;

pub struct Gathering {
    gathered: Mutex<Gathered>,
    /// Locked by the writer alone.
    open: Mutex<Open>,
    thread: mpsc::Sender<Message>,
    tasks: Tasks,
}

/// What has to be written next.
#[derive(Default)]
struct Gathered {
    batch: Batch,
    /// Whether a task or the thread is about to write. There is never more than one writer, so lines keep their order.
    has_writer: bool,
}

impl Gathered {
    /// Whether the writer has written everything. Then there is none.
    fn is_done(&mut self) -> bool {
        let is_done = self.batch.lines.is_empty() && self.batch.waiting.is_empty();
        self.has_writer &= !is_done;
        is_done
    }
}

#[derive(Default)]
struct Batch {
    lines: Vec<Bytes>,
    /// Who wants to know what became of the lines.
    waiting: Vec<oneshot::Sender<Written>>,
}

enum Message {
    /// The thread becomes the writer, and begins with this.
    Write(Batch),
    End,
}

/// What lines are written to.
pub struct Open {
    target: Target,
    /// Until when the disk counts as slow.
    slow_until: Option<Instant>,
}

pub enum Target {
    Stdout,
    File(File),
}

impl Gathering {
    /// The second value is the work of the thread.
    pub fn new(target: Target, tasks: &Tasks) -> (Arc<Self>, impl FnOnce() + Send + use<>) {
        let (thread, messages) = mpsc::channel();
        let this = Arc::new(Self {
            gathered: Mutex::default(),
            open: Mutex::new(Open { target, slow_until: None }),
            thread,
            tasks: tasks.clone(),
        });
        let writer = this.clone();
        (this, move || writer.write_on_thread(&messages))
    }

    /// Adds a line that is written before the next that somebody waits for, or after [`Gathering::hurry`].
    pub fn add(&self, line: Bytes) -> Result<(), Bytes> {
        let mut gathered = self.gathered();
        if gathered.batch.lines.len() >= MOST {
            return Err(line);
        }
        gathered.batch.lines.push(line);
        Ok(())
    }

    /// Has written what was added.
    pub fn hurry(self: &Arc<Self>) {
        let mut gathered = self.gathered();
        if !gathered.batch.lines.is_empty() && !std::mem::replace(&mut gathered.has_writer, true) {
            drop(gathered);
            self.write_in_task();
        }
    }

    /// Writes lines.
    pub async fn write(self: &Arc<Self>, lines: Vec<Bytes>) -> Written {
        let Some((answered, is_first)) = self.enqueue(lines) else { return Err(FULL.to_owned()) };
        if is_first {
            let mut lead = Lead { gathering: Some(self) };
            tokio::task::yield_now().await;
            lead.write();
        }
        answered.await.unwrap_or_else(|_| Err(CLOSED.to_owned()))
    }

    /// Writes what is left, and ends the thread.
    pub async fn close(self: &Arc<Self>) {
        let _ = self.write(Vec::new()).await;
        let _ = self.thread.send(Message::End);
    }

    /// Answers also whether the caller has to be the writer.
    fn enqueue(&self, lines: Vec<Bytes>) -> Option<(oneshot::Receiver<Written>, bool)> {
        let mut gathered = self.gathered();
        if gathered.batch.lines.len() >= MOST {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        gathered.batch.lines.extend(lines);
        gathered.batch.waiting.push(answer);
        let had_writer = std::mem::replace(&mut gathered.has_writer, true);
        Some((answered, !had_writer))
    }

    /// Makes a task that is the writer.
    fn write_in_task(self: &Arc<Self>) {
        let this = self.clone();
        self.tasks.spawn("audit-lines", async move {
            loop {
                tokio::task::yield_now().await;
                if !this.write_here() {
                    return;
                }
            }
        });
    }

    /// Writes a batch, or leaves it to the thread; answers whether the caller is still the writer.
    fn write_here(&self) -> bool {
        let Some(batch) = self.next_batch() else { return false };
        let mut open = self.open();
        if !open.is_quick(&batch.lines) {
            // Without the thread, whoever waits is told so, since the batch is dropped.
            let _ = self.thread.send(Message::Write(batch));
            return false;
        }
        let written = open.write(&batch.lines);
        drop(open);
        batch.answer(&written);
        true
    }

    fn write_on_thread(&self, messages: &mpsc::Receiver<Message>) {
        while let Ok(Message::Write(first)) = messages.recv() {
            let mut next = Some(first);
            while let Some(batch) = next {
                let written = self.open().write(&batch.lines);
                batch.answer(&written);
                next = self.next_batch();
            }
        }
    }

    /// What the writer has to write next; if there is nothing, he is the writer no more.
    fn next_batch(&self) -> Option<Batch> {
        let mut gathered = self.gathered();
        (!gathered.is_done()).then(|| std::mem::take(&mut gathered.batch))
    }

    /// Whether the writer has written everything, and is the writer no more.
    fn is_done(&self) -> bool {
        self.gathered().is_done()
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is the writer. Once it has written, or is given up, a task writes what has come meanwhile.
struct Lead<'a> {
    /// `None` where somebody else is the writer.
    gathering: Option<&'a Arc<Gathering>>,
}

impl Lead<'_> {
    fn write(&mut self) {
        self.gathering = self.gathering.filter(|gathering| gathering.write_here());
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let Some(gathering) = self.gathering else { return };
        if !gathering.is_done() {
            gathering.write_in_task();
        }
    }
}

impl Batch {
    fn answer(self, written: &Written) {
        for waiting in self.waiting {
            let _ = waiting.send(written.clone());
        }
    }
}

impl Open {
    /// Whether the lines can be written in no time, as far as is known.
    fn is_quick(&self, lines: &[Bytes]) -> bool {
        self.slow_until.is_none_or(|until| Instant::now() >= until) && self.target.takes_at_once(lines)
    }

    fn write(&mut self, lines: &[Bytes]) -> Written {
        let begun = Instant::now();
        let written = self.target.write(lines);
        let ended = Instant::now();
        if ended.duration_since(begun) > QUICK {
            self.slow_until = Some(ended + SLOW_FOR);
        }
        written.map_err(|error| error.to_string())
    }
}

impl Target {
    /// Whether the lines go into a file that is on a disk and is not full.
    fn takes_at_once(&self, lines: &[Bytes]) -> bool {
        matches!(self, Self::File(file) if file.is_regular() && file.has_room(lines))
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
    use std::io::Read as _;
    use std::path::Path;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;
    use crate::audit::config::Rotation;

    fn start(path: &Path) -> Arc<Gathering> {
        let rotation = Rotation { largest: 0, days: 0, backups: 0, compress: false };
        let target = Target::File(File::open(path.to_owned(), rotation).expect("an open file"));
        let (gathering, work) = Gathering::new(target, &Tasks::new());
        std::thread::spawn(work);
        gathering
    }

    fn line(text: &str) -> Vec<Bytes> {
        vec![Bytes::copy_from_slice(text.as_bytes())]
    }

    #[tokio::test]
    async fn lines_of_requests_that_are_ready_go_into_one_write() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let log = start(&path);
        let read = || std::fs::read_to_string(&path).expect("a file");
        log.add(Bytes::from_static(b"a\n")).expect("room");
        let [mut b, mut c] = [log.write(line("b\n")).boxed(), log.write(line("c\n")).boxed()];
        assert!((&mut b).now_or_never().is_none() && (&mut c).now_or_never().is_none());
        assert_eq!(read(), "");
        assert_eq!((b.await, read().as_str()), (Ok(()), "a\nb\nc\n"));
        assert_eq!(c.now_or_never(), Some(Ok(())));
        log.add(Bytes::from_static(b"d\n")).expect("room");
        log.hurry();
        log.close().await;
        assert_eq!(read(), "a\nb\nc\nd\n");
    }

    #[tokio::test]
    async fn while_the_disk_is_slow_a_thread_writes_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let log = start(&path);
        log.open().slow_until = Some(Instant::now() + Duration::from_secs(3600));
        let lines: Vec<String> = (0..100).map(|number| format!("{number}\n")).collect();
        let written = join_all(lines.iter().map(|text| log.write(line(text)))).await;
        assert!(written.iter().all(Result::is_ok));
        log.open().slow_until = None;
        log.write(line("last\n")).await.expect("written");
        assert_eq!(std::fs::read_to_string(path).expect("a file"), lines.concat() + "last\n");
    }

    /// A pipe that nobody reads from is like a disk that hangs.
    #[tokio::test]
    async fn a_target_that_hangs_holds_up_nobody_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).expect("a pipe");
        let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("opens");
        let log = start(&path);
        let long = "x".repeat(1 << 20);
        let write = |text: String| {
            tokio::spawn({
                let log = log.clone();
                async move { log.write(line(&text)).await }
            })
        };
        let first = write(long.clone());
        // Whoever runs on the runtime goes on, and what comes meanwhile is gathered.
        while !(log.gathered().has_writer && log.gathered().batch.waiting.is_empty()) {
            tokio::task::yield_now().await;
        }
        log.add(Bytes::from_static(b"y")).expect("room");
        let second = write("z".to_owned());
        let read = std::thread::spawn(move || {
            let (mut text, mut buffer) = (Vec::new(), [0; 1 << 16]);
            while text.last() != Some(&b'z') {
                let length = reader.read(&mut buffer).expect("reads");
                text.extend_from_slice(&buffer[..length]);
            }
            text
        });
        for written in [first, second] {
            written.await.expect("no panic").expect("written");
        }
        assert_eq!(read.join().expect("no panic"), (long + "yz").into_bytes());
    }
}
