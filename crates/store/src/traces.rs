//! Traces of requests (`--tracing-config-file`): spans as OpenTelemetry has them, with kube-apiserver's names, sent to a
//! collector by OTLP over gRPC.
//!
//! Only spans that are sent exist: whoever is not sampled has none, and a server without the flag has no tracer.

pub mod config;
mod export;
mod messages;
mod parent;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue};
use rand::Rng;
use tokio::sync::mpsc;

use self::config::Configuration;
use self::messages::{AnyValue, Event, KeyValue, Link, Status};
use self::parent::Parent;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::runtime::Runtime;
use crate::wall_clock::WallClock;

/// The header of the trace that a request belongs to (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// Spans that wait to be sent; what does not fit is dropped, and counted. OpenTelemetry's default.
const MOST_WAITING: usize = 2048;
const SERVICE: &str = "apiserver";

/// Makes spans. Clones are the same server's.
#[derive(Clone, Debug)]
pub struct Tracer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: mpsc::Sender<messages::Span>,
    /// The share of requests that are sampled without a parent, per million.
    rate: u32,
    clock: WallClock,
    random: Random,
    metrics: Arc<Metrics>,
}

/// A named part of the work on a request, from its beginning until it is dropped.
#[derive(Debug)]
pub struct Span {
    tracer: Tracer,
    open: Mutex<messages::Span>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

/// Attributes by their names; empty texts are left out.
pub type Attributes<'a> = &'a [(&'static str, Value)];

impl Tracer {
    /// Starts to send. `instance` is the id of the server.
    pub fn start(configuration: &Configuration, instance: Option<&str>, runtime: &Runtime) -> Self {
        let (queue, spans) = mpsc::channel(MOST_WAITING);
        let of_service =
            [("service.name", SERVICE.into()), ("service.instance.id", instance.unwrap_or("").into())];
        export::start(&configuration.endpoint, spans, attributes(&of_service), runtime);
        Self(Arc::new(Inner {
            queue,
            rate: configuration.rate,
            clock: runtime.clock.clone(),
            random: runtime.random.clone(),
            metrics: runtime.metrics.clone(),
        }))
    }

    /// The span of a request with these headers; `None` if it is not sampled. The trace that the client names goes on if he is
    /// trusted; others begin one of their own, which is linked to theirs (otelhttp's public endpoints).
    pub fn request(
        &self,
        headers: &HeaderMap,
        is_trusted: bool,
        name: impl FnOnce() -> String,
    ) -> Option<Span> {
        let named = headers.get(TRACEPARENT).and_then(Parent::parse);
        let (parent, linked) = if is_trusted { (named, None) } else { (None, named) };
        let trace = match &parent {
            Some(parent) if !parent.is_sampled => return None,
            Some(parent) => parent.trace,
            None => {
                let trace = self.0.random.with(|rng| bytes::<16>(rng));
                if !self.samples(&trace) {
                    return None;
                }
                trace
            }
        };
        let mut span = self.span(trace, parent.map(|parent| parent.span), Cow::Owned(name()));
        span.kind = messages::SERVER;
        let link =
            linked.map(|linked| Link { trace_id: linked.trace.to_vec(), span_id: linked.span.to_vec() });
        span.links = link.into_iter().collect();
        Some(Span { tracer: self.clone(), open: Mutex::new(span) })
    }

    /// OpenTelemetry's `TraceIDRatioBased`: the number in the last bytes decides, so that all servers decide alike.
    fn samples(&self, trace: &[u8; 16]) -> bool {
        let [.., a, b, c, d, e, f, g, h] = *trace;
        let number = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
        let share = u128::from(self.0.rate) * (1 << 63) / 1_000_000;
        u128::from(number) < share
    }

    fn span(&self, trace: [u8; 16], parent: Option<[u8; 8]>, name: Cow<'static, str>) -> messages::Span {
        messages::Span {
            trace_id: trace.to_vec(),
            span_id: self.0.random.with(|rng| bytes::<8>(rng)).to_vec(),
            parent_span_id: parent.map(Vec::from).unwrap_or_default(),
            name: name.into_owned(),
            kind: messages::INTERNAL,
            start_time_unix_nano: self.now(),
            ..messages::Span::default()
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.clock.timestamp().as_nanosecond()).unwrap_or_default()
    }
}

/// Bytes of an id, which must not all be zero.
fn bytes<const N: usize>(rng: &mut dyn Rng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes[N - 1] |= u8::from(bytes == [0; N]);
    bytes
}

impl Span {
    /// A part of this one.
    pub fn child(&self, name: &'static str, attributes: Attributes<'_>) -> Self {
        let (trace, parent) = {
            let open = self.open();
            let trace = <[u8; 16]>::try_from(&*open.trace_id).unwrap_or_default();
            (trace, <[u8; 8]>::try_from(&*open.span_id).ok())
        };
        let open = Mutex::new(self.tracer.span(trace, parent, Cow::Borrowed(name)));
        let span = Self { tracer: self.tracer.clone(), open };
        span.describe(attributes);
        span
    }

    /// The text of an attribute that the span has; empty if it has none.
    pub fn text(&self, name: &str) -> String {
        let open = self.open();
        let found = open.attributes.iter().find(|attribute| attribute.key == name);
        match found.and_then(|found| found.value.as_ref()?.value.as_ref()) {
            Some(messages::Any::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    pub fn describe(&self, attributes: Attributes<'_>) {
        self.open().attributes.extend(self::attributes(attributes));
    }

    /// Notes that something happens now.
    pub fn event(&self, name: &'static str) {
        let event = Event { time_unix_nano: self.tracer.now(), name: name.to_owned() };
        self.open().events.push(event);
    }

    /// Notes the answer to the request. Failures of the server are errors.
    pub fn answered(&self, status: u16) {
        self.describe(&[("http.response.status_code", status.into())]);
        if status >= 500 {
            self.open().status = Some(Status { code: messages::ERROR });
        }
    }

    /// The header by which another server takes part in the trace.
    pub fn traceparent(&self) -> Option<HeaderValue> {
        let open = self.open();
        let (trace, span) = (hex(&open.trace_id), hex(&open.span_id));
        HeaderValue::from_str(&format!("00-{trace}-{span}-01")).ok()
    }

    fn open(&self) -> MutexGuard<'_, messages::Span> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let mut span = std::mem::take(&mut *self.open());
        span.end_time_unix_nano = self.tracer.now();
        if self.tracer.0.queue.try_send(span).is_err() {
            self.tracer.0.metrics.spans_ended("dropped", 1);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn attributes(attributes: Attributes<'_>) -> Vec<KeyValue> {
    let named = attributes.iter().filter(|(_, value)| *value != Value::Text(String::new()));
    let value = |value: &Value| match value {
        Value::Text(text) => messages::Any::Text(text.clone()),
        Value::Number(number) => messages::Any::Number(*number),
    };
    let one = |(name, found): &(&'static str, Value)| KeyValue {
        key: (*name).to_owned(),
        value: Some(AnyValue { value: Some(value(found)) }),
    };
    named.map(one).collect()
}
