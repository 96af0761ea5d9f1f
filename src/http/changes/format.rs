//! The forms of lines: rowplane's own, CloudEvents 1.0 in structured mode, and an envelope as Debezium's.

use super::line::Line;
use super::request::{ChangesRequest, Form};
use crate::cache::State;
use crate::http::app::App;
use crate::revision::Revision;
use crate::tree::{Value, json};

/// The writer of lines.
pub struct Format {
    form: Form,
    /// The uid of the namespace `kube-system`, by which a cluster is known.
    cluster: String,
}

impl Format {
    pub fn new(form: Form, app: &App, state: &State) -> Self {
        let namespaces = app.api.catalog.served();
        let found = namespaces
            .stored()
            .find(|resource| resource.group_resource().to_string() == "namespaces")
            .and_then(|resource| state.get(resource.id, "", "kube-system"));
        let cluster = found.as_deref().and_then(|object| object.uid()).unwrap_or_default().to_owned();
        Self { form, cluster }
    }

    /// A line with its end.
    pub fn line(&self, line: &Line, request: &ChangesRequest) -> String {
        let value = match self.form {
            Form::Ndjson => data(line, request),
            Form::CloudEvents => self.cloud_event(line, request),
            Form::Debezium => self.envelope(line),
        };
        format!("{value}\n")
    }

    pub fn heartbeat(&self, revision: Revision, time: String) -> String {
        let value = match self.form {
            Form::CloudEvents => json!({
                "specversion": "1.0",
                "type": "dev.rowplane.heartbeat",
                "source": self.source(),
                "id": format!("heartbeat-{revision}"),
                "time": time,
                "datacontenttype": "application/json",
                "data": {"revision": revision.to_string()},
            }),
            Form::Ndjson | Form::Debezium => {
                json!({"heartbeat": true, "revision": revision.to_string(), "time": time})
            }
        };
        format!("{value}\n")
    }

    fn source(&self) -> String {
        format!("/rowplane/{}", self.cluster)
    }

    fn cloud_event(&self, line: &Line, request: &ChangesRequest) -> Value {
        let entry = &line.change.entry;
        let event = entry["event"].as_str().unwrap_or_default().to_lowercase();
        let mut value = json!({
            "specversion": "1.0",
            "type": format!("dev.rowplane.object.{event}"),
            "source": self.source(),
            "id": entry["revision"],
            "subject": path(line),
        });
        if let Some(time) = entry.get("time") {
            value["time"] = time.clone();
        }
        value["datacontenttype"] = "application/json".into();
        value["data"] = data(line, request);
        value
    }

    fn envelope(&self, line: &Line) -> Value {
        let entry = &line.change.entry;
        let operation = match entry["event"].as_str() {
            Some("ADDED") => "c",
            Some("DELETED") => "d",
            Some("SNAPSHOT") => "r",
            _ => "u",
        };
        let object = |object: &Option<_>| object.clone().map_or(Value::Null, Value::Object);
        let time = entry["time"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let mut source = json!({
            "connector": "rowplane",
            "version": env!("CARGO_PKG_VERSION"),
            "db": self.cluster,
            "table": line.resource.group_resource().to_string(),
            "revision": entry["revision"],
        });
        for name in ["user", "manager"] {
            if let Some(value) = entry.get(name) {
                source[name] = value.clone();
            }
        }
        json!({
            "before": object(&line.change.previous),
            "after": object(&line.change.object),
            "op": operation,
            "ts_ms": time.map_or(Value::Null, |time| time.as_millisecond().into()),
            "source": source,
        })
    }
}

/// A line of rowplane's own form.
fn data(line: &Line, request: &ChangesRequest) -> Value {
    let include = request.form;
    let mut value = json!({});
    let entry = line.change.entry.as_object().into_iter().flat_map(|entry| entry.iter());
    for (name, member) in entry {
        // The revision before, which the object itself has, too.
        if name == "previous" || (name == "changed" && !include.changed) {
            continue;
        }
        value[name.as_str()] = member.clone();
        if name == "event" {
            value["resource"] = line.resource.group_resource().to_string().into();
            if !line.namespace.is_empty() {
                value["namespace"] = (*line.namespace).into();
            }
            value["name"] = (*line.name).into();
        }
    }
    let is_snapshot = line.change.entry["event"] == "SNAPSHOT";
    if let Some(object) = line.change.object.as_ref().filter(|_| include.object || is_snapshot) {
        value["object"] = Value::Object(object.clone());
    }
    if let Some(previous) = line.change.previous.as_ref().filter(|_| include.previous) {
        value["previous"] = Value::Object(previous.clone());
    }
    value
}

/// The path of an object in the API.
fn path(line: &Line) -> String {
    let definition = &line.resource.definition;
    let base = match definition.group().as_str() {
        "" => format!("/api/{}", definition.version()),
        group => format!("/apis/{group}/{}", definition.version()),
    };
    let (plural, name) = (&definition.plural, &line.name);
    match &*line.namespace {
        "" => format!("{base}/{plural}/{name}"),
        namespace => format!("{base}/namespaces/{namespace}/{plural}/{name}"),
    }
}
