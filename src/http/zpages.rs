//! `/flagz` and `/statusz`: which flags the server was started with, and how it is; as upstream's `server/flagz` and
//! `server/statusz` show them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use rand::RngExt as _;

use super::documents::discovery::index::DEBUGGING;
use super::documents::discovery::version;
use super::request::{accept, pretty};
use super::response::encode::encode;
use super::response::negotiate::page::{self, Chosen, PageVersion};
use super::response::warnings;
use crate::api::error::Error;
use crate::gotext;
use crate::random::Random;
use crate::runtime::Runtime;
use crate::tree::{Map, Value, json};

/// The name that upstream gives the server there.
const COMPONENT: &str = "apiserver";
/// The delimiters, of which a random one stands between a name and its value in texts, so that nobody takes the text for a
/// format.
const DELIMITERS: [&str; 4] = [":", ": ", "=", " "];
/// Go's `time.UnixDate`.
const STARTED: &str = "%a %b %e %H:%M:%S UTC %Y";

/// The data that the pages show.
pub struct Zpages {
    flags: BTreeMap<String, String>,
    flag_delimiter: &'static str,
    started: Timestamp,
    random: Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Flagz,
    Statusz,
}

impl Page {
    fn name(self) -> &'static str {
        match self {
            Self::Flagz => "flagz",
            Self::Statusz => "statusz",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Flagz => "Flagz",
            Self::Statusz => "Statusz",
        }
    }
}

impl Zpages {
    pub fn new(flags: BTreeMap<String, String>, runtime: &Runtime) -> Self {
        let (started, random) = (runtime.clock.timestamp(), runtime.random.clone());
        Self { flags, flag_delimiter: delimiter(&random), started, random }
    }

    /// The page in the form that the client accepts: text, or an object where the client names its kind.
    pub fn respond(&self, page: Page, parts: &Parts, now: Timestamp) -> Result<Response, Error> {
        match page::negotiate(accept(&parts.headers), page.kind())? {
            Chosen::Text => {
                let kind = HeaderValue::from_static("text/plain; charset=utf-8");
                Ok(([(header::CONTENT_TYPE, kind)], self.text(page, now)).into_response())
            }
            Chosen::Object { media, version, pretty: asked } => {
                let object = self.object(page, version, now);
                let body = encode(&object, media, asked || pretty(parts))?;
                let (media, version, kind) = (media.as_str(), version.as_str(), page.kind());
                let kind = format!("{media};g={};v={version};as={kind}", page::GROUP);
                let mut response = ([(header::CONTENT_TYPE, kind)], body).into_response();
                if version == PageVersion::V1Alpha1.as_str() {
                    warnings::put(response.headers_mut(), &[deprecated(page)]);
                }
                Ok(response)
            }
        }
    }

    fn text(&self, page: Page, now: Timestamp) -> String {
        let mut text = format!(
            "\n{COMPONENT} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
             guarantees and is for debugging purposes only.\n",
            page.name()
        );
        match page {
            Page::Flagz => {
                for (name, value) in &self.flags {
                    let _ = writeln!(text, "{name}{}{value}", self.flag_delimiter);
                }
            }
            Page::Statusz => self.write_status(&mut text, delimiter(&self.random), now),
        }
        text
    }

    fn write_status(&self, text: &mut String, delimiter: &str, now: Timestamp) {
        let up = self.uptime(now);
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name}{delimiter} {value}");
        };
        line("\nStarted", &self.started.strftime(STARTED).to_string());
        line("Up", &format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60));
        line("Go version", version::PROGRAM);
        line("Binary version", &binary_version());
        line("Emulation version", &version::emulated());
        line("Paths", &DEBUGGING.join(" "));
    }

    fn object(&self, page: Page, version: PageVersion, now: Timestamp) -> Value {
        let mut object = Map::new();
        object.insert("kind", page.kind().into());
        object.insert("apiVersion", format!("{}/{}", page::GROUP, version.as_str()).into());
        object.insert("metadata", json!({"name": COMPONENT}));
        match page {
            Page::Flagz if self.flags.is_empty() => {}
            Page::Flagz => {
                let flags =
                    self.flags.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
                object.insert("flags", flags.collect());
            }
            Page::Statusz => {
                object.insert("startTime", gotext::time(self.started).into());
                object.insert("uptimeSeconds", self.uptime(now).into());
                object.insert("goVersion", version::PROGRAM.into());
                object.insert("binaryVersion", binary_version().into());
                object.insert("emulationVersion", version::emulated().into());
                object.insert("paths", json!(DEBUGGING));
            }
        }
        Value::Object(object)
    }

    /// The time since the start, in seconds.
    fn uptime(&self, now: Timestamp) -> i64 {
        now.duration_since(self.started).as_secs().max(0)
    }
}

fn delimiter(random: &Random) -> &'static str {
    DELIMITERS[random.with(|rng| rng.random_range(0..DELIMITERS.len()))]
}

fn deprecated(page: Page) -> String {
    let page = page.name();
    format!("This version of the {page} endpoint is deprecated. Please use a newer version.")
}

/// The version of the API without the letter.
fn binary_version() -> String {
    version::git_version().trim_start_matches('v').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Zpages {
        let flags = [("b", "2"), ("a", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let started = "2026-01-02T03:04:05Z".parse().expect("a time");
        Zpages { flags: flags.into(), flag_delimiter: "=", started, random: Random::default() }
    }

    #[test]
    fn texts_are_upstreams() {
        let warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
            guarantees and is for debugging purposes only.";
        let now = "2026-01-03T04:05:07.9Z".parse().expect("a time");
        assert_eq!(pages().text(Page::Flagz, now), format!("\napiserver flagz\n{warning}\na=\nb=2\n"));
        let mut text = String::new();
        pages().write_status(&mut text, ":", now);
        let version = binary_version();
        assert_eq!(
            text,
            format!(
                "\nStarted: Fri Jan  2 03:04:05 UTC 2026\nUp: 25 hr 01 min 02 sec\nGo version: rust\n\
                 Binary version: {version}\nEmulation version: 1.37\n\
                 Paths: /flagz /healthz /livez /metrics /readyz /version\n"
            )
        );
    }

    #[test]
    fn objects_are_upstreams() {
        let now = "2026-01-02T03:04:07Z".parse().expect("a time");
        let flags = r#"{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},"flags":{"a":"","b":"2"}}"#;
        assert_eq!(pages().object(Page::Flagz, PageVersion::V1Beta1, now).to_string(), flags);
        let status = pages().object(Page::Statusz, PageVersion::V1Alpha1, now);
        assert_eq!(status["apiVersion"], json!("config.k8s.io/v1alpha1"));
        assert_eq!(
            (&status["startTime"], &status["uptimeSeconds"]),
            (&json!("2026-01-02T03:04:05Z"), &json!(2))
        );
        assert_eq!(
            status["paths"],
            json!(["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/version"])
        );
    }
}
