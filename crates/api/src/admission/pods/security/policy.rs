//! Levels and versions, and which of them a namespace asks for by its labels.

use std::cmp::Ordering;
use std::fmt;

use crate::causes::Cause;
use crate::gotext::quote;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const PREFIX: &str = "pod-security.kubernetes.io/";
const BAD_LEVEL: &str = "must be one of privileged, baseline, restricted";
const BAD_VERSION: &str = "must be \"latest\" or \"v1.x\"";

/// How much a policy forbids, from nothing to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Privileged, Self::Baseline, Self::Restricted].into_iter().find(|level| level.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// The release of Kubernetes whose checks apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Latest,
    /// The minor version behind `v1.`.
    Minor(u64),
}

impl Version {
    pub fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let canonical = minor.len() == 1 || !minor.starts_with('0');
        let digits = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        // Go reads the number into 63 bits.
        let number = minor.parse().ok().filter(|number| *number <= i64::MAX as u64);
        number.filter(|_| canonical && digits).map(Self::Minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// A level as of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub level: Level,
    pub version: Version,
}

impl Rule {
    const NONE: Self = Self { level: Level::Privileged, version: Version::Latest };

    fn is_like(self, other: Self) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.as_str(), self.version)
    }
}

/// The rules of a namespace: what it refuses, notes and warns about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub enforce: Rule,
    pub audit: Rule,
    pub warn: Rule,
}

impl Default for Policy {
    fn default() -> Self {
        Self { enforce: Rule::NONE, audit: Rule::NONE, warn: Rule::NONE }
    }
}

impl Policy {
    pub fn allows_all(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|rule| rule.level == Level::Privileged)
    }

    fn is_like(&self, other: &Self) -> bool {
        self.enforce.is_like(other.enforce)
            && self.audit.is_like(other.audit)
            && self.warn.is_like(other.warn)
    }

    /// The policy by a namespace's labels, and what is wrong with these. A bad level is as strict as can be where it is
    /// enforced, and nothing elsewhere.
    pub fn of(namespace: &ObjectMap, defaults: &Self) -> (Self, Vec<Cause>) {
        let labels = Labels { namespace };
        let (mut policy, mut causes) = (*defaults, Vec::new());
        let level = labels.level("enforce", &mut policy.enforce, Level::Restricted, &mut causes);
        labels.version("enforce", &mut policy.enforce, &mut causes);
        labels.level("audit", &mut policy.audit, Level::Privileged, &mut causes);
        labels.version("audit", &mut policy.audit, &mut causes);
        labels.level("warn", &mut policy.warn, Level::Privileged, &mut causes);
        labels.version("warn", &mut policy.warn, &mut causes);
        let is_stricter = policy.enforce.level.cmp(&policy.warn.level) == Ordering::Greater;
        if labels.get("warn").is_none() && level.is_some() && is_stricter {
            policy.warn.level = policy.enforce.level;
            if labels.get("warn-version").is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, causes)
    }

    /// The warning about labels of a namespace that is exempt from them.
    pub fn exempt_warning(&self, namespace: &ObjectMap, defaults: &Self) -> Option<String> {
        if self.allows_all() || self.is_like(defaults) {
            return None;
        }
        let labels = Labels { namespace };
        let modes = [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)];
        let said = modes.into_iter().filter(|(mode, rule)| {
            let labelled = labels.get(mode).or_else(|| labels.get(&format!("{mode}-version")));
            rule.level != Level::Privileged && labelled.is_some()
        });
        let said: Vec<String> = said.map(|(mode, rule)| format!("{mode}={rule}")).collect();
        if said.is_empty() {
            return None;
        }
        let name = quote(fields::text(namespace, &["metadata", "name"]));
        let said = said.join(", ");
        Some(format!("namespace {name} is exempt from Pod Security, and the policy ({said}) will be ignored"))
    }

    /// The policy of a configuration's `defaults`.
    pub fn parse(defaults: &ObjectMap) -> Result<Self, String> {
        let mut policy = Self::default();
        let modes =
            [("enforce", &mut policy.enforce), ("audit", &mut policy.audit), ("warn", &mut policy.warn)];
        for (mode, rule) in modes {
            let version = format!("{mode}-version");
            let text = |name: &str| Some(fields::text(defaults, &[name])).filter(|text| !text.is_empty());
            let bad = |field: &str, text: &str, rule: &str| {
                format!("defaults.{field}: Invalid value: {}: {rule}", quote(text))
            };
            if let Some(text) = text(mode) {
                rule.level = Level::parse(text).ok_or_else(|| bad(mode, text, BAD_LEVEL))?;
            }
            if let Some(text) = text(&version) {
                rule.version = Version::parse(text).ok_or_else(|| bad(&version, text, BAD_VERSION))?;
            }
        }
        Ok(policy)
    }
}

/// The labels of a namespace.
struct Labels<'a> {
    namespace: &'a ObjectMap,
}

impl Labels<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let labels = fields::at(self.namespace, &["metadata", "labels"])?;
        labels.get(&format!("{PREFIX}{name}")).and_then(Value::as_str)
    }

    /// Sets the level that the label names, and returns it; `bad` is that of a label which names none.
    fn level(&self, mode: &str, rule: &mut Rule, bad: Level, causes: &mut Vec<Cause>) -> Option<Level> {
        let text = self.get(mode)?;
        let level = Level::parse(text);
        rule.level = level.unwrap_or(bad);
        if level.is_none() {
            causes.push(invalid(mode, text, BAD_LEVEL));
        }
        level
    }

    fn version(&self, mode: &str, rule: &mut Rule, causes: &mut Vec<Cause>) {
        let name = format!("{mode}-version");
        if let Some(text) = self.get(&name) {
            let version = Version::parse(text);
            rule.version = version.unwrap_or(Version::Latest);
            if version.is_none() {
                causes.push(invalid(&name, text, BAD_VERSION));
            }
        }
    }
}

fn invalid(label: &str, value: &str, rule: &str) -> Cause {
    Cause::invalid(format!("metadata.labels[{PREFIX}{label}]"), quote(value), rule)
}
