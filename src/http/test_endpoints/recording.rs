//! A record of requests: what clients have asked, and what they were answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::body::Body;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;

use super::Subject;
use crate::api::error::Error;
use crate::http::request::info::RequestInfo;
use crate::http::request::{header_text, request_uri};
use crate::http::response;
use crate::tree::{Map, Value, json};

/// The most requests that are kept; those before are forgotten.
const MOST: usize = 10_000;
/// The most bytes of bodies that are kept with them.
const MOST_BYTES: usize = 64 << 20;
/// The longest body that is kept.
const LONGEST: usize = 256 << 10;
/// The longest body of a request while requests are recorded.
const LONGEST_REQUEST: usize = 64 << 20;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its place among all.
    pub number: u64,
    pub time: Timestamp,
    pub user: String,
    pub user_agent: String,
    pub verb: String,
    /// With the query.
    pub path: String,
    /// `deployments.apps/scale`; empty for other paths than those of resources.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub code: u16,
    /// Empty if there is none, or if it is too long, or a stream.
    pub request: Bytes,
    pub response: Bytes,
}

/// The part of the record that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Requests after this number.
    pub since: u64,
    pub user: Option<String>,
    pub verb: Option<String>,
    /// With its group, if that is not the core's.
    pub resource: Option<String>,
}

/// The ring of requests.
#[derive(Default)]
pub struct Recording {
    is_on: AtomicBool,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    newest: u64,
    bytes: usize,
    requests: VecDeque<Arc<Recorded>>,
}

impl Recording {
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Begins or ends the record. What is there stays.
    pub fn switch(&self, on: bool) {
        self.is_on.store(on, Ordering::Release);
    }

    /// Forgets all requests. Their numbers go on.
    pub fn clear(&self) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        (ring.bytes, ring.requests) = (0, VecDeque::new());
    }

    /// The requests that are asked for, oldest first.
    pub fn requests(&self, filter: &Filter) -> Vec<Arc<Recorded>> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.requests.iter().filter(|request| filter.matches(request)).cloned().collect()
    }

    /// Answers a request, and records it before its client has the answer. Bodies are read as a whole, but those of
    /// long-running requests, which are not recorded.
    pub(super) async fn around(
        &self,
        subject: &Subject<'_>,
        info: &RequestInfo,
        parts: &Parts,
        body: Body,
        handler: impl AsyncFnOnce(Body) -> Response,
    ) -> Response {
        let mut recorded = recorded(subject, parts);
        if info.is_long_running() {
            let response = handler(body).await;
            recorded.code = response.status().as_u16();
            self.add(recorded);
            return response;
        }
        let Ok(request) = Limited::new(body, LONGEST_REQUEST).collect().await else {
            return response::failure(&Error::TooLarge { limit: LONGEST_REQUEST }, parts);
        };
        recorded.request = request.to_bytes();
        let response = handler(Body::from(recorded.request.clone())).await;
        recorded.code = response.status().as_u16();
        let (head, body) = response.into_parts();
        match body.collect().await {
            Ok(collected) => {
                recorded.response = collected.to_bytes();
                recorded.name_new();
                let body = Body::from(recorded.response.clone());
                self.add(recorded);
                Response::from_parts(head, body)
            }
            Err(error) => {
                self.add(recorded);
                let broken = futures_util::stream::iter([Err::<Bytes, _>(error)]);
                Response::from_parts(head, Body::from_stream(broken))
            }
        }
    }

    fn add(&self, mut recorded: Recorded) {
        for body in [&mut recorded.request, &mut recorded.response] {
            if body.len() > LONGEST {
                *body = Bytes::new();
            }
        }
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.newest += 1;
        ring.bytes += recorded.bytes();
        recorded.number = ring.newest;
        ring.requests.push_back(Arc::new(recorded));
        while ring.requests.len() > MOST || ring.bytes > MOST_BYTES {
            let Some(oldest) = ring.requests.pop_front() else { break };
            ring.bytes -= oldest.bytes();
        }
    }
}

fn recorded(subject: &Subject<'_>, parts: &Parts) -> Recorded {
    Recorded {
        number: 0,
        time: now(),
        user: subject.user.name.clone(),
        user_agent: header_text(&parts.headers, header::USER_AGENT).unwrap_or_default().to_owned(),
        verb: subject.verb.to_owned(),
        path: request_uri(parts).into_owned(),
        resource: subject.resource.clone(),
        namespace: subject.namespace.to_owned(),
        name: subject.name.to_owned(),
        code: 0,
        request: Bytes::new(),
        response: Bytes::new(),
    }
}

/// The time that passes for clients, whatever the server's is set to.
#[expect(clippy::disallowed_methods, reason = "a test compares it with its own")]
fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}

impl Filter {
    fn matches(&self, request: &Recorded) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        request.number > self.since
            && is(&self.user, &request.user)
            && is(&self.verb, &request.verb)
            && is(&self.resource, &request.resource)
    }
}

impl Recorded {
    fn bytes(&self) -> usize {
        self.request.len() + self.response.len()
    }

    /// Names the object that was created, which the path does not.
    fn name_new(&mut self) {
        if self.verb == "create" && self.name.is_empty() {
            let made = self.response_object().unwrap_or_default();
            self.name = crate::fields::text(&made, &["metadata", "name"]).to_owned();
        }
    }

    /// The object that was sent; `None` without a body of JSON.
    pub fn request_object(&self) -> Option<Map> {
        serde_json::from_slice(&self.request).ok()
    }

    /// The object of the answer; `None` if that is no JSON.
    pub fn response_object(&self) -> Option<Map> {
        serde_json::from_slice(&self.response).ok()
    }

    /// The request as clients get it. Bodies in other encodings than JSON are left out.
    pub(super) fn to_json(&self) -> Value {
        let mut shown = json!({
            "number": self.number,
            "time": crate::gotext::micro_time(self.time),
            "user": self.user.clone(),
            "userAgent": self.user_agent.clone(),
            "verb": self.verb.clone(),
            "path": self.path.clone(),
            "resource": self.resource.clone(),
            "namespace": self.namespace.clone(),
            "name": self.name.clone(),
            "code": self.code,
        });
        let answer = self.response_object();
        let revision =
            answer.as_ref().map(|answer| crate::fields::text(answer, &["metadata", "resourceVersion"]));
        if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
            shown["revision"] = revision.into();
        }
        for (member, body) in [("request", self.request_object()), ("response", answer)] {
            if let Some(body) = body {
                shown[member] = Value::Object(body);
            }
        }
        shown
    }
}
