//! Faults: answers that requests get instead of those of their handlers, and delays.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;

use super::Subject;
use crate::api::error::Error;
use crate::http::response;
use crate::random::Random;
use crate::schema::names::GroupResource;

/// The most faults at a time.
const MOST: usize = 1000;

/// A rule that makes requests fail, or late. The first one that matches a request counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The verb of the API: `get`, `update`, `patch`; any one if there is none.
    pub verb: Option<String>,
    /// `pods`, `deployments.apps`, `pods/status`.
    pub resource: Option<String>,
    pub user: Option<String>,
    /// `None` leaves the answer to the handler.
    pub answer: Option<Answer>,
    pub delay: Option<Duration>,
    /// How many requests that match pass before.
    pub skip: u64,
    /// How many requests it strikes; `None` for all.
    pub count: Option<u64>,
    /// The share of requests that it strikes, of those that match.
    pub probability: f64,
}

/// The answer of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 409, as of a write of an old version.
    Conflict,
    /// 429.
    TooManyRequests,
    /// 500.
    Internal,
    /// The connection, or the stream, ends within the answer.
    Close,
}

/// The faults that are set, in their order.
#[derive(Default)]
pub struct Faults {
    all: Mutex<Vec<Fault>>,
    /// Whether there are some.
    any: AtomicBool,
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            verb: None,
            resource: None,
            user: None,
            answer: None,
            delay: None,
            skip: 0,
            count: None,
            probability: 1.0,
        }
    }
}

impl Fault {
    /// A fault of all requests of a verb to a resource.
    pub fn on(verb: &str, resource: &str) -> Self {
        Self { verb: Some(verb.to_owned()), resource: Some(resource.to_owned()), ..Self::default() }
    }

    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answer = Some(answer);
        self
    }

    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        is(&self.verb, subject.verb)
            && is(&self.user, &subject.user.name)
            && self.resource.as_deref().is_none_or(|resource| subject.is_of(resource))
    }
}

impl Faults {
    pub fn are_set(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn add(&self, fault: Fault) -> Result<(), Error> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            return Err(Error::too_many("faults are set"));
        }
        all.push(fault);
        self.any.store(true, Ordering::Release);
        Ok(())
    }

    /// The faults that may still strike.
    pub fn all(&self) -> Vec<Fault> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn clear(&self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.any.store(false, Ordering::Release);
    }

    /// The fault that strikes a request.
    pub(super) fn strike(&self, subject: &Subject<'_>, random: &Random) -> Option<Fault> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|fault| fault.matches(subject))?;
        let fault = all.get_mut(place)?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        if fault.probability < 1.0 && random.share() >= fault.probability {
            return None;
        }
        let struck = fault.clone();
        if let Some(left) = &mut fault.count {
            *left = left.saturating_sub(1);
        }
        all.retain(|fault| fault.count != Some(0));
        self.any.store(!all.is_empty(), Ordering::Release);
        Some(struck)
    }
}

impl Answer {
    pub(super) fn to_response(self, subject: &Subject<'_>, parts: &Parts) -> Response {
        let resource = subject.resource.split('/').next().unwrap_or_default();
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let error = match self {
            Self::Conflict => Error::modified(GroupResource::new(group, plural), subject.name),
            Self::TooManyRequests => Error::too_many("requests"),
            Self::Internal => Error::Internal("a fault of a test".to_owned()),
            Self::Close => {
                let broken = io::Error::from(io::ErrorKind::ConnectionReset);
                return Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(broken)])));
            }
        };
        response::failure(&error, parts)
    }
}
