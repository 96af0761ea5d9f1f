//! Reads bodies: their size and media type. [`crate::api::decode`] decodes their content.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;

use super::header_text;
use crate::api::error::Error;
use crate::codec::media_type::MediaType;
use crate::http::limits::{BodyBudget, Room};
use crate::http::response::negotiate::body_type;

/// Bodies up to this length take no room of the budget if all of them is there when it is read: the number of requests in
/// flight is limit enough for them.
const SMALL: usize = 16 << 10;

/// A body that is being read.
pub struct Reading<'a, 'u> {
    body: Body,
    /// The limit of the body, in bytes.
    limit: usize,
    /// The budget in which the body counts, and its user; `None` if it does not count.
    budget: Option<(&'a BodyBudget, &'u str)>,
    room: Option<Room<'a>>,
    read: Pieces,
    was_awaited: bool,
}

/// The bytes that have been read: the only piece, or a copy of several.
#[derive(Default)]
struct Pieces {
    first: Bytes,
    joined: Vec<u8>,
}

impl Pieces {
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, piece: Bytes) {
        if self.len() == 0 {
            self.first = piece;
        } else {
            self.join();
            self.joined.extend_from_slice(&piece);
        }
    }

    /// Copies the only piece, which may be a small part of a large buffer.
    fn join(&mut self) {
        self.joined.extend_from_slice(&std::mem::take(&mut self.first));
    }

    fn take(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.into() }
    }
}

impl<'a, 'u> Reading<'a, 'u> {
    pub fn new(body: Body, limit: usize, budget: Option<(&'a BodyBudget, &'u str)>) -> Self {
        Self { body, limit, budget, room: None, read: Pieces::default(), was_awaited: false }
    }

    /// Reads the whole body. `awaiting` is called once if something of it has to be waited for. Returns the body and its
    /// room, which is to be kept as long as the body is.
    pub async fn read(mut self, awaiting: impl FnOnce()) -> Result<(Bytes, Option<Room<'a>>), Error> {
        let mut awaiting = Some(awaiting);
        loop {
            let frame = match self.body.frame().now_or_never() {
                Some(frame) => frame,
                None => {
                    self.was_awaited = true;
                    awaiting.take().into_iter().for_each(|awaiting| awaiting());
                    self.read.join();
                    self.take_room().await?;
                    self.body.frame().await
                }
            };
            match frame {
                None => return Ok((self.read.take(), self.room)),
                Some(Ok(frame)) => self.push(frame.into_data().unwrap_or_default()).await?,
                Some(Err(error)) => {
                    return Err(Error::BadRequest(format!("the request body could not be read: {error}")));
                }
            }
        }
    }

    async fn push(&mut self, piece: Bytes) -> Result<(), Error> {
        if self.read.len() + piece.len() > self.limit {
            return Err(Error::TooLarge { limit: self.limit });
        }
        self.read.push(piece);
        self.take_room().await
    }

    async fn take_room(&mut self) -> Result<(), Error> {
        let length = self.read.len();
        if length == 0 || length <= SMALL && !self.was_awaited {
            return Ok(());
        }
        let Some((budget, user)) = self.budget else { return Ok(()) };
        self.room.get_or_insert_with(|| budget.room(user)).extend_to(length).await
    }
}

/// The media type of the body.
pub fn media_type(headers: &HeaderMap) -> Result<MediaType, Error> {
    body_type(
        header_text(headers, header::CONTENT_TYPE),
        &[MediaType::Json, MediaType::Yaml, MediaType::Protobuf],
    )
}
