//! Streaming bodies of lists and watches, whose memory does not grow with the number of objects.
//!
//! No step holds a thread of the runtime for long: work beyond copying is done for a few objects at a time, or on a
//! thread of its own.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::encode::{Encoder, Item, encode};
use super::table::Columns;
use crate::api::Answer;
use crate::api::error::Error;
use crate::api::verbs::list::{Items, List};
use crate::api::verbs::watch::{Watch, WatchEvent};
use crate::codec::media_type::MediaType;
use crate::codec::object::Object;
use crate::codec::protobuf::Envelope;
use crate::http::limits::Printing;
use crate::long_work::Turn;
use crate::metrics::{LongRunning, WatchEventMetrics};
use crate::protowire::write::{append_bytes, size_of_bytes};
use crate::tree::Value;

/// Small objects are joined to chunks of about this many bytes, for fewer and larger writes (measured: 64 to 256 KB).
const CHUNK: usize = 128 << 10;

/// The size of the prefix of each event in a stream of protobuf, which holds the event's length.
const LENGTH_PREFIX: usize = 4;

/// How many messages, rows and the like are made before other requests get the thread: each takes about ten
/// microseconds.
const MADE_AT_ONCE: usize = 64;

/// Objects of up to this many bytes are indented, or written as YAML, on the runtime's thread, which takes a few
/// milliseconds. Larger ones get a thread of their own.
const PRINTED_AT_ONCE: usize = 256 << 10;

/// The body of an answer with one object.
pub async fn object(encoder: Encoder, answer: Answer, printing: &Printing) -> Result<Vec<u8>, Error> {
    let long = match &answer {
        Answer::Stored(object) => object.size() > PRINTED_AT_ONCE,
        // The size is unknown.
        Answer::Unstored(_) => true,
    };
    if long && (encoder.pretty || encoder.media == MediaType::Yaml || encoder.makes_items()) {
        return printing.run(move || encoder.answer(&answer)).await?;
    }
    encoder.answer(&answer)
}

/// The body of a list. Fails if the first items cannot be read; a later failure aborts the body, which the client
/// notices.
pub async fn list(encoder: Encoder, mut list: List, printing: &Printing) -> Result<Body, Error> {
    if encoder.media == MediaType::Protobuf {
        return protobuf_list(encoder, list).await;
    }
    if encoder.pretty || encoder.media == MediaType::Yaml || encoder.needs_all() {
        return whole_list(encoder, list, printing).await;
    }
    let ends = (encoder.list_head(&list), encoder.list_tail(&list));
    let mut writer = ListWriter::new(encoder, ends);
    let done = writer.fill(&mut list.items, CHUNK).await?;
    let first = writer.take();
    if done {
        return Ok(Body::from(first));
    }
    let rest = stream::unfold(Some((writer, list.items)), |state| async move {
        let (mut writer, mut items) = state?;
        match writer.fill(&mut items, CHUNK).await {
            Ok(true) => Some((Ok(writer.take()), None)),
            Ok(false) => Some((Ok(writer.take()), Some((writer, items)))),
            Err(error) => {
                tracing::warn!(%error, "a list breaks off");
                Some((Err(io::Error::other(error)), None))
            }
        }
    });
    Ok(Body::from_stream(stream::iter([Ok(first)]).chain(rest)))
}

struct ListWriter {
    encoder: Encoder,
    out: Vec<u8>,
    /// Items that have been read but not written.
    pending: std::vec::IntoIter<Arc<Object>>,
    written: usize,
    tail: Vec<u8>,
}

impl ListWriter {
    /// With what stands before the items and behind them.
    fn new(encoder: Encoder, (out, tail): (Vec<u8>, Vec<u8>)) -> Self {
        Self { encoder, out, pending: Vec::new().into_iter(), written: 0, tail }
    }

    /// Takes the bytes that were written since the last call.
    fn take(&mut self) -> Bytes {
        std::mem::replace(&mut self.out, Vec::with_capacity(CHUNK + CHUNK / 4)).into()
    }

    /// Writes items until there are `enough` bytes. Returns true after the last item.
    async fn fill(&mut self, items: &mut Items, enough: usize) -> Result<bool, Error> {
        while self.out.len() < enough {
            if let Some(object) = self.pending.next() {
                self.write(&object)?;
                if self.encoder.makes_items() && self.written.is_multiple_of(MADE_AT_ONCE) {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            let Some(objects) = items.next().await else {
                self.end();
                return Ok(true);
            };
            self.pending = objects?.into_iter();
        }
        Ok(false)
    }

    fn write(&mut self, object: &Object) -> Result<(), Error> {
        self.out.push(if self.written > 0 { b',' } else { b'[' });
        self.written += 1;
        self.encoder.item(&mut self.out, object)
    }

    fn end(&mut self) {
        let end: &[u8] = if self.written > 0 { b"]" } else { self.encoder.empty_items() };
        self.out.extend_from_slice(end);
        self.out.append(&mut self.tail);
    }
}

/// Reads the whole list first: needed for indented JSON, for YAML, and for the two kinds whose rows have an order of
/// their own or tell a default.
async fn whole_list(encoder: Encoder, mut list: List, printing: &Printing) -> Result<Body, Error> {
    let (mut objects, mut size) = (Vec::new(), 0);
    while let Some(chunk) = list.items.next().await {
        let chunk = chunk?;
        size += chunk.iter().map(|object| object.size()).sum::<usize>();
        objects.extend(chunk);
        tokio::task::yield_now().await;
    }
    let ends = (encoder.list_head(&list), encoder.list_tail(&list));
    if size <= PRINTED_AT_ONCE {
        return print_list(encoder, ends, objects).map(Body::from);
    }
    printing.run(move || print_list(encoder, ends, objects)).await?.map(Body::from)
}

fn print_list(
    mut encoder: Encoder,
    ends: (Vec<u8>, Vec<u8>),
    mut objects: Vec<Arc<Object>>,
) -> Result<Vec<u8>, Error> {
    if encoder.needs_all() {
        let mut keyed = Vec::with_capacity(objects.len());
        for object in objects {
            keyed.push((Value::Object(object.to_map()?), object));
        }
        if let Some(order) = encoder.order() {
            keyed.sort_by(|(a, _), (b, _)| order(a, b));
        }
        let values: Vec<Value>;
        (values, objects) = keyed.into_iter().unzip();
        encoder.note_default(&values);
    }
    let mut writer = ListWriter::new(encoder, ends);
    for object in objects {
        writer.write(&object)?;
    }
    writer.end();
    let Encoder { media, pretty, .. } = writer.encoder;
    if media == MediaType::Json && !pretty {
        return Ok(writer.out);
    }
    let value: Value = serde_json::from_slice(&writer.out)
        .map_err(|error| Error::Internal(format!("the list is not JSON: {error}")))?;
    encode(&value, media, pretty)
}

/// The body of a protobuf list. Its length comes first, so all messages are made before the first byte is sent;
/// messages of stored objects exist already, or are made and shared, so that only references are held meanwhile.
async fn protobuf_list(encoder: Encoder, mut list: List) -> Result<Body, Error> {
    let head = encoder.protobuf_list_head(&list)?;
    let (mut items, mut length, mut made, mut turn) = (Vec::new(), 0, 0, Turn::default());
    while let Some(objects) = list.items.next().await {
        for object in objects? {
            made += usize::from(object.made_size() == 0);
            let item = encoder.protobuf_item(object)?;
            // Done now, while the object is in the processor's cache.
            length += size_of_bytes(head.items_number, item.bytes().len());
            items.push(item);
            if turn.take(1) || made == MADE_AT_ONCE {
                made = 0;
                turn.end().await;
            }
        }
    }
    let items_number = head.items_number;
    let mut writer = ProtobufWriter { out: head.before(length), items_number, items: items.into_iter() };
    let first = writer.fill();
    if writer.items.len() == 0 {
        return Ok(Body::from(first));
    }
    let rest = std::iter::from_fn(move || (writer.items.len() > 0).then(|| writer.fill()));
    Ok(Body::from_stream(stream::iter(std::iter::once(first).chain(rest).map(Ok::<_, Infallible>))))
}

struct ProtobufWriter {
    out: Vec<u8>,
    items_number: i32,
    items: std::vec::IntoIter<Item>,
}

impl ProtobufWriter {
    /// The next chunk. The last one contains the end of the list.
    fn fill(&mut self) -> Bytes {
        while self.out.len() < CHUNK
            && let Some(item) = self.items.next()
        {
            append_bytes(&mut self.out, self.items_number, item.bytes());
        }
        if self.items.len() == 0 {
            self.out.extend_from_slice(Envelope::TAIL);
        }
        std::mem::replace(&mut self.out, Vec::with_capacity(CHUNK + CHUNK / 4)).into()
    }
}

/// The body of a watch.
pub fn watch(writer: WatchWriter) -> Body {
    Body::from_stream(stream::unfold(writer, |mut writer| async move {
        let chunk = writer.next().await?;
        Some((Ok::<_, Infallible>(chunk), writer))
    }))
}

/// The events of a watch, each by itself and without the length that stands before it in a stream of protobuf.
pub fn watch_messages(writer: WatchWriter) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + Unpin {
    let before = if writer.encoder.media == MediaType::Protobuf { LENGTH_PREFIX } else { 0 };
    Box::pin(stream::unfold(writer, move |mut writer| async move {
        let event = writer.next_event().await?;
        Some((Ok(event.slice(before.min(event.len())..)), writer))
    }))
}

/// The writer of a watch's events.
pub struct WatchWriter {
    encoder: Encoder,
    /// `None` once an error has been sent.
    watch: Option<Watch>,
    /// Events of the last step that have not been sent.
    pending: std::vec::IntoIter<WatchEvent>,
    events: WatchEventMetrics,
    columns: Columns,
    _active: LongRunning,
}

impl WatchWriter {
    /// `events` counts the events that are sent; `active` lives as long as the watch.
    pub fn new(encoder: Encoder, watch: Watch, events: WatchEventMetrics, active: LongRunning) -> Self {
        Self {
            encoder,
            watch: Some(watch),
            pending: Vec::new().into_iter(),
            events,
            columns: Columns::Shown,
            _active: active,
        }
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        if self.pending.len() == 0 {
            self.pending = self.watch.as_mut()?.next().await?.into_iter();
        }
        self.next_frame()
    }

    /// The next event, and those that are there already.
    async fn next(&mut self) -> Option<Bytes> {
        let first = self.next_event().await?;
        // Sent alone without a copy: all watchers share an event's frame, and large frames are not worth joining.
        if self.pending.len() == 0 || first.len() >= CHUNK {
            return Some(first);
        }
        let mut out = Vec::with_capacity(((self.pending.len() + 1) * first.len()).min(CHUNK + CHUNK / 4));
        out.extend_from_slice(&first);
        while out.len() < CHUNK
            && let Some(frame) = self.next_frame()
        {
            out.extend_from_slice(&frame);
        }
        Some(out.into())
    }

    fn next_frame(&mut self) -> Option<Bytes> {
        let event = self.pending.next()?;
        let frame = self.frame(&event);
        self.events.sent(frame.len());
        Some(frame)
    }

    fn frame(&mut self, event: &WatchEvent) -> Bytes {
        if let WatchEvent::Error(error @ Error::Datastore(_)) = event {
            tracing::warn!(%error, "a watch ends");
        }
        let frame = self.encoder.event(event, self.columns);
        self.columns = Columns::Omitted;
        frame.unwrap_or_else(|error| {
            self.watch = None;
            self.pending = Vec::new().into_iter();
            let event = WatchEvent::Error(error);
            self.encoder.event(&event, Columns::Omitted).unwrap_or_default()
        })
    }
}
