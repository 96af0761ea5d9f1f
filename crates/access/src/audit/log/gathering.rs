//! Lines of requests, written where the requests run.
//!
//! The page cache takes a line in about two microseconds, and to wait for another task or thread costs more. So the
//! request that has a line writes it at once; what others add meanwhile it writes next, in one write. While the disk is slow, or the file has to be put aside, a thread of its own writes
//! instead: so a disk that hangs stops one thread of the runtime at most twice.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::PLUGIN;
use super::file::File;
use crate::audit::delivery::Losses;
use crate::tasks::Tasks;

/// The most lines that wait to be written. Only a disk that hangs makes so many; what comes then is lost.
const MOST: usize = 1 << 16;
/// A write that takes longer may show a disk that is slow, or a thread that had to wait for its processor.
const QUICK: Duration = Duration::from_millis(1);
/// No thread waits so long for its processor.
const HANGING: Duration = Duration::from_millis(100);
/// How long a disk counts as slow.
const SLOW_FOR: Duration = Duration::from_secs(1);
/// How many writes a request makes, its own and those of others, before a task goes on.
const WRITES_OF_A_REQUEST: usize = 4;
/// Lines that were added are written after this time at the latest, also if their connections are gone.
const LONGEST_ADDED: Duration = Duration::from_secs(1);
/// The largest buffer that is kept for the next lines.
const KEPT_CAPACITY: usize = 1 << 18;

const CLOSED: &str = "the audit log is closed";
const FULL: &str = "too many audit events wait for the disk";

/// The outcome of writing lines.
pub type Written = Result<(), String>;

/// A write that may have ended already.
pub enum Writing {
    Ended(Written),
    /// Somebody else writes.
    Underway(oneshot::Receiver<Written>),
}

impl Writing {
    pub async fn ended(self) -> Written {
        match self {
            Self::Ended(written) => written,
            Self::Underway(answered) => answered.await.unwrap_or_else(|_| Err(CLOSED.to_owned())),
        }
    }
}

pub struct Gathering {
    gathered: Mutex<Gathered>,
    /// Locked by the writer alone.
    open: Mutex<Open>,
    thread: mpsc::Sender<Message>,
    tasks: Tasks,
    losses: Losses,
}

/// The lines that have to be written next, and whether somebody is the writer.
#[derive(Default)]
struct Gathered {
    batch: Batch,
    /// Whether a request, a task or the thread is writing. There is never more than one writer, so lines keep their order.
    has_writer: bool,
}

#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: usize,
    /// How many of the lines nobody waits for.
    deferred: usize,
    /// Whether the present writer has to write the lines, though nobody waits for them.
    is_hurried: bool,
    /// The channels to those who wait for the outcome of the write.
    waiting: Vec<oneshot::Sender<Written>>,
}

/// The lines that a writer takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    /// Not what was only added: that is written together with the next line.
    Urgent,
}

enum Message {
    /// The thread becomes the writer, and begins with this.
    Write(Batch),
    End,
}

/// The open target of lines.
pub struct Open {
    target: Target,
    pace: Pace,
    /// An empty buffer for the next lines.
    spare: Vec<u8>,
}

/// How quick the last writes were.
#[derive(Default)]
struct Pace {
    /// Until when the disk counts as slow.
    slow_until: Option<Instant>,
    /// Whether the last write was not quick.
    was_slow: bool,
}

impl Pace {
    fn note(&mut self, took: Duration, ended: Instant) {
        let was_slow = std::mem::replace(&mut self.was_slow, took > QUICK);
        if took > HANGING || was_slow && self.was_slow {
            self.slow_until = Some(ended + SLOW_FOR);
        }
    }

    fn is_slow(&self, now: Instant) -> bool {
        self.slow_until.is_some_and(|until| now < until)
    }
}

pub enum Target {
    Stdout,
    File(File),
}

impl Gathering {
    /// The second value is the work of the thread.
    pub fn new(target: Target, tasks: &Tasks, losses: Losses) -> (Arc<Self>, impl FnOnce() + Send + use<>) {
        let (thread, messages) = mpsc::channel();
        let open = Open { target, pace: Pace::default(), spare: Vec::new() };
        let this = Arc::new(Self {
            gathered: Mutex::default(),
            open: Mutex::new(open),
            thread,
            tasks: tasks.clone(),
            losses,
        });
        tasks.run("audit-lines", this.clone().hurry_regularly());
        let writer = this.clone();
        (this, move || writer.write_on_thread(&messages))
    }

    async fn hurry_regularly(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LONGEST_ADDED).await;
            self.hurry();
        }
    }

    /// Adds a line that is written before the next one, or after [`Gathering::hurry`]; answers whether there was room.
    pub fn add(&self, append: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut gathered = self.gathered();
        let has_room = gathered.batch.lines < MOST;
        if has_room {
            gathered.batch.lines += 1;
            gathered.batch.deferred += 1;
            append(&mut gathered.batch.text);
        }
        has_room
    }

    /// Writes the lines that were added, or leaves them to the present writer.
    pub fn hurry(self: &Arc<Self>) {
        let mut gathered = self.gathered();
        if gathered.batch.lines == 0 {
            return;
        }
        if std::mem::replace(&mut gathered.has_writer, true) {
            gathered.batch.is_hurried = true;
            return;
        }
        drop(gathered);
        let _ = self.lead();
    }

    /// Writes lines behind those that were added.
    pub fn write(self: &Arc<Self>, lines: usize, append: impl FnOnce(&mut Vec<u8>)) -> Writing {
        let mut gathered = self.gathered();
        if gathered.batch.lines >= MOST {
            return Writing::Ended(Err(FULL.to_owned()));
        }
        gathered.batch.lines += lines;
        append(&mut gathered.batch.text);
        if gathered.has_writer {
            return Writing::Underway(gathered.batch.wait());
        }
        gathered.has_writer = true;
        drop(gathered);
        self.lead()
    }

    /// Writes what is left, and ends the thread.
    pub async fn close(self: &Arc<Self>) {
        let _ = self.write(0, |_| {}).ended().await;
        let _ = self.thread.send(Message::End);
    }

    /// Makes the caller the writer, for a while.
    fn lead(self: &Arc<Self>) -> Writing {
        let Some(first) = self.next_batch(Wanted::All) else { return Writing::Ended(Ok(())) };
        let writing = self.write_first(first);
        if matches!(writing, Writing::Underway(_)) {
            return writing;
        }
        for _ in 1..WRITES_OF_A_REQUEST {
            if !self.write_next() {
                return writing;
            }
        }
        self.write_in_task();
        writing
    }

    /// Writes the batch of the caller, or leaves it to the thread.
    fn write_first(&self, mut batch: Batch) -> Writing {
        let mut open = self.open();
        if open.is_quick(batch.text.len()) {
            return Writing::Ended(self.write_batch(&mut open, batch));
        }
        let answered = batch.wait();
        self.leave(batch);
        Writing::Underway(answered)
    }

    /// Writes a batch, or leaves it to the thread; answers whether the caller is still the writer.
    fn write_next(&self) -> bool {
        let Some(batch) = self.next_batch(Wanted::Urgent) else { return false };
        let mut open = self.open();
        let is_quick = open.is_quick(batch.text.len());
        match is_quick {
            true => drop(self.write_batch(&mut open, batch)),
            false => self.leave(batch),
        }
        is_quick
    }

    /// Makes a task that is the writer.
    fn write_in_task(self: &Arc<Self>) {
        let this = self.clone();
        self.tasks.spawn("audit-lines", async move {
            while this.write_next() {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Makes the thread the writer. Without it, whoever waits is told so, since the batch is dropped.
    fn leave(&self, batch: Batch) {
        let _ = self.thread.send(Message::Write(batch));
    }

    fn write_on_thread(&self, messages: &mpsc::Receiver<Message>) {
        while let Ok(Message::Write(first)) = messages.recv() {
            let mut next = Some(first);
            while let Some(batch) = next {
                let _ = self.write_batch(&mut self.open(), batch);
                next = self.next_batch(Wanted::Urgent);
            }
        }
    }

    fn write_batch(&self, open: &mut Open, batch: Batch) -> Written {
        let Batch { text, deferred, waiting, .. } = batch;
        let written = open.write(&text);
        open.keep(text);
        if let Err(why) = &written
            && deferred > 0
        {
            self.losses.lost(PLUGIN, deferred, why);
        }
        for waiting in waiting {
            let _ = waiting.send(written.clone());
        }
        written
    }

    /// The batch that the writer has to write next; if there is none, it is the writer no more.
    fn next_batch(&self, wanted: Wanted) -> Option<Batch> {
        let text = std::mem::take(&mut self.open().spare);
        let mut gathered = self.gathered();
        let is_done = match wanted {
            Wanted::All => gathered.batch.text.is_empty() && gathered.batch.waiting.is_empty(),
            Wanted::Urgent => !gathered.batch.is_hurried && gathered.batch.waiting.is_empty(),
        };
        gathered.has_writer &= !is_done;
        if is_done {
            if gathered.batch.text.is_empty() {
                gathered.batch.text = text;
            }
            return None;
        }
        Some(std::mem::replace(&mut gathered.batch, Batch { text, ..Batch::default() }))
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Makes the caller wait for what becomes of the lines.
    fn wait(&mut self) -> oneshot::Receiver<Written> {
        let (answer, answered) = oneshot::channel();
        self.waiting.push(answer);
        answered
    }
}

impl Open {
    /// Whether lines of this length can be written in no time, as far as is known.
    fn is_quick(&self, length: usize) -> bool {
        !self.pace.is_slow(Instant::now()) && self.target.takes_at_once(length)
    }

    fn write(&mut self, lines: &[u8]) -> Written {
        let begun = Instant::now();
        let written = self.target.write(lines);
        let ended = Instant::now();
        self.pace.note(ended.duration_since(begun), ended);
        written.map_err(|error| error.to_string())
    }

    fn keep(&mut self, mut text: Vec<u8>) {
        if text.capacity() <= KEPT_CAPACITY {
            text.clear();
            self.spare = text;
        }
    }
}

impl Target {
    /// Whether lines of this length go into a file that is on a disk and is not full.
    fn takes_at_once(&self, length: usize) -> bool {
        matches!(self, Self::File(file) if file.is_regular() && file.has_room(length))
    }

    fn write(&mut self, lines: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(lines)?;
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
    use crate::metrics::Metrics;

    fn start(path: &Path) -> Arc<Gathering> {
        let rotation = Rotation { largest: 0, days: 0, backups: 0, compress: false };
        let target =
            Target::File(File::open(path.to_owned(), rotation, &Default::default()).expect("an open file"));
        let losses = Losses(Metrics::default().audit());
        let (gathering, work) = Gathering::new(target, &Tasks::new(), losses);
        std::thread::spawn(work);
        gathering
    }

    fn write(log: &Arc<Gathering>, line: &str) -> Writing {
        log.write(1, |text| text.extend_from_slice(line.as_bytes()))
    }

    fn add(log: &Gathering, line: &str) {
        assert!(log.add(|text| text.extend_from_slice(line.as_bytes())));
    }

    #[tokio::test]
    async fn a_request_writes_its_line_and_those_of_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let log = start(&path);
        let read = || std::fs::read_to_string(&path).expect("a file");
        add(&log, "a\n");
        assert_eq!(read(), "");
        assert!(matches!(write(&log, "b\n"), Writing::Ended(Ok(()))));
        assert_eq!(read(), "a\nb\n");
        // As if another request were writing.
        log.gathered().has_writer = true;
        let [mut c, d] = ["c\n", "d\n"].map(|line| write(&log, line).ended().boxed());
        assert!((&mut c).now_or_never().is_none());
        assert!(log.write_next() && !log.write_next());
        assert_eq!((c.now_or_never(), d.now_or_never()), (Some(Ok(())), Some(Ok(()))));
        add(&log, "e\n");
        log.hurry();
        assert_eq!(read(), "a\nb\nc\nd\ne\n");
        add(&log, "f\n");
        log.close().await;
        assert_eq!(read(), "a\nb\nc\nd\ne\nf\n");
    }

    /// Nobody may ask for the last stage of a request whose connection is gone.
    #[tokio::test]
    async fn what_was_added_is_written_in_the_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let log = start(&path);
        add(&log, "a\n");
        while log.gathered().batch.lines > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "a\n");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_line_is_lost_or_divided_among_many_writers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let log = start(&path);
        let writers = (0..8).map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                for number in 0..500 {
                    add(&log, &format!("{writer} {number} begun\n"));
                    write(&log, &format!("{writer} {number} ended\n")).ended().await.expect("written");
                }
            })
        });
        join_all(writers).await.into_iter().for_each(|ended| ended.expect("no panic"));
        log.close().await;
        let text = std::fs::read_to_string(path).expect("a file");
        for writer in 0..8 {
            let own = text.lines().filter_map(|line| line.strip_prefix(&format!("{writer} ")));
            let want = (0..500).flat_map(|number| [format!("{number} begun"), format!("{number} ended")]);
            assert!(own.eq(want));
        }
        assert_eq!(text.lines().count(), 8000);
    }

    #[tokio::test]
    async fn while_the_disk_is_slow_a_thread_writes_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let log = start(&path);
        log.open().pace.slow_until = Some(Instant::now() + Duration::from_secs(3600));
        let lines: Vec<String> = (0..100).map(|number| format!("{number}\n")).collect();
        let written = join_all(lines.iter().map(|text| write(&log, text).ended())).await;
        assert!(written.iter().all(Result::is_ok));
        log.open().pace.slow_until = None;
        write(&log, "last\n").ended().await.expect("written");
        assert_eq!(std::fs::read_to_string(path).expect("a file"), lines.concat() + "last\n");
    }

    #[test]
    fn a_disk_is_slow_after_two_slow_writes_or_one_that_hung() {
        let mut pace = Pace::default();
        let now = Instant::now();
        let (quick, slow) = (QUICK / 2, QUICK * 2);
        for (took, want) in [(slow, false), (quick, false), (slow, false), (slow, true)] {
            pace.note(took, now);
            assert_eq!(pace.is_slow(now), want);
        }
        assert!(!pace.is_slow(now + SLOW_FOR));
        let mut pace = Pace::default();
        pace.note(HANGING * 2, now);
        assert!(pace.is_slow(now));
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
        let first = write(&log, &long).ended().boxed();
        // Whoever runs on the runtime goes on, and what comes meanwhile is gathered.
        add(&log, "y");
        let second = write(&log, "z").ended().boxed();
        let read = std::thread::spawn(move || {
            let (mut text, mut buffer) = (Vec::new(), [0; 1 << 16]);
            while text.last() != Some(&b'z') {
                let length = reader.read(&mut buffer).expect("reads");
                text.extend_from_slice(&buffer[..length]);
            }
            text
        });
        for written in [first, second] {
            written.await.expect("written");
        }
        assert_eq!(read.join().expect("no panic"), (long + "yz").into_bytes());
    }
}
