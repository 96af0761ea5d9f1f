//! Bodies and queries of the endpoints.

use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;

use super::{Answer, Controls, Fault};
use crate::api::error::Error;
use crate::codec::media_type::MediaType;
use crate::codec::yaml;
use crate::kinds::behavior::format;
use crate::tree::{Map, Value, json};
use crate::{fields, gotext};

/// Fails if there are other members than these.
pub fn only(object: &Map, known: &[&str]) -> Result<(), Error> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(Error::bad_request(format!("{key:?} is unknown; there are {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// A member that is a text, if it is there.
pub fn text(object: &Map, member: &str) -> Result<Option<String>, Error> {
    match object.get(member) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.to_string())),
        Some(_) => Err(Error::bad_request(format!("{member} has to be a text"))),
    }
}

/// The name of a new snapshot.
pub fn name(object: &Map) -> Result<String, Error> {
    only(object, &["name"])?;
    let name = text(object, "name")?.unwrap_or_default();
    match format::dns1123_label(&name).into_iter().next() {
        Some(why) => Err(Error::bad_request(format!("{name:?} cannot be the name of a snapshot: {why}"))),
        None => Ok(name),
    }
}

/// A duration as Go writes it.
pub fn duration(text: Option<&str>) -> Result<Option<Duration>, Error> {
    let Some(text) = text else { return Ok(None) };
    let parsed = match text.starts_with('-') {
        true => Err(format!("{text} is negative")),
        false => gotext::parse_duration(text),
    };
    parsed.map(Some).map_err(Error::bad_request)
}

/// Freezes the time, advances it, or lets it run, in this order.
pub fn set_time(controls: &Controls, wanted: &Map) -> Result<(), Error> {
    only(wanted, &["freeze", "advance", "run"])?;
    let freeze = text(wanted, "freeze")?.map(|at| {
        let at: Result<Timestamp, _> = at.parse();
        at.map_err(|error| Error::bad_request(format!("freeze is no time: {error}")))
    });
    let (freeze, advance) = (freeze.transpose()?, duration(text(wanted, "advance")?.as_deref())?);
    let run = match wanted.get("run") {
        None => false,
        Some(Value::Bool(run)) => *run,
        Some(_) => return Err(Error::bad_request("run has to be true")),
    };
    if let Some(at) = freeze {
        let since = Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH));
        controls.clock.freeze(UNIX_EPOCH + since.unwrap_or_default());
    }
    if let Some(by) = advance {
        controls.clock.advance(by);
    }
    if run {
        controls.clock.run();
    }
    Ok(())
}

/// The fault that a body describes.
pub fn fault(wanted: &Map) -> Result<Fault, Error> {
    only(wanted, &["match", "answer", "delay", "skip", "count", "probability"])?;
    let member = |name: &str, known: &[&str]| -> Result<Map, Error> {
        let object = match wanted.get(name) {
            None => Map::new(),
            Some(Value::Object(object)) => object.clone(),
            Some(_) => return Err(Error::bad_request(format!("{name} has to be an object"))),
        };
        only(&object, known).map(|()| object)
    };
    let whole = |name: &str| match wanted.get(name) {
        None => Ok(None),
        Some(number) => {
            number.as_u64().map(Some).ok_or_else(|| Error::bad_request(format!("{name} has to be a number")))
        }
    };
    let which = member("match", &["verb", "resource", "user"])?;
    let answer = member("answer", &["code"])?;
    let answer = match answer.get("code") {
        None => None,
        Some(Value::String(text)) if text == "close" => Some(Answer::Close),
        Some(code) => match code.as_u64() {
            Some(409) => Some(Answer::Conflict),
            Some(429) => Some(Answer::TooManyRequests),
            Some(500) => Some(Answer::Internal),
            _ => return Err(Error::bad_request("code can be 409, 429, 500 or \"close\"")),
        },
    };
    let probability = match wanted.get("probability") {
        None => 1.0,
        Some(share) => share
            .as_f64()
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| Error::bad_request("probability has to be between 0 and 1"))?,
    };
    let delay = duration(text(wanted, "delay")?.as_deref())?;
    if answer.is_none() && delay.is_none() {
        return Err(Error::bad_request("a fault has an answer with a code, or a delay"));
    }
    let count = whole("count")?;
    if count == Some(0) {
        return Err(Error::bad_request("count has to be 1 or more"));
    }
    Ok(Fault {
        verb: text(&which, "verb")?,
        resource: text(&which, "resource")?,
        user: text(&which, "user")?,
        answer,
        delay,
        skip: whole("skip")?.unwrap_or_default(),
        count,
        probability,
    })
}

/// A fault as clients get it.
pub fn fault_shown(fault: &Fault) -> Value {
    let (mut which, mut shown) = (Map::new(), Map::new());
    let parts = [("verb", &fault.verb), ("resource", &fault.resource), ("user", &fault.user)];
    for (member, text) in parts {
        if let Some(text) = text {
            which.insert(member, text.as_str().into());
        }
    }
    shown.insert("match", Value::Object(which));
    let code: Option<Value> = fault.answer.map(|answer| match answer {
        Answer::Conflict => 409.into(),
        Answer::TooManyRequests => 429.into(),
        Answer::Internal => 500.into(),
        Answer::Close => "close".into(),
    });
    if let Some(code) = code {
        shown.insert("answer", json!({"code": code}));
    }
    if let Some(delay) = fault.delay {
        shown.insert("delay", gotext::duration(delay).into());
    }
    shown.insert("skip", fault.skip.into());
    if let Some(count) = fault.count {
        shown.insert("count", count.into());
    }
    shown.insert("probability", json!(fault.probability));
    Value::Object(shown)
}

/// The objects of a body: an object, a List of some, or documents of YAML with either.
pub fn objects(media: MediaType, body: &[u8]) -> Result<Vec<Map>, Error> {
    let values = match media {
        MediaType::Json => {
            serde_json::from_slice(body).map(|value| vec![value]).map_err(|error| error.to_string())
        }
        MediaType::Yaml => yaml::documents(body)
            .and_then(|documents| documents.iter().map(|document| yaml::parse(document)).collect()),
        MediaType::Protobuf => Err("objects have to be JSON or YAML".to_owned()),
    };
    let mut found = Vec::new();
    for value in values.map_err(|why| Error::bad_request(format!("the objects cannot be read: {why}")))? {
        collect(value, &mut found)?;
    }
    Ok(found)
}

fn collect(value: Value, found: &mut Vec<Map>) -> Result<(), Error> {
    let object = match value {
        Value::Object(object) => object,
        Value::Null => return Ok(()),
        _ => return Err(Error::bad_request("there is something that is no object")),
    };
    if fields::text(&object, &["kind"]).ends_with("List") && object.contains_key("items") {
        for item in fields::items(&object, &["items"]) {
            collect(item.clone(), found)?;
        }
        return Ok(());
    }
    found.push(object);
    Ok(())
}
