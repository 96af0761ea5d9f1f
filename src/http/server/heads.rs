//! Heads of HTTP/1 requests, judged before hyper reads them: as Go's net/http does, with a text in every refusal.
//!
//! [`Heads`] stands between the connection and hyper, and follows the requests on it. A usual head is looked at where it lies
//! and goes on as it is. One that hyper could not read, such as one with a query of a megabyte, is passed on shortened, and
//! what was left out reaches [`serve`] beside it, in the order of requests. In place of a head that is refused, hyper is given
//! the head of a request whose answer is the refusal, so that it comes after the answers to what was asked before.

mod answer;
mod byte_set;
mod chunks;
mod head;
mod refusal;
mod request_line;
#[cfg(test)]
mod tests;
mod unread;

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::PollSemaphore;

pub use self::answer::serve;
use self::chunks::{Chunks, Step};
pub use self::head::LongQuery;
use self::head::{Aside, Following, Framing, Verdict};
use self::refusal::Refusal;
pub use self::request_line::LONG;
use self::unread::MOST;
use super::connection_state::Connection;
use crate::layered::Layer;

/// The longest head, in bytes: Go's `DefaultMaxHeaderBytes`, and the buffer that it reads beyond.
const LONGEST: usize = (1 << 20) + 4096;
/// Bytes of a head that a connection without a credential may hold by itself.
const SMALL: usize = 64 << 10;
/// Larger heads of connections without a credential that are read at a time.
pub const LARGE_HEADS: usize = 16;
/// Bytes that are held back until it is known whose they are.
const HELD: usize = 64 << 10;
/// How long a closing connection waits for more bytes that it reads for nobody (Go's `rstAvoidanceDelay`).
const LINGER: Duration = Duration::from_millis(500);
/// Passed on in place of a head that is refused.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

/// The facts about a request that [`serve`] needs beside hyper's.
#[derive(Debug, Default)]
struct Note {
    may_switch: bool,
    expects: bool,
    special: Option<Box<Special>>,
    /// The place of a large head, held until its request is answered.
    _room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum Special {
    Refused(Refusal),
    Aside(Aside),
}

/// The state that the reader of heads and the service of a connection share.
#[derive(Debug, Default)]
pub struct Announced {
    notes: Mutex<VecDeque<Note>>,
    switched: AtomicU8,
}

const UNDECIDED: u8 = 0;
const STAYS: u8 = 1;
const SWITCHES: u8 = 2;

impl Announced {
    fn notes(&self) -> MutexGuard<'_, VecDeque<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum State {
    Head,
    /// So many bytes of a body.
    Body(u64),
    Chunked(Chunks),
    /// The next bytes may belong to another protocol.
    Undecided,
    /// The next bytes belong to another protocol.
    Switched,
    /// Nothing more is read.
    Ended,
}

/// The layer of an HTTP/1 connection through which hyper reads it.
pub struct Heads {
    connection: Arc<Connection>,
    announced: Arc<Announced>,
    state: State,
    /// Whether the bytes after the body at hand may belong to another protocol.
    next_may_switch: bool,
    is_after_post: bool,
    /// Bytes that are not whole yet, and how many of them hold no end of a head.
    raw: BytesMut,
    scanned: usize,
    /// Bytes for hyper.
    ready: BytesMut,
    /// Places for large heads.
    places: PollSemaphore,
    room: Option<OwnedSemaphorePermit>,
    lingering: Option<Lingering>,
}

struct Lingering {
    left: u64,
    timer: Pin<Box<Sleep>>,
}

impl Heads {
    pub fn new(connection: Arc<Connection>, places: PollSemaphore) -> (Self, Arc<Announced>) {
        let announced = Arc::<Announced>::default();
        let heads = Self {
            connection,
            announced: announced.clone(),
            state: State::Head,
            next_may_switch: false,
            is_after_post: false,
            raw: BytesMut::new(),
            scanned: 0,
            ready: BytesMut::new(),
            places,
            room: None,
            lingering: None,
        };
        (heads, announced)
    }

    /// How many of these bytes go on as they stand, where nothing was held back before. The others are held back.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Switched => return bytes.len(),
                State::Body(left) => {
                    let part = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= part as u64;
                    at += part;
                    if *left == 0 {
                        self.end_body();
                    }
                }
                State::Head if !(self.is_after_post && matches!(rest[0], b'\r' | b'\n')) => {
                    let Some(end) = head::end(rest, 0) else { break };
                    match head::judge(&rest[..end]) {
                        Verdict::Plain(following) => {
                            self.follow(following, None);
                            at += end;
                        }
                        other => {
                            self.raw.extend_from_slice(&rest[end..]);
                            self.pass_judged(&rest[..end], other);
                            self.pass_held();
                            return at;
                        }
                    }
                }
                State::Head | State::Chunked(_) | State::Undecided | State::Ended => break,
            }
        }
        self.raw.extend_from_slice(&bytes[at..]);
        self.pass_held();
        at
    }

    /// Passes on what is whole of what was held back.
    fn pass_held(&mut self) {
        while !self.raw.is_empty() {
            match &mut self.state {
                State::Switched => self.ready.unsplit(self.raw.split()),
                State::Body(left) => {
                    let part = self.raw.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    self.ready.extend_from_slice(&self.raw.split_to(part));
                    *left -= part as u64;
                    if *left == 0 {
                        self.end_body();
                    }
                }
                State::Chunked(chunks) => match chunks.pass(&mut self.raw, &mut self.ready) {
                    Step::More => return,
                    Step::Done => self.end_body(),
                    Step::Broken => self.state = State::Ended,
                },
                State::Head => {
                    if self.scanned == 0 && self.is_after_post {
                        // Old clients send an empty line behind the body of a POST.
                        let blank = self.raw.iter().take(4).take_while(|byte| matches!(byte, b'\r' | b'\n'));
                        let blank = blank.count();
                        self.raw.advance(blank);
                        self.is_after_post = self.raw.is_empty() && blank < 4;
                        continue;
                    }
                    let Some(end) = head::end(&self.raw, self.scanned.saturating_sub(2)) else {
                        self.scanned = self.raw.len();
                        if self.raw.len() > LONGEST {
                            self.refuse(refusal::TOO_LARGE);
                        }
                        return;
                    };
                    let head = self.raw.split_to(end);
                    self.scanned = 0;
                    match end > LONGEST {
                        true => self.refuse(refusal::TOO_LARGE),
                        false => self.pass_judged(&head, head::judge(&head)),
                    }
                }
                State::Undecided => match self.announced.switched.load(Ordering::Acquire) {
                    STAYS => self.state = State::Head,
                    SWITCHES => self.state = State::Switched,
                    _ => return,
                },
                State::Ended => return self.raw.clear(),
            }
        }
        self.raw = BytesMut::new();
    }

    fn pass_judged(&mut self, head: &[u8], verdict: Verdict) {
        match verdict {
            Verdict::Plain(following) => {
                self.ready.extend_from_slice(head);
                self.follow(following, None);
            }
            Verdict::Rewritten(short, following, aside) => {
                self.ready.extend_from_slice(&short);
                self.follow(following, Some(Special::Aside(aside)));
            }
            Verdict::Refused(refusal) => self.refuse(refusal),
        }
    }

    fn follow(&mut self, following: Following, special: Option<Special>) {
        let Following { framing, may_switch, expects, is_post } = following;
        if may_switch {
            self.announced.switched.store(UNDECIDED, Ordering::Release);
        }
        let room = self.room.take();
        self.announce(Note { may_switch, expects, special: special.map(Box::new), _room: room });
        (self.next_may_switch, self.is_after_post) = (may_switch, is_post);
        match framing {
            Framing::Length(0) => self.end_body(),
            Framing::Length(length) => self.state = State::Body(length),
            Framing::Chunked => self.state = State::Chunked(Chunks::default()),
        }
    }

    fn end_body(&mut self) {
        self.state = if self.next_may_switch { State::Undecided } else { State::Head };
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.announce(Note { special: Some(Box::new(Special::Refused(refusal))), ..Note::default() });
        self.ready.extend_from_slice(REFUSED);
        self.room = None;
        self.state = State::Ended;
        self.raw = BytesMut::new();
    }

    fn announce(&self, note: Note) {
        self.announced.notes().push_back(note);
    }

    /// Whether more may be read. A large head of a connection without a credential needs a place.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let needs_room = matches!(self.state, State::Head) && self.raw.len() > SMALL;
        if needs_room && self.room.is_none() && !self.connection.is_authenticated() {
            self.room = ready!(self.places.poll_acquire(context));
        }
        Poll::Ready(())
    }

    fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let part = self.ready.len().min(buffer.remaining());
        buffer.put_slice(&self.ready[..part]);
        self.ready.advance(part);
        if self.ready.is_empty() {
            self.ready = BytesMut::new();
        }
    }
}

impl Heads {
    /// Reads what still comes away. A socket that is closed with unread bytes resets its connection, and the peer may not see
    /// the answer.
    fn poll_linger<S: AsyncRead>(&mut self, mut stream: Pin<&mut S>, context: &mut Context<'_>) -> Poll<()> {
        let lingering =
            self.lingering.get_or_insert_with(|| Lingering { left: MOST, timer: Box::pin(sleep(LINGER)) });
        let mut scratch = [0; 16 << 10];
        for _ in 0..16 {
            let mut buffer = ReadBuf::new(&mut scratch);
            match stream.as_mut().poll_read(context, &mut buffer) {
                Poll::Pending => return lingering.timer.as_mut().poll(context),
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let read = buffer.filled().len() as u64;
                    let Some(left) = lingering.left.checked_sub(read) else { return Poll::Ready(()) };
                    lingering.left = left;
                    lingering.timer.as_mut().reset(Instant::now() + LINGER);
                }
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Layer<S> for Heads {
    fn poll_read(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if matches!(self.state, State::Undecided) {
                self.pass_held();
            }
            if !self.ready.is_empty() {
                self.give(buffer);
                return Poll::Ready(Ok(()));
            }
            match self.state {
                // hyper would take an end for one of the client.
                State::Ended => return Poll::Pending,
                State::Undecided if self.raw.len() > HELD => return Poll::Pending,
                _ => ready!(self.poll_room(context)),
            }
            let start = buffer.filled().len();
            ready!(stream.as_mut().poll_read(context, buffer))?;
            let read = buffer.filled().len() - start;
            if read == 0 {
                if matches!(self.state, State::Head) && !self.raw.is_empty() {
                    self.refuse(refusal::UNFINISHED);
                    continue;
                }
                return Poll::Ready(Ok(()));
            }
            let passed = if self.raw.is_empty() {
                self.pass(&buffer.filled()[start..])
            } else {
                self.raw.extend_from_slice(&buffer.filled()[start..]);
                self.pass_held();
                0
            };
            buffer.set_filled(start + passed);
            if passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_shutdown(&mut self, mut stream: Pin<&mut S>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(stream.as_mut().poll_shutdown(context))?;
        }
        if matches!(self.state, State::Body(_) | State::Chunked(_) | State::Ended) {
            ready!(self.poll_linger(stream, context));
        }
        Poll::Ready(Ok(()))
    }
}
