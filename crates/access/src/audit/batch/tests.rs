use std::sync::{Mutex as StdMutex, OnceLock};

use bytes::Bytes;
use http::Uri;

use super::super::config::{Delivery as DeliveryConfig, Mode};
use super::super::event::{Event, Growing};
use super::super::head::{Head, Sources};
use super::super::policy::{Level, Stage};
use super::super::sink;
use super::*;
use crate::audit::sink::Receipt;
use crate::metrics::Metrics;

/// Keeps batches; the first waits until it is let through.
#[derive(Default)]
struct Kept {
    batches: Arc<StdMutex<Vec<Vec<Bytes>>>>,
    gate: CancellationToken,
    fails: bool,
}

impl Delivery for Kept {
    const PLUGIN: &'static str = "test";
    type Entry = Bytes;

    fn entry(&self, _: &Event<'_>, item: &[u8]) -> Bytes {
        Bytes::copy_from_slice(item)
    }

    async fn deliver(&self, entries: Vec<Bytes>) -> Result<(), String> {
        self.gate.cancelled().await;
        self.batches.lock().expect("no panic").push(entries);
        if self.fails { Err("full".to_owned()) } else { Ok(()) }
    }
}

fn config(mode: Mode, batches: Batching) -> DeliveryConfig {
    DeliveryConfig { mode, batches, truncation: None }
}

const BATCHING: Batching =
    Batching { buffer: 3, largest: 2, wait: Duration::from_secs(30), throttle: None, overlap: false };

fn head() -> Head {
    Head {
        level: Level::Request,
        audit_id: None,
        uri: Uri::from_static("/"),
        long_query: None,
        verb: "get".into(),
        user: None,
        sources: Sources::default(),
        sent_user_agent: None,
        received: jiff::Timestamp::UNIX_EPOCH,
        text: OnceLock::new(),
    }
}

fn growing(size: usize) -> Growing {
    let text = format!("\"{}\"", "x".repeat(size));
    Growing { request_object: Some(text.into()), ..Growing::default() }
}

fn take(sink: &dyn sink::Sink, size: usize) -> Receipt {
    let (head, growing) = (head(), growing(size));
    sink.take(&Event::new(&head, &growing, Stage::RequestReceived, head.received))
}

#[tokio::test]
async fn batches_go_out_when_they_are_full_and_at_the_end() {
    let (kept, metrics, tasks) = (Kept::default(), Metrics::default(), Tasks::new());
    let (batches, gate) = (kept.batches.clone(), kept.gate.clone());
    gate.cancel();
    let sink = sink::of(kept, &config(Mode::Batch, BATCHING), &tasks, &metrics.audit());
    for _ in 0..3 {
        assert!(matches!(take(&*sink, 1), Receipt::Taken));
    }
    sink.close().await;
    let sizes: Vec<usize> = batches.lock().expect("no panic").iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 1]);
    take(&*sink, 1);
    assert!(metrics.render().contains(r#"apiserver_audit_error_total{plugin="buffered"} 1"#));
}

#[tokio::test]
async fn a_full_buffer_drops_events_and_holds_nobody_up() {
    let (kept, metrics, tasks) = (Kept::default(), Metrics::default(), Tasks::new());
    let (batches, gate) = (kept.batches.clone(), kept.gate.clone());
    let sink = sink::of(kept, &config(Mode::Batch, BATCHING), &tasks, &metrics.audit());
    for _ in 0..10 {
        take(&*sink, 1);
    }
    gate.cancel();
    sink.close().await;
    let delivered: usize = batches.lock().expect("no panic").iter().map(Vec::len).sum();
    assert_eq!(delivered, 3);
    assert!(metrics.render().contains(r#"apiserver_audit_error_total{plugin="buffered"} 7"#));
}

#[tokio::test]
async fn large_batches_are_divided_and_large_events_cut_or_dropped() {
    let (kept, metrics, tasks) = (Kept::default(), Metrics::default(), Tasks::new());
    let (batches, gate) = (kept.batches.clone(), kept.gate.clone());
    gate.cancel();
    let truncation = Some(Truncation { event_size: 1000, batch_size: 1500 });
    let batching = Batching { buffer: 10, largest: 10, ..BATCHING };
    let config = DeliveryConfig { truncation, ..config(Mode::Batch, batching) };
    let sink = sink::of(kept, &config, &tasks, &metrics.audit());
    for size in [500, 500, 500, 5000] {
        take(&*sink, size);
    }
    let (large, growing) =
        (Head { uri: format!("/{}", "u".repeat(2000)).parse().expect("a URI"), ..head() }, growing(1));
    sink.take(&Event::new(&large, &growing, Stage::RequestReceived, large.received));
    sink.close().await;
    let batches = batches.lock().expect("no panic");
    let delivered: Vec<&Bytes> = batches.iter().flatten().collect();
    assert_eq!(delivered.len(), 4);
    assert!(batches.iter().all(|batch| batch.iter().map(Bytes::len).sum::<usize>() <= 1500));
    let cut = String::from_utf8_lossy(delivered[3]);
    assert!(cut.contains("audit.k8s.io/truncated") && !cut.contains("requestObject"), "{cut}");
    assert!(metrics.render().contains(r#"apiserver_audit_error_total{plugin="truncate"} 1"#));
}

#[tokio::test]
async fn only_strict_requests_mind_what_became_of_their_events() {
    let metrics = Metrics::default();
    for (mode, want) in [(Mode::Blocking, true), (Mode::BlockingStrict, false)] {
        let kept = Kept { fails: true, ..Kept::default() };
        kept.gate.cancel();
        let sink = sink::of(kept, &config(mode, BATCHING), &Tasks::new(), &metrics.audit());
        assert_eq!(take(&*sink, 1).kept().await, want);
    }
    assert!(metrics.render().contains(r#"apiserver_audit_error_total{plugin="test"} 2"#));
}

#[test]
fn batches_keep_their_pace() {
    let mut pace = Pace::new(Throttle { per_second: 10.0, burst: 3 });
    let start = Instant::now();
    let waits: Vec<u128> = (0..5).map(|_| (pace.next(start) - start).as_millis()).collect();
    assert_eq!(waits, [0, 0, 0, 100, 200]);
    let later = start + Duration::from_secs(60);
    let waits: Vec<u128> = (0..4).map(|_| (pace.next(later) - later).as_millis()).collect();
    assert_eq!(waits, [0, 0, 0, 100]);
}
