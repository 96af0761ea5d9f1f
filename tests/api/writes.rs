//! What a real kube-apiserver answered to writes (`testdata/writes`, made by `tests/upstream/versus`), request by request.

use std::collections::HashMap;

use http::Method;
use rowplane::api::admission::Settings;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::server::{Setup, TestServer};

on_every_store! {
    writes_are_answered_as_upstream_does,
}

#[derive(Deserialize)]
struct Scenario {
    name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    method: String,
    path: String,
    body: Option<String>,
    content_type: Option<String>,
    accept: Option<String>,
    /// A controller does what the answer shows.
    #[serde(default)]
    later: bool,
    /// Absent where the two need not agree; the request is part of the story all the same.
    answer: Option<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    status: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn writes_are_answered_as_upstream_does(mut setup: Setup) {
    // The recorded server had nobody who fills a quota's status, and so nothing that its quotas refused.
    setup.admission = Settings::new(&[], &["ServiceAccount", "ResourceQuota"]).expect("known plugins");
    let server = setup.start().await;
    let files =
        ["apply", "custom", "definitions", "events", "metadata", "patches", "subresources", "warnings"];
    let mut compared = 0;
    for (number, (file, scenario)) in files.iter().flat_map(|file| read(file)).enumerate() {
        let namespace = format!("v{number}");
        let made = json!({"metadata": {"name": namespace}});
        server.post("/api/v1/namespaces", &made).await.expect(201);
        let mut story = Story { namespace, last: Value::Null, seen: HashMap::new() };
        for (at, step) in scenario.steps.iter().enumerate() {
            let place = format!("{file}: {}, step {at}: {} {}", scenario.name, step.method, step.path);
            compared += story.tell(&server, step, &place).await;
        }
    }
    assert!(compared > 478, "{compared}");
    server.stop().await;
}

fn read(file: &'static str) -> Vec<(&'static str, Scenario)> {
    let path = format!("{}/testdata/writes/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let scenarios: Vec<Scenario> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    scenarios.into_iter().map(|scenario| (file, scenario)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The order of managers is that of their times, which may be the same or not.
fn sort_managers(value: &mut Value) {
    let key = |entry: &Value| {
        ["operation", "manager", "apiVersion", "subresource"].map(|field| text(&entry[field]))
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort_managers),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::Array(entries) if name == "managedFields" => entries.sort_by_key(key),
                    member => sort_managers(member),
                }
            }
        }
        _ => {}
    }
}

/// Requests in a namespace of their own, one after the other.
struct Story {
    namespace: String,
    /// The metadata of the last object that was answered, which bodies may mention.
    last: Value,
    /// What the words stand for that the recording has in the place of uids and revisions.
    seen: HashMap<String, String>,
}

impl Story {
    /// How many answers were compared.
    async fn tell(&mut self, server: &TestServer, step: &Step, place: &str) -> usize {
        loop {
            let got = self.ask(server, step).await;
            let Some(recorded) = &step.answer else { return 0 };
            let want =
                json!({"status": recorded.status, "warnings": recorded.warnings, "body": recorded.body});
            let seen = self.seen.clone();
            match self.same(&want, &got, "") {
                Ok(()) => return 1,
                Err(_) if step.later => self.seen = seen,
                Err(why) => panic!("{place}: {why}\n want {want}\n got  {got}"),
            }
        }
    }

    async fn ask(&mut self, server: &TestServer, step: &Step) -> Value {
        let method = Method::from_bytes(step.method.as_bytes()).expect("a method");
        let path = self.filled(&step.path);
        let mut request = server.request(method, path).header("user-agent", "versus/1");
        if let Some(body) = &step.body {
            let body = self.filled(body);
            request = match &step.content_type {
                Some(content_type) => request.body(content_type, body),
                None => request.untyped(body),
            };
        }
        let answer = request.accept(step.accept.as_deref().unwrap_or("application/json")).await;
        let mut body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| Value::from(answer.text()));
        // Here quotas are counted at once; kube-apiserver leaves that to a controller.
        if body["kind"] == "ResourceQuota" {
            body["status"] = json!({});
        }
        let body_kind = text(&body["kind"]);
        if body_kind != "Status" && body["metadata"].is_object() {
            self.last = body["metadata"].clone();
        }
        sort_managers(&mut body);
        if let Some(conditions) = body.pointer_mut("/status/conditions").and_then(Value::as_array_mut)
            && body_kind == "CustomResourceDefinition"
        {
            // Several controllers of the reference write them.
            conditions.sort_by_key(|condition| text(&condition["type"]));
        }
        let warnings = answer.headers.get_all("warning");
        let warnings: Value =
            warnings.iter().map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned()).collect();
        json!({"status": answer.status, "warnings": warnings, "body": body})
    }

    fn filled(&self, text: &str) -> String {
        let of_last = |field: &str| self.last[field].as_str().unwrap_or("none").to_owned();
        let text = text.replace("{ns}", &self.namespace);
        text.replace("$uid", &of_last("uid")).replace("$rv", &of_last("resourceVersion"))
    }

    fn same(&mut self, want: &Value, got: &Value, at: &str) -> Result<(), String> {
        match (want, got) {
            (Value::Object(want), Value::Object(got)) => {
                if let Some(name) = got.keys().find(|name| !want.contains_key(*name)) {
                    return Err(format!("{at}.{name} is too much"));
                }
                want.iter().try_for_each(|(name, want)| {
                    let got = got.get(name).ok_or_else(|| format!("{at}.{name} is missing"))?;
                    self.same(want, got, &format!("{at}.{name}"))
                })
            }
            (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
                let pairs = want.iter().zip(got).enumerate();
                pairs.into_iter().try_for_each(|(n, (want, got))| self.same(want, got, &format!("{at}[{n}]")))
            }
            (Value::String(want), got) if want == "«port»" && got.is_u64() => Ok(()),
            (Value::String(want), Value::String(got)) => {
                let want = want.replace("{ns}", &self.namespace);
                let matches = self.matches(&want, got);
                matches.then_some(()).ok_or_else(|| format!("{at}: want {want:?}, got {got:?}"))
            }
            (want, got) if want == got => Ok(()),
            (want, got) => Err(format!("{at}: want {want}, got {got}")),
        }
    }

    /// Whether a text is what was recorded, word for word, but for what stands between quotation marks like these: «».
    fn matches(&mut self, want: &str, got: &str) -> bool {
        let Some((before, rest)) = want.split_once('«') else { return want == got };
        let Some((word, after)) = rest.split_once('»') else { return false };
        let Some(got) = got.strip_prefix(before) else { return false };
        let next = after.split('«').next().unwrap_or_default();
        let end = if next.is_empty() { Some(got.len()) } else { got.find(next) };
        let Some((found, got)) = end.map(|end| got.split_at(end)) else { return false };
        let named = word.starts_with("uid") || word.starts_with("rv");
        let known = !named || *self.seen.entry(word.to_owned()).or_insert_with(|| found.to_owned()) == found;
        !found.is_empty() && known && self.matches(after, got)
    }
}
