//! Watches: fan-out to many watchers, the latency from a write to its event, and a watcher that does not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::client::{Connection, JSON, MERGE_PATCH, Protocol, resource_version};
use crate::objects::{Maker, mark_patch};
use crate::report::{self, Table};
use crate::scratch::{Collection, Scratch};
use crate::stats::Latencies;
use crate::target::Target;
use crate::{Context, Result, tap};

const BURST: usize = 16;
const MAX_EVENTS: u64 = 2_000_000_000;
const DELIVERY_LIMIT: Duration = Duration::from_secs(30);

const LATENCY_WATCHERS: usize = 10;
const LATENCY_WRITES_PER_SECOND: u64 = 1000;
const LATENCY_OBJECTS: usize = 1000;

const STALLED_BESIDE: usize = 100;

/// Counts the events that a group of watchers has received.
#[derive(Default)]
pub struct Tally {
    delivered: AtomicU64,
    goal: AtomicU64,
    reached: Notify,
}

impl Tally {
    pub fn add(&self, events: u64) {
        let before = self.delivered.fetch_add(events, Ordering::AcqRel);
        let goal = self.goal.load(Ordering::Acquire);
        if before < goal && before + events >= goal {
            self.reached.notify_one();
        }
    }

    /// Waits until `goal` events have been delivered. Set the goal before the writes that cause them.
    async fn wait(&self) -> Result<()> {
        let goal = self.goal.load(Ordering::Acquire);
        let all = async {
            while self.delivered.load(Ordering::Acquire) < goal {
                self.reached.notified().await;
            }
        };
        tokio::time::timeout(DELIVERY_LIMIT, all).await.map_err(|_| {
            let delivered = self.delivered.load(Ordering::Acquire);
            format!("{delivered} of {goal} events were delivered in {DELIVERY_LIMIT:?}").into()
        })
    }
}

/// Watchers that only count. They end with this value.
struct Group {
    tally: Arc<Tally>,
    watchers: u64,
    tasks: JoinSet<()>,
}

impl Group {
    async fn open(context: &Context, collection: &Collection, watchers: usize) -> Result<Self> {
        let (tally, mut tasks) = (Arc::new(Tally::default()), JoinSet::new());
        let path = watch_path(context, collection).await?;
        match context.protocol {
            Protocol::Http1 => {
                for _ in 0..watchers {
                    let connection = Connection::open(&context.target, Protocol::Http1).await?;
                    tasks.spawn(count(open_watch(&connection, &path).await?, tally.clone()));
                }
            }
            Protocol::Http2 => {
                let (mut missing, each) = (watchers, context.args.watchers_per_connection.max(1));
                while missing > 0 {
                    let watches = missing.min(each);
                    tasks.spawn(tap::open(&context.target, &path, watches, tally.clone()).await?);
                    missing -= watches;
                }
            }
        }
        Ok(Self { tally, watchers: watchers as u64, tasks })
    }

    /// Raises the goal by `writes` events per watcher.
    fn expect(&self, writes: u64) {
        self.tally.goal.fetch_add(writes * self.watchers, Ordering::AcqRel);
    }

    async fn close(mut self) {
        self.tasks.shutdown().await;
    }
}

/// The path of a watch that starts now.
async fn watch_path(context: &Context, collection: &Collection) -> Result<String> {
    let connection = Connection::open(&context.target, context.protocol).await?;
    let list = connection.get(&format!("{}?limit=1", collection.path)).await?;
    let version = resource_version(&list.body).ok_or("a list without resourceVersion")?;
    Ok(format!("{}?watch=1&resourceVersion={version}&timeoutSeconds=1800", collection.path))
}

async fn open_watch(connection: &Connection, path: &str) -> Result<Incoming> {
    let (head, body) = connection.send(Method::GET, path, None).await?.into_parts();
    if !head.status.is_success() {
        return Err(format!("a watch was answered with {}", head.status).into());
    }
    Ok(body)
}

async fn count(mut body: Incoming, tally: Arc<Tally>) {
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(data) = frame.data_ref() {
            tally.add(memchr::memchr_iter(b'\n', data).count() as u64);
        }
    }
}

/// Existing objects that get a new mark with every write.
struct Writers {
    connection: Arc<Connection>,
    collection: Collection,
    writes: u64,
}

impl Writers {
    async fn open(context: &Context, collection: &Collection, objects: usize, bytes: usize) -> Result<Self> {
        let connection = Arc::new(Connection::open(&context.target, Protocol::Http2).await?);
        let maker = Maker::new(bytes);
        for i in 0..objects {
            let body = maker.object(&object_name(i), "", "0");
            connection.call(Method::POST, &collection.path, Some((JSON, body))).await?.success()?;
        }
        Ok(Self { connection, collection: collection.clone(), writes: 0 })
    }

    /// Writes `count` different objects at the same time.
    async fn write(&mut self, count: usize) -> Result<()> {
        self.writes += 1;
        let writes = (0..count)
            .map(|i| patch(&self.connection, self.collection.item(&object_name(i)), self.writes.to_string()));
        futures_util::future::try_join_all(writes).await.map(|_| ())
    }
}

fn object_name(i: usize) -> String {
    format!("watched-{i}")
}

async fn patch(connection: &Connection, path: String, mark: String) -> Result<()> {
    let body = Some((MERGE_PATCH, mark_patch(&mark)));
    connection.call(Method::PATCH, &path, body).await?.success().map(|_| ())
}

struct Rate {
    rounds: Latencies,
    events: u64,
    elapsed: Duration,
}

impl Rate {
    fn per_second(&self) -> f64 {
        self.events as f64 / self.elapsed.as_secs_f64()
    }
}

/// Rounds of `burst` concurrent writes. A round starts when every watcher has received the events of the one before.
async fn rounds(group: &Group, writers: &mut Writers, burst: usize, duration: Duration) -> Result<Rate> {
    let (start, before) = (Instant::now(), group.tally.delivered.load(Ordering::Acquire));
    let mut rounds = Latencies::default();
    while start.elapsed() < duration && group.tally.goal.load(Ordering::Acquire) < MAX_EVENTS {
        let round = Instant::now();
        group.expect(burst as u64);
        tokio::try_join!(writers.write(burst), group.tally.wait())?;
        rounds.add_since(round);
    }
    let events = group.tally.delivered.load(Ordering::Acquire) - before;
    Ok(Rate { rounds, events, elapsed: start.elapsed() })
}

pub async fn fanout(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let args = &context.args;
    let mut table = Table::new(
        format!("{} watchers of one resource, {} bytes an object", args.watchers, args.event_bytes),
        &[
            "writes at a time",
            "delivered events/s",
            "round p50 ms",
            "p99 ms",
            "max ms",
            "server CPU us each",
            "server peak MB",
        ],
    );
    let collection = scratch.namespace(context, "fanout").await?;
    let most = args.bursts.iter().copied().max().unwrap_or(1);
    let mut writers = Writers::open(context, &collection, most, args.event_bytes).await?;
    eprintln!("opening {} watches", args.watchers);
    let group = Group::open(context, &collection, args.watchers).await?;
    for &burst in &args.bursts {
        rounds(&group, &mut writers, burst, Duration::from_millis(500)).await?;
        context.server.reset_peak();
        let cpu = context.server.cpu();
        let mut rate = rounds(&group, &mut writers, burst, context.seconds()).await?;
        let cpu = context.server.micros_each(cpu, rate.events as usize);
        let mut row = vec![burst.to_string(), report::number(rate.per_second())];
        row.extend(report::times(rate.rounds.summary()));
        row.extend([report::option(cpu), report::option(context.server.peak_mb())]);
        table.row(row);
    }
    group.close().await;
    Ok(vec![table])
}

pub const LATENCY_HEADERS: [&str; 7] =
    ["writes/s asked", "writes/s done", "events", "p50 ms", "p99 ms", "max ms", "write p99 ms"];

pub async fn latency(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let bytes = context.args.object_bytes;
    let mut table = Table::new(
        format!("From sending a write to its event: {LATENCY_WATCHERS} watchers, {bytes} bytes an object"),
        &LATENCY_HEADERS,
    );
    let collection = scratch.namespace(context, "latency").await?;
    let watched = context.second.as_ref().unwrap_or(&context.target);
    table.row(write_to_watch(context, watched, &collection).await?);
    Ok(vec![table])
}

/// A row of the table, for watchers at the same or at another server.
pub async fn write_to_watch(
    context: &Context,
    watched: &Target,
    collection: &Collection,
) -> Result<Vec<String>> {
    let bytes = context.args.object_bytes;
    let writers = Writers::open(context, collection, LATENCY_OBJECTS, bytes).await?;
    let path = watch_path(context, collection).await?;
    let origin = Instant::now();
    let (tally, mut watchers) = (Arc::new(Tally::default()), JoinSet::new());
    for _ in 0..LATENCY_WATCHERS {
        let connection = Connection::open(watched, context.protocol).await?;
        let (body, tally) = (open_watch(&connection, &path).await?, tally.clone());
        watchers.spawn(async move {
            let _connection = connection;
            arrivals(body, tally, origin).await
        });
    }

    let writes = LATENCY_WRITES_PER_SECOND * context.args.seconds;
    tally.goal.store(writes * LATENCY_WATCHERS as u64, Ordering::Release);
    let mut sent = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / LATENCY_WRITES_PER_SECOND as u32);
    let start = Instant::now();
    for i in 0..writes {
        ticks.tick().await;
        let path = collection.item(&object_name(i as usize % LATENCY_OBJECTS));
        let connection = writers.connection.clone();
        sent.spawn(async move {
            let start = Instant::now();
            // The number of the write makes every mark unique.
            let mark = format!("{}.{i}", origin.elapsed().as_micros());
            patch(&connection, path, mark).await?;
            Result::<_>::Ok(start.elapsed())
        });
    }
    let mut answers = Latencies::default();
    while let Some(answer) = sent.join_next().await {
        answers.add(answer??);
    }
    let elapsed = start.elapsed();
    tally.wait().await?;
    let mut all = Latencies::default();
    while let Some(arrivals) = watchers.join_next().await {
        all.merge(arrivals?);
    }
    let mut row = vec![
        LATENCY_WRITES_PER_SECOND.to_string(),
        report::number(writes as f64 / elapsed.as_secs_f64()),
        all.len().to_string(),
    ];
    row.extend(report::times(all.summary()));
    row.push(report::number(answers.summary().p99));
    Ok(row)
}

/// Measures how long after the time in its mark each event arrives, until this watcher has its share of the goal.
async fn arrivals(mut body: Incoming, tally: Arc<Tally>, origin: Instant) -> Latencies {
    let (mut latencies, mut partial) = (Latencies::default(), Vec::new());
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let now = origin.elapsed();
        partial.extend_from_slice(&data);
        let Some(end) = memchr::memrchr(b'\n', &partial) else { continue };
        let mut events = 0;
        for line in partial[..end].split(|&byte| byte == b'\n') {
            if let Some(sent) = mark_time(line) {
                latencies.add(now.saturating_sub(sent));
                events += 1;
            }
        }
        partial.drain(..=end);
        tally.add(events);
        let share = tally.goal.load(Ordering::Acquire) / LATENCY_WATCHERS as u64;
        if share > 0 && latencies.len() as u64 >= share {
            break;
        }
    }
    latencies
}

/// When the write was sent that an event tells of, by its object's mark.
pub fn mark_time(line: &[u8]) -> Option<Duration> {
    const NAME: &[u8] = b"\"mark\":\"";
    let after = &line[memchr::memmem::find(line, NAME)? + NAME.len()..];
    let micros = &after[..memchr::memchr(b'.', &after[..after.len().min(24)])?];
    Some(Duration::from_micros(std::str::from_utf8(micros).ok()?.parse().ok()?))
}

pub async fn stalled(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let bytes = context.args.object_bytes;
    let mut table = Table::new(
        format!("{STALLED_BESIDE} watchers in bursts of {BURST}, {bytes} bytes an object"),
        &[
            "beside them",
            "delivered events/s",
            "round p50 ms",
            "p99 ms",
            "max ms",
            "of the rate alone",
            "server MB",
            "what it read in the end",
        ],
    );
    let collection = scratch.namespace(context, "stalled").await?;
    let mut writers = Writers::open(context, &collection, BURST, bytes).await?;
    let group = Group::open(context, &collection, STALLED_BESIDE).await?;
    rounds(&group, &mut writers, BURST, Duration::from_millis(500)).await?;
    let mut alone = rounds(&group, &mut writers, BURST, context.seconds()).await?;
    let rate_alone = alone.per_second();
    let mut report = |name: &str, rate: &mut Rate, end: String| {
        let mut row = vec![name.to_owned(), report::number(rate.per_second())];
        row.extend(report::times(rate.rounds.summary()));
        row.push(report::number(rate.per_second() / rate_alone));
        row.extend([report::option(context.server.resident_mb()), end]);
        table.row(row);
    };
    report("nobody", &mut alone, "-".to_owned());

    let path = watch_path(context, &collection).await?;
    let idler = Idler::open(context, &path).await?;
    let mut beside = rounds(&group, &mut writers, BURST, context.seconds()).await?;
    let end = idler.read_all(beside.events / group.watchers).await?;
    report("a watcher that reads nothing", &mut beside, end);
    let mut again = rounds(&group, &mut writers, BURST, context.seconds()).await?;
    report("nobody again", &mut again, "-".to_owned());
    group.close().await;
    Ok(vec![table])
}

/// A watcher on its own connection that reads the headers and then stops reading.
struct Idler {
    stream: tokio_rustls::client::TlsStream<tokio::net::TcpStream>,
    rest: Vec<u8>,
}

impl Idler {
    async fn open(context: &Context, path: &str) -> Result<Self> {
        let mut stream = context.target.connect_narrow(Protocol::Http1).await?;
        let authorization = match &context.target.authorization {
            Some(value) => format!("Authorization: {}\r\n", value.to_str()?),
            None => String::new(),
        };
        let host = context.target.authority();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut rest = Vec::new();
        loop {
            if stream.read_buf(&mut rest).await? == 0 {
                return Err("the watch ended before its headers did".into());
            }
            if let Some(end) = memchr::memmem::find(&rest, b"\r\n\r\n") {
                rest.drain(..end + 4);
                return Ok(Self { stream, rest });
            }
        }
    }

    /// Reads until all events have arrived, the stream has ended, or nothing has arrived for a while.
    async fn read_all(mut self, events: u64) -> Result<String> {
        const QUIET: Duration = Duration::from_secs(5);
        let mut seen = count_events(&self.rest);
        let mut buffer = Bytes::new();
        let mut carried = tail(&self.rest);
        let end = loop {
            if seen >= events {
                break "complete";
            }
            let mut chunk = Vec::with_capacity(1 << 16);
            match tokio::time::timeout(QUIET, self.stream.read_buf(&mut chunk)).await {
                Err(_) => break "then silence",
                Ok(Err(_)) => break "then a broken connection",
                Ok(Ok(0)) => break "then the end of the stream",
                Ok(Ok(_)) => {}
            }
            let joined = [carried.as_slice(), &chunk].concat();
            seen += count_events(&joined);
            carried = tail(&joined);
            buffer = Bytes::from(chunk);
        };
        // The last chunk of a chunked body is empty if it ended properly.
        let clean = if buffer.ends_with(b"0\r\n\r\n") { " (clean)" } else { "" };
        Ok(format!("{} of {} events, {end}{clean}", seen, events))
    }
}

const EVENT: &[u8] = b"{\"type\":\"";

fn count_events(bytes: &[u8]) -> u64 {
    memchr::memmem::find_iter(bytes, EVENT).count() as u64
}

/// The last bytes, which may be the start of an event.
fn tail(bytes: &[u8]) -> Vec<u8> {
    bytes[bytes.len().saturating_sub(EVENT.len() - 1)..].to_vec()
}
