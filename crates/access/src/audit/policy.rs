//! Audit policies: which requests are recorded, how much of them, and at which stages.

mod read;

use std::path::{Path, PathBuf};

use crate::auth::authorizer::Attributes;

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    None,
    Metadata,
    /// Also what the client sent.
    Request,
    /// Also what it was answered.
    RequestResponse,
}

impl Level {
    const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The stages of a request at which events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    RequestReceived,
    /// The stage after the head of the answer, of long-running requests and of those whose user is not known.
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Stage> for Stages {
    fn from_iter<I: IntoIterator<Item = Stage>>(stages: I) -> Self {
        Self(stages.into_iter().fold(0, |set, stage| set | (1 << stage as u8)))
    }
}

/// The policy's verdict on a request that is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestAuditConfig {
    pub level: Level,
    pub omitted: Stages,
    pub omits_managed_fields: bool,
}

/// The rules of a policy file, in order: the first that matches counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// A rule with the policy's defaults filled in. Empty lists match everything.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    verdict: RequestAuditConfig,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    /// The empty text is the cluster scope.
    namespaces: Vec<String>,
    paths: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

/// Why a policy file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("loading audit policy file: failed to read file path {path:?}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("loading audit policy file: {problem}: from file {}", path.display())]
    Invalid { path: PathBuf, problem: String },
}

impl Policy {
    /// Reads the file. Fields that are not known are logged, and do not count.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let (policy, unknown) =
            read::policy(&text).map_err(|problem| Error::Invalid { path: path.to_owned(), problem })?;
        if !unknown.is_empty() {
            tracing::warn!(fields = unknown.join(", "), "the audit policy has fields that are not known");
        }
        Ok(policy)
    }

    /// The policy that records the metadata of all writes, except those of leases and events.
    pub fn of_writes() -> Self {
        let none =
            RequestAuditConfig { level: Level::None, omitted: Stages::default(), omits_managed_fields: true };
        let resources = |group: &str, resource: &str| GroupResources {
            group: group.to_owned(),
            resources: vec![resource.to_owned()],
            names: Vec::new(),
        };
        let rule = |verdict, verbs: &[&str], resources| Rule {
            verdict,
            users: Vec::new(),
            groups: Vec::new(),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            resources,
            namespaces: Vec::new(),
            paths: Vec::new(),
        };
        let frequent = vec![
            resources("coordination.k8s.io", "leases"),
            resources("", "events"),
            resources("events.k8s.io", "events"),
        ];
        let omitted = [Stage::RequestReceived].into_iter().collect();
        let metadata = RequestAuditConfig { level: Level::Metadata, omitted, omits_managed_fields: true };
        let writes = ["create", "update", "patch", "delete", "deletecollection"];
        Self { rules: vec![rule(none, &[], frequent), rule(metadata, &writes, Vec::new())] }
    }

    /// The verdict on a request; `None` if it is not to be recorded.
    pub fn evaluate(&self, attributes: &Attributes<'_>) -> Option<RequestAuditConfig> {
        let rule = self.rules.iter().find(|rule| rule.matches(attributes))?;
        Some(rule.verdict).filter(|verdict| verdict.level > Level::None)
    }
}

impl Rule {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        let is_of = |groups: &[String]| request.user.groups.iter().any(|group| has(groups, group));
        let fits = (self.users.is_empty() || has(&self.users, &request.user.name))
            && (self.groups.is_empty() || is_of(&self.groups))
            && (self.verbs.is_empty() || has(&self.verbs, request.verb));
        if !fits {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return !request.resource.is_empty() && self.matches_resource(request);
        }
        self.paths.is_empty()
            || request.resource.is_empty() && self.paths.iter().any(|rule| path_matches(rule, request.path))
    }

    fn matches_resource(&self, request: &Attributes<'_>) -> bool {
        (self.namespaces.is_empty() || has(&self.namespaces, request.namespace))
            && (self.resources.is_empty() || self.resources.iter().any(|rule| rule.matches(request)))
    }
}

impl GroupResources {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        if self.group != request.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        (self.names.is_empty() || has(&self.names, request.name))
            && self.resources.iter().any(|rule| resource_matches(rule, request.resource, request.subresource))
    }
}

/// Whether `r`, `r/sub`, `*`, `*/sub` or `r/*` covers a resource or its subresource.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    let Some((of, sub)) = rule.split_once('/') else {
        return rule == "*" || subresource.is_empty() && rule == resource;
    };
    if of == resource && sub == "*" {
        return true;
    }
    !subresource.is_empty() && sub == subresource && (of == "*" || of == resource)
}

/// Whether `*`, an exact path, or a prefix that ends in `*` covers a path.
fn path_matches(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

fn has(list: &[String], text: &str) -> bool {
    list.iter().any(|entry| entry == text)
}

#[cfg(test)]
mod tests;
