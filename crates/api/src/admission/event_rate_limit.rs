//! EventRateLimit: how many Events a server takes in, in all, of a namespace, of a user, and of a source about an object.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::{Admission, Attempt, Operation, Verdict};
use crate::error::Error;
use crate::options::DryRun;
use crate::request::Request;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const VERSION: &str = "eventratelimit.admission.k8s.io/v1alpha1";
const CACHE_SIZE: i64 = 4096;

pub(super) struct EventRateLimit {
    limits: Vec<Limit>,
}

/// One entry of the configuration.
struct Limit {
    kind: Kind,
    /// Events a second.
    qps: f64,
    burst: f64,
    /// How many keys are remembered.
    size: usize,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

/// The tokens that a key had when it was last looked at.
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

impl EventRateLimit {
    /// Reads a Configuration.
    pub fn new(content: Option<&Value>) -> Result<Self, String> {
        let Some(content) = content else { return Ok(Self { limits: Vec::new() }) };
        let (version, kind) = (&content["apiVersion"], &content["kind"]);
        if version != VERSION || kind != "Configuration" {
            return Err(format!("no kind {kind} is registered for version {version}"));
        }
        let limits = content["limits"].as_array().map(Vec::as_slice).unwrap_or_default();
        if limits.is_empty() {
            return Err("limits: Invalid value: [] : must not be empty".to_owned());
        }
        let limits = limits.iter().enumerate().map(|(index, limit)| Limit::parse(index, limit));
        Ok(Self { limits: limits.collect::<Result<_, _>>()? })
    }
}

impl Admission for EventRateLimit {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let definition = &request.target.resource.definition;
        operation != Operation::Delete
            && definition.kind_name() == "Event"
            && matches!(&**definition.group(), "" | "events.k8s.io")
            && request.options.dry_run() == DryRun::No
    }

    fn looks(&self, _: &Attempt<'_>) -> bool {
        false
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let now = attempt.cluster.runtime.clock.timestamp();
        let refusals = self.limits.iter().filter_map(|limit| limit.refuse(attempt, now));
        let refusals: Vec<String> = refusals.collect();
        let message = match &*refusals {
            [] => return Verdict::Now(Ok(())),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("Too many requests: {message}");
        Verdict::Now(Err(Error::TooManyRequests { message, retry_after: 0 }))
    }
}

impl Limit {
    fn parse(index: usize, limit: &Value) -> Result<Self, String> {
        let positive = |name: &str, default: Option<i64>| {
            let number = limit[name].as_i64().filter(|number| *number != 0).or(default).unwrap_or_default();
            match number > 0 {
                true => Ok(number),
                false => Err(format!("limits[{index}].{name}: Invalid value: {number}: must be positive")),
            }
        };
        let kind = match limit["type"].as_str().unwrap_or_default() {
            "Server" => Kind::Server,
            "Namespace" => Kind::Namespace,
            "User" => Kind::User,
            "SourceAndObject" => Kind::SourceAndObject,
            other => return Err(format!("limits[{index}].type: Unsupported value: \"{other}\"")),
        };
        Ok(Self {
            kind,
            qps: positive("qps", None)? as f64,
            burst: positive("burst", None)? as f64,
            size: positive("cacheSize", Some(CACHE_SIZE))? as usize,
            buckets: Mutex::default(),
        })
    }

    /// Takes a token of the Event's key; the text of a refusal if there is none.
    fn refuse(&self, attempt: &Attempt<'_>, now: Timestamp) -> Option<String> {
        let key = match self.kind {
            Kind::Server => String::new(),
            Kind::Namespace => attempt.target.namespace.to_owned(),
            Kind::User => attempt.request.user.name.clone(),
            Kind::SourceAndObject => attempt.object.as_ref().map(source_and_object).unwrap_or_default(),
        };
        if self.take(&key, now) {
            return None;
        }
        Some(format!("limit reached on type {:?} for key {key}", self.kind))
    }

    fn take(&self, key: &str, now: Timestamp) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= self.size && !buckets.contains_key(key) {
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(key, _)| key.clone());
            oldest.map(|key| buckets.remove(&key));
        }
        let full = Bucket { tokens: self.burst, at: now };
        let bucket = buckets.entry(key.to_owned()).or_insert(full);
        let passed = now.duration_since(bucket.at).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * self.qps).min(self.burst);
        bucket.at = now;
        let has_one = bucket.tokens >= 1.0;
        if has_one {
            bucket.tokens -= 1.0;
        }
        has_one
    }
}

/// The source of an Event and the object that it is about, as one key. The newer version of Events names some fields
/// otherwise.
fn source_and_object(event: &ObjectMap) -> String {
    let either = |old: &str, new: &str| fields::object(event, old).or_else(|| fields::object(event, new));
    let (source, object) = (either("source", "deprecatedSource"), either("involvedObject", "regarding"));
    let text = |of: Option<&ObjectMap>, name: &str| of.map_or("", |of| fields::text(of, &[name])).to_owned();
    let source = ["component", "host"].map(|name| text(source, name)).concat();
    source + &["kind", "namespace", "name", "uid", "apiVersion"].map(|name| text(object, name)).concat()
}
