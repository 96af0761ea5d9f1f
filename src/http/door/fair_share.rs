//! Priority and Fairness at the door: a request waits for its seats there, and keeps them until its answer is made.
//!
//! No seat waits for a client: a request whose body has not come gives its seats back until the body is there, and an answer
//! that is sent in pieces has none.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use http_body::Body as _;
use tokio::time::Instant;

use crate::api::error::Error;
use crate::api::options::request_timeout;
use crate::auth::authorizer::Attributes;
use crate::flow_control::{FlowControl, FlowOfLevel, Listing, Refused, Seat, Watching, Width};
use crate::http::request::info::RequestInfo;
use crate::http::request::{query, raw_query};
use crate::http::response;
use crate::http::response::holding::holding;
use crate::user::User;

const FLOW_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// The part of its time that a request may wait.
const WAITING_PART: u32 = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The seats of a request of a level with limits: a part of the request's extensions. Clones share them.
#[derive(Clone)]
pub struct Seated(Arc<Seats>);

struct Seats {
    flow: Arc<FlowOfLevel>,
    width: Width,
    /// How long the request may wait for them.
    longest: Duration,
    /// `None` while the request waits for its client, and once it is answered.
    held: Mutex<Option<Seat>>,
}

/// A request that may run.
pub struct Admitted {
    flow: Arc<FlowOfLevel>,
    seats: AdmittedSeats,
    watching: Option<Watching>,
}

enum AdmittedSeats {
    /// A seat of an exempt level.
    Exempt(Seat),
    Limited(Seated),
}

impl Seated {
    fn of(flow: Arc<FlowOfLevel>, width: Width, longest: Duration, seat: Seat) -> Self {
        Self(Arc::new(Seats { flow, width, longest, held: Mutex::new(Some(seat)) }))
    }

    /// Gives the seats back, since the request waits for its client.
    pub fn give_back(&self) {
        self.take().into_iter().for_each(Seat::give_back);
    }

    /// Waits for seats again, if they were given back.
    pub async fn regain(&self, parts: &Parts, user: &User) -> Result<(), Error> {
        let Seats { flow, width, longest, held } = &*self.0;
        if held.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        let info = RequestInfo::of_query(&parts.method, &parts.uri, raw_query(parts))?;
        let entered = flow.enter_again(&info.attributes(user), parts.uri.path(), *width, *longest).await;
        let seat = entered.map_err(|Refused { retry_after, .. }| Error::NoSeat { retry_after })?;
        *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(seat);
        Ok(())
    }

    fn take(&self) -> Option<Seat> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Waits for the seats of a request. `None` means that it needs none. A refusal is the answer.
pub async fn admit(
    control: &FlowControl,
    parts: &mut Parts,
    info: &RequestInfo,
    user: &User,
    request_time: Duration,
) -> Result<Option<Admitted>, Response> {
    let is_watch = info.verb() == "watch";
    if info.is_long_running() && !is_watch {
        return Ok(None);
    }
    let attributes = info.attributes(user);
    let Some(flow) = control.classify(&attributes) else { return Ok(None) };
    let width = control.width(&attributes, || listing(parts), &flow);
    let longest = longest_wait(parts, request_time);
    match flow.enter(&attributes, parts.uri.path(), width, Instant::now(), longest).await {
        Ok(seat) => {
            let watching = is_watch.then(|| control.watching(&attributes));
            let seats = if flow.is_exempt() {
                AdmittedSeats::Exempt(seat)
            } else {
                let seated = Seated::of(flow.clone(), width, longest, seat);
                parts.extensions.insert(seated.clone());
                AdmittedSeats::Limited(seated)
            };
            Ok(Some(Admitted { flow, seats, watching }))
        }
        Err(Refused { retry_after, .. }) => {
            let mut response = response::no_seat(retry_after);
            tell_flow(response.headers_mut(), &flow);
            Err(response)
        }
    }
}

/// A quarter of the time that the request has.
fn longest_wait(parts: &Parts, request_time: Duration) -> Duration {
    let has_own = raw_query(parts).is_some_and(|query| query.contains("timeout="));
    let time = match has_own {
        // One that is wrong is refused later.
        true => request_timeout(&query(parts), request_time).unwrap_or(request_time),
        false => request_time,
    };
    (time / WAITING_PART).min(LONGEST_WAIT)
}

fn listing(parts: &Parts) -> Listing {
    let query = query(parts);
    let version = query.text("resourceVersion");
    Listing {
        limit: query.text("limit").parse().unwrap_or_default(),
        has_state: query.flag("sendInitialEvents") == Some(true) || matches!(version, "" | "0"),
    }
}

fn tell_flow(headers: &mut HeaderMap, flow: &FlowOfLevel) {
    for (name, uid) in [FLOW_UID, LEVEL_UID].into_iter().zip(flow.uids()) {
        if let Ok(uid) = HeaderValue::from_maybe_shared(uid.clone()) {
            headers.insert(name, uid);
        }
    }
}

impl Admitted {
    /// Says what the request is, for those who look at what runs: one whose work is done at once need not.
    pub fn describe(&self, request: &Attributes<'_>, path: &str) {
        match &self.seats {
            AdmittedSeats::Exempt(seat) => self.flow.describe(seat, request, path),
            AdmittedSeats::Limited(Seated(seats)) => {
                let held = seats.held.lock().unwrap_or_else(PoisonError::into_inner);
                held.iter().for_each(|seat| self.flow.describe(seat, request, path));
            }
        }
    }

    /// Tells the client its flow, and gives the seats back: whatever is left of the answer is made as its reader takes it. A
    /// watch counts as one until it ends.
    pub fn finish(self, mut response: Response) -> Response {
        let Self { flow, seats, watching } = self;
        tell_flow(response.headers_mut(), &flow);
        match seats {
            AdmittedSeats::Exempt(seat) => drop(seat),
            AdmittedSeats::Limited(seated) => drop(seated.take()),
        }
        match watching {
            Some(watching) if response.body().size_hint().exact().is_none() => {
                response.map(|body| holding(body, watching))
            }
            _ => response,
        }
    }
}
