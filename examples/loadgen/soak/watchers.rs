//! Watchers that come and go: each is there for a minute or so, then another one takes its place. Some begin with what is
//! there, some now, some where the last one ended; some are ended by the server, some leave without a word.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rand::RngExt as _;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::counts::one;
use super::writes::Object;
use super::{NAMESPACES, SHARDS, Soak};
use crate::Result;
use crate::client::{Connection, Protocol, resource_version};
use crate::watches::mark_time;

/// Watchers that share a connection.
const CREW: usize = 25;
/// A connection is left after so many watches.
const USES: usize = 100;
/// How long a watcher stays, in seconds.
const STAY: std::ops::Range<u64> = 5..115;
/// What a client does after an error.
const PAUSE: Duration = Duration::from_secs(1);

pub fn start(soak: &Arc<Soak>, watchers: usize, clients: &mut JoinSet<()>) {
    for first in (0..watchers).step_by(CREW) {
        let crew = Arc::new(Crew { number: first / CREW, shared: Mutex::default() });
        for n in first..watchers.min(first + CREW) {
            let watcher = Watcher { soak: soak.clone(), crew: crew.clone(), number: n, last: None };
            clients.spawn(watcher.work());
        }
    }
}

/// Watchers with a connection that they share.
struct Crew {
    number: usize,
    shared: Mutex<Option<(Arc<Connection>, usize)>>,
}

impl Crew {
    async fn connection(&self, soak: &Soak) -> Result<Arc<Connection>> {
        let mut shared = self.shared.lock().await;
        if let Some((connection, uses)) = &mut *shared
            && *uses < USES
        {
            *uses += 1;
            return Ok(connection.clone());
        }
        let connection = Arc::new(Connection::open(soak.target(self.number), Protocol::Http2).await?);
        *shared = Some((connection.clone(), 1));
        Ok(connection)
    }

    /// After an error the next watch has another connection.
    async fn leave(&self) {
        *self.shared.lock().await = None;
    }
}

struct Watcher {
    soak: Arc<Soak>,
    crew: Arc<Crew>,
    number: usize,
    /// The revision of the last event, of a watch of the same objects.
    last: Option<u64>,
}

/// Where a watch begins.
enum From {
    /// With the objects that are there.
    State,
    /// After this revision.
    Revision(u64),
}

impl Watcher {
    async fn work(mut self) {
        // Not all at once.
        let wait = rand::rng().random_range(0..5000);
        tokio::time::sleep(Duration::from_millis(wait)).await;
        loop {
            if let Err(error) = self.stay().await {
                self.soak.counts.error("watch: no answer", error);
                self.crew.leave().await;
                self.last = None;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One watch, from its beginning to its end.
    async fn stay(&mut self) -> Result<()> {
        let (seconds, kind) = {
            let mut random = rand::rng();
            (random.random_range(STAY), random.random_range(0..20))
        };
        // One in ten has a connection of its own.
        let connection = match self.number.is_multiple_of(10) {
            true => Arc::new(Connection::open(self.soak.target(self.number / 10), Protocol::Http1).await?),
            false => self.crew.connection(&self.soak).await?,
        };
        let (path, selector) = self.selection();
        let from = match (kind, self.last) {
            (0, _) => From::State,
            (1..10, Some(last)) => From::Revision(last),
            _ => {
                let list = connection.get(&format!("{path}?limit=1&{selector}")).await?;
                let version = resource_version(&list.body).ok_or("a list without resourceVersion")?;
                From::Revision(version.parse()?)
            }
        };
        let since = match from {
            From::State => String::new(),
            From::Revision(revision) => format!("&resourceVersion={revision}"),
        };
        // The server ends one half of the watches.
        let told_to_end = kind % 2 == 0;
        let limit = if told_to_end { seconds } else { 3600 };
        let path = format!("{path}?watch=1&timeoutSeconds={limit}&{selector}{since}");
        // The server's time begins when it has the request, and no earlier.
        let began = Instant::now();
        let response = connection.send(Method::GET, &path, None).await?;
        if response.status() == StatusCode::GONE {
            one(&self.soak.counts.gone);
            self.last = None;
            return Ok(());
        }
        if !response.status().is_success() {
            self.soak.counts.error(&format!("watch: {}", response.status().as_u16()), &path);
            self.last = None;
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        }
        one(&self.soak.counts.watches);
        let mut watch = Watch {
            open: Open::new(&self.soak),
            body: response.into_body(),
            partial: Vec::new(),
            opened: self.soak.origin.elapsed(),
            last: match from {
                From::State => None,
                From::Revision(revision) => Some(revision),
            },
            ordered: matches!(from, From::Revision(_)),
            ended: false,
        };
        // Something has gone wrong if the server does not end it.
        let stay = Duration::from_secs(if told_to_end { seconds + 30 } else { seconds });
        let ended = tokio::time::timeout(stay, watch.read()).await.is_ok();
        if ended != told_to_end || (told_to_end && began.elapsed() < Duration::from_secs(seconds)) {
            let story = format!("after {:?} of {seconds} s: {path}", began.elapsed());
            self.soak.counts.error("watch: ended too early or too late", story);
        }
        self.last = watch.last;
        if self.soak.leak && !told_to_end && !ended {
            tokio::spawn(async move {
                watch.read().await;
                drop(connection);
            });
        }
        Ok(())
    }

    /// The path and the selector: all objects of a namespace for one of a hundred, an object for a third, a shard for most.
    fn selection(&self) -> (String, String) {
        let path = |namespace: usize| self.soak.collections[namespace].path.to_string();
        if self.number.is_multiple_of(100) {
            return (path(self.number / 100 % NAMESPACES), String::new());
        }
        if self.number.is_multiple_of(3) {
            let object = Object::kept(self.number * 7 % self.soak.objects);
            return (path(object.namespace()), format!("fieldSelector=metadata.name%3D{}", object.name()));
        }
        (path(self.number % NAMESPACES), format!("labelSelector=shard%3D{}", self.number / 4 % SHARDS))
    }
}

/// Counts a watch as long as it is there.
struct Open(Arc<Soak>);

impl Open {
    fn new(soak: &Arc<Soak>) -> Self {
        soak.counts.open.fetch_add(1, Ordering::Relaxed);
        Self(soak.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Watch {
    open: Open,
    body: Incoming,
    /// The beginning of an event.
    partial: Vec<u8>,
    opened: Duration,
    last: Option<u64>,
    /// Objects that are there come in any order, changes in that of their revisions.
    ordered: bool,
    ended: bool,
}

impl Watch {
    /// Reads to the end.
    async fn read(&mut self) {
        while !self.ended {
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.take_in(&data);
                    }
                }
                Some(Err(error)) => {
                    self.open.0.counts.error("watch: broken", error);
                    self.ended = true;
                }
                None => self.ended = true,
            }
        }
    }

    fn take_in(&mut self, data: &[u8]) {
        self.partial.extend_from_slice(data);
        let Some(end) = memchr::memrchr(b'\n', &self.partial) else { return };
        let lines: Vec<u8> = self.partial.drain(..=end).collect();
        for line in lines[..end].split(|&byte| byte == b'\n') {
            self.event(line);
        }
    }

    fn event(&mut self, line: &[u8]) {
        const DELETED: &[u8] = b"{\"type\":\"DELETED\"";
        const ERROR: &[u8] = b"{\"type\":\"ERROR\"";
        let counts = &self.open.0.counts;
        if line.starts_with(ERROR) {
            // The history that it wanted to resume may have gone meanwhile.
            match memchr::memmem::find(line, b"\"code\":410") {
                Some(_) => one(&counts.gone),
                None => counts.error("watch: an error", String::from_utf8_lossy(line)),
            }
            return;
        }
        one(&counts.events);
        let revision = resource_version(line).and_then(|version| version.parse::<u64>().ok());
        let Some(revision) = revision else {
            return counts.error("watch: no revision", String::from_utf8_lossy(line));
        };
        if self.ordered && self.last.is_some_and(|last| revision <= last) {
            counts.error("watch: out of order", format!("{revision} after {:?}", self.last));
        }
        self.last = self.last.max(Some(revision));
        // The mark of what was deleted is that of its last update.
        if line.starts_with(DELETED) {
            return;
        }
        // What was written before the watch began was not to be delivered before.
        if let Some(sent) = mark_time(line)
            && (self.ordered || sent > self.opened)
        {
            counts.event_took(self.open.0.origin.elapsed().saturating_sub(sent.max(self.opened)));
        }
    }
}
