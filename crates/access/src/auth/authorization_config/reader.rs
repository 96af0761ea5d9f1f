//! The authorizers that a decoded file describes, and what is wrong with them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::decode::{items, object};
use super::{AUTHORIZED_TTL, Configured, OnFailure, UNAUTHORIZED_TTL, WebhookSettings};
use crate::auth::authorizer::conditions::{Condition, Conditions};
use crate::auth::authorizer::mode::Mode;
use crate::auth::impersonation::is_subdomain;
use crate::causes::{Cause, CauseReason};
use crate::gotext::{self, quote};
use crate::tree::{Map, Value};

const MOST_CONDITIONS: usize = 64;
const LONGEST_NAME: usize = 253;
const NO_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a decoded file, and finds out what is wrong with it.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) causes: Vec<Cause>,
}

impl Reader {
    pub(super) fn authorizers(&mut self, file: &Map) -> Vec<Configured> {
        let entries = items(file, "authorizers").unwrap_or_default();
        if entries.is_empty() {
            let why = "at least one authorization mode must be defined";
            self.causes.push(Cause::required("authorizers", why));
        }
        let mut found: Vec<Configured> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (index, entry) in entries.iter().filter_map(Value::as_object).enumerate() {
            let at = format!("authorizers[{index}]");
            let Some(mode) = self.mode(entry, &at, &found) else { continue };
            let name = self.name(entry, &at, &names);
            names.push(name.clone());
            let webhook = object(entry, "webhook").unwrap_or_default();
            let webhook = match (mode, webhook) {
                (Mode::Webhook, None) => {
                    self.required(format!("{at}.webhook"), "required when type=Webhook");
                    None
                }
                (Mode::Webhook, Some(webhook)) => Some(self.webhook(webhook, &at)),
                (_, None) => None,
                (_, Some(_)) => {
                    let why = "may only be specified when type=Webhook";
                    self.invalid(format!("{at}.webhook"), "non-null", why);
                    None
                }
            };
            found.push(Configured { mode, name, webhook });
        }
        found
    }

    fn mode(&mut self, entry: &Map, at: &str, before: &[Configured]) -> Option<Mode> {
        let at = format!("{at}.type");
        let name = self.text(entry, "type", &at);
        if name.is_empty() {
            self.required(at, "");
            return None;
        }
        let Ok(mode) = name.parse::<Mode>() else {
            let known = Mode::ALL.map(Mode::as_str);
            self.causes.push(Cause::not_supported(at, quote(&name), &known));
            return None;
        };
        if mode != Mode::Webhook && before.iter().any(|one| one.mode == mode) {
            self.causes.push(Cause::duplicate(at, quote(&name)));
            return None;
        }
        Some(mode)
    }

    fn name(&mut self, entry: &Map, at: &str, before: &[String]) -> String {
        let at = format!("{at}.name");
        let name = self.text(entry, "name", &at);
        if name.is_empty() {
            self.required(at, "");
        } else if before.contains(&name) {
            self.causes.push(Cause::duplicate(at, quote(&name)));
        } else {
            self.check_name(&name, at);
        }
        name
    }

    fn check_name(&mut self, name: &str, at: String) {
        let mut wrong = Vec::new();
        if name.len() > LONGEST_NAME {
            wrong.push(format!("must be no more than {LONGEST_NAME} characters"));
        }
        if !is_subdomain(name) {
            wrong.push(NO_SUBDOMAIN.to_owned());
        }
        if !wrong.is_empty() {
            self.invalid(at, name, &format!("authorizer name is invalid: {}", wrong.join(", ")));
        }
    }

    fn webhook(&mut self, webhook: &Map, at: &str) -> WebhookSettings {
        let timeout = self.duration(webhook, "timeout", at).unwrap_or(Signed::ZERO);
        let field = |name: &str| format!("{at}.{name}");
        if timeout == Signed::ZERO {
            self.required(field("timeout"), "");
        } else if timeout.negative || timeout.length > LONGEST_TIMEOUT {
            self.invalid(field("timeout"), &timeout.to_string(), "must be > 0s and <= 30s");
        }
        let authorized =
            self.lifetime(webhook, "authorizedTTL", "cacheAuthorizedRequests", AUTHORIZED_TTL, at);
        let unauthorized =
            self.lifetime(webhook, "unauthorizedTTL", "cacheUnauthorizedRequests", UNAUTHORIZED_TTL, at);
        let version = self.text(webhook, "subjectAccessReviewVersion", at);
        match version.as_str() {
            "" => self.required(field("subjectAccessReviewVersion"), ""),
            "v1" | "v1beta1" => {}
            other => self.unsupported(field("subjectAccessReviewVersion"), other, &["v1", "v1beta1"]),
        }
        let has_conditions = items(webhook, "matchConditions").is_ok_and(|conditions| !conditions.is_empty());
        let of_conditions = "matchConditionSubjectAccessReviewVersion";
        match self.text(webhook, of_conditions, at).as_str() {
            "" if has_conditions => {
                self.required(field(of_conditions), "required if match conditions are specified");
            }
            "" | "v1" => {}
            other => self.unsupported(field(of_conditions), other, &["v1"]),
        }
        let on_failure = match self.text(webhook, "failurePolicy", at).as_str() {
            "NoOpinion" => OnFailure::NoOpinion,
            "Deny" => OnFailure::Deny,
            other => {
                match other {
                    "" => self.required(field("failurePolicy"), ""),
                    _ => self.unsupported(field("failurePolicy"), other, &["NoOpinion", "Deny"]),
                }
                OnFailure::Deny
            }
        };
        let kubeconfig = self.connection(webhook, at);
        let conditions = self.conditions(webhook, at);
        WebhookSettings {
            kubeconfig,
            timeout: timeout.length,
            authorized_ttl: authorized,
            unauthorized_ttl: unauthorized,
            version,
            on_failure,
            conditions,
        }
    }

    fn lifetime(
        &mut self,
        webhook: &Map,
        name: &str,
        switch: &str,
        usual: Duration,
        at: &str,
    ) -> Option<Duration> {
        let length = self.duration(webhook, name, at).unwrap_or(Signed::ZERO);
        if length.negative {
            self.invalid(format!("{at}.{name}"), &length.to_string(), "must be > 0s");
        }
        let is_kept = webhook.get(switch).and_then(Value::as_bool).unwrap_or(true);
        let length = if length == Signed::ZERO { usual } else { length.length };
        is_kept.then_some(length)
    }

    fn connection(&mut self, webhook: &Map, at: &str) -> PathBuf {
        let empty = Map::new();
        let connection = object(webhook, "connectionInfo").unwrap_or_default().unwrap_or(&empty);
        let at = format!("{at}.connectionInfo");
        let file = connection.get("kubeConfigFile").and_then(Value::as_str);
        let file_at = format!("{at}.kubeConfigFile");
        match self.text(connection, "type", &at).as_str() {
            "" => self.required(format!("{at}.type"), ""),
            "InClusterConfig" => match file {
                Some(file) => self.invalid(file_at, file, "can only be set when type=KubeConfigFile"),
                // Upstream's server has no such configuration either, and ends.
                None => {
                    let why = "InClusterConfig is not supported by an API server";
                    self.causes.push(Cause::forbidden(format!("{at}.type"), why));
                }
            },
            "KubeConfigFile" => match file {
                None | Some("") => self.required(file_at, ""),
                Some(file) => self.check_file(file, file_at),
            },
            other => {
                let value = crate::tree::json!({"Type": other, "KubeConfigFile": file});
                let supported = ["InClusterConfig", "KubeConfigFile"];
                let text = gotext::json(&value);
                self.causes.push(Cause::not_supported(format!("{at}.type"), text, &supported));
            }
        }
        PathBuf::from(file.unwrap_or_default())
    }

    fn check_file(&mut self, file: &str, at: String) {
        if !Path::new(file).is_absolute() {
            return self.invalid(at, file, "must be an absolute path");
        }
        match std::fs::metadata(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let why = format!("error loading file: stat {file}: no such file or directory");
                self.invalid(at, file, &why);
            }
            Err(error) => self.invalid(at, file, &format!("error loading file: stat {file}: {error}")),
            Ok(found) if !found.is_file() => self.invalid(at, file, "must be a regular file"),
            Ok(_) => {}
        }
    }

    fn conditions(&mut self, webhook: &Map, at: &str) -> Conditions {
        let conditions = items(webhook, "matchConditions").unwrap_or_default();
        let at = format!("{at}.matchConditions");
        if conditions.len() > MOST_CONDITIONS {
            let (found, most) = (conditions.len(), MOST_CONDITIONS);
            let why = format!("Too many: {found}: must have at most {most} items");
            self.causes.push(Cause::new(CauseReason::TooMany, at, why));
            return Conditions::default();
        }
        let (mut compiled, mut seen): (Vec<Condition>, Vec<String>) = (Vec::new(), Vec::new());
        for (index, condition) in conditions.iter().filter_map(Value::as_object).enumerate() {
            let at = format!("{at}[{index}].expression");
            let text = self.text(condition, "expression", &at);
            if text.trim().is_empty() {
                self.required(at, "");
            } else if seen.contains(&text) {
                self.causes.push(Cause::duplicate(at, quote(&text)));
            } else {
                match Condition::compile(&text) {
                    Ok(condition) => compiled.push(condition),
                    Err(why) => self.invalid(at, &text, &why),
                }
                seen.push(text);
            }
        }
        Conditions::new(compiled)
    }

    fn text(&mut self, parent: &Map, name: &str, at: &str) -> String {
        match parent.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(value) => value.as_str().map(str::to_owned).unwrap_or_else(|| {
                self.invalid(at.to_owned(), &gotext::json(value), "must be a string");
                String::new()
            }),
        }
    }

    fn duration(&mut self, parent: &Map, name: &str, at: &str) -> Option<Signed> {
        let text = self.text(parent, name, at);
        if text.is_empty() {
            return None;
        }
        let (negative, length) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        match gotext::parse_duration(length) {
            Ok(length) => Some(Signed { negative, length }),
            Err(_) => {
                self.invalid(
                    format!("{at}.{name}"),
                    &text,
                    &format!("time: invalid duration {}", quote(&text)),
                );
                None
            }
        }
    }

    fn required(&mut self, at: String, why: &str) {
        self.causes.push(Cause::required(at, why));
    }

    fn invalid(&mut self, at: String, value: &str, why: &str) {
        self.causes.push(Cause::invalid(at, quote(value), why));
    }

    fn unsupported(&mut self, at: String, value: &str, supported: &[&str]) {
        self.causes.push(Cause::not_supported(at, quote(value), supported));
    }
}

/// A duration of Go's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Signed {
    negative: bool,
    length: Duration,
}

impl Signed {
    const ZERO: Self = Self { negative: false, length: Duration::ZERO };
}

impl std::fmt::Display for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{}", gotext::duration(self.length))
    }
}
