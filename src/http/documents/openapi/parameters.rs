//! The parameters of operations, each list sorted by name as upstream prints them. `shardSelector` is in upstream's
//! documents whether its gate is open or, as here, closed.

use super::names;
use super::texts::Texts;
use crate::tree::Text;

mod own_words;

#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub place: Place,
    /// `boolean`, `integer` or `string`.
    pub kind: &'static str,
    /// The kind of the object that the parameter names.
    named: Option<Text>,
}

impl Parameter {
    /// The name of an object of this kind.
    pub fn name_of(kind: &Text) -> Self {
        Self { name: "name", place: Place::Path, kind: "string", named: Some(kind.clone()) }
    }

    /// The description of the parameter: for an option, upstream's text of it where a dependency has that, otherwise our own.
    pub fn description(&self, texts: &Texts) -> Option<String> {
        if let Some(kind) = &self.named {
            return Some(format!("name of the {kind}"));
        }
        if self.name == BELOW.name && self.place == Place::Path {
            return Some("path to the resource".to_owned());
        }
        let text = texts.of_field(names::DELETE_OPTIONS, self.name).or_else(|| own_words::of(self.name));
        text.map(str::to_owned)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
}

impl Place {
    pub fn as_str(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
        }
    }
}

const fn query(name: &'static str, kind: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind, named: None }
}

pub(super) const NAMESPACE: Parameter =
    Parameter { name: "namespace", place: Place::Path, kind: "string", named: None };
pub(super) const PRETTY: Parameter = query("pretty", "string");

/// The path behind a proxy.
pub(super) const BELOW: Parameter =
    Parameter { name: "path", place: Place::Path, kind: "string", named: None };

/// The options of what connects, and of logs, by their kind.
pub(super) fn connection(kind: &str) -> &'static [Parameter] {
    match kind {
        "PodAttachOptions" => ATTACH,
        "PodExecOptions" => EXEC,
        "PodLogOptions" => LOG,
        "PodPortForwardOptions" => PORT_FORWARD,
        _ => PROXY,
    }
}

const ATTACH: &[Parameter] = &[
    query("container", "string"),
    query("stderr", "boolean"),
    query("stdin", "boolean"),
    query("stdout", "boolean"),
    query("tty", "boolean"),
];

const EXEC: &[Parameter] = &[
    query("command", "string"),
    query("container", "string"),
    query("stderr", "boolean"),
    query("stdin", "boolean"),
    query("stdout", "boolean"),
    query("tty", "boolean"),
];

/// Upstream's documents leave out `sinceTime`, whose type is not plain.
const LOG: &[Parameter] = &[
    query("container", "string"),
    query("follow", "boolean"),
    query("insecureSkipTLSVerifyBackend", "boolean"),
    query("limitBytes", "integer"),
    query("previous", "boolean"),
    query("sinceSeconds", "integer"),
    query("stream", "string"),
    query("tailLines", "integer"),
    query("timestamps", "boolean"),
];

const PORT_FORWARD: &[Parameter] = &[query("ports", "integer")];
const PROXY: &[Parameter] = &[query("path", "string")];

/// The parameters of the GET of one custom resource.
pub(super) const GET: &[Parameter] = &[query("resourceVersion", "string")];

pub(super) const WRITE: &[Parameter] =
    &[query("dryRun", "string"), query("fieldManager", "string"), query("fieldValidation", "string")];

/// kubectl leaves field validation to the server if this list holds `fieldValidation`.
pub(super) const PATCH: &[Parameter] = &[
    query("dryRun", "string"),
    query("fieldManager", "string"),
    query("fieldValidation", "string"),
    query("force", "boolean"),
];

pub(super) const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean"),
    query("continue", "string"),
    query("fieldSelector", "string"),
    query("labelSelector", "string"),
    query("limit", "integer"),
    query("resourceVersion", "string"),
    query("resourceVersionMatch", "string"),
    query("sendInitialEvents", "boolean"),
    query("shardSelector", "string"),
    query("timeoutSeconds", "integer"),
    query("watch", "boolean"),
];

pub(super) const DELETE: &[Parameter] = &[
    query("dryRun", "string"),
    query("gracePeriodSeconds", "integer"),
    query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    query("orphanDependents", "boolean"),
    query("propagationPolicy", "string"),
];

pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    query("continue", "string"),
    query("dryRun", "string"),
    query("fieldSelector", "string"),
    query("gracePeriodSeconds", "integer"),
    query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    query("labelSelector", "string"),
    query("limit", "integer"),
    query("orphanDependents", "boolean"),
    query("propagationPolicy", "string"),
    query("resourceVersion", "string"),
    query("resourceVersionMatch", "string"),
    query("sendInitialEvents", "boolean"),
    query("shardSelector", "string"),
    query("timeoutSeconds", "integer"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_described() {
        let texts = Texts::load();
        let connections = [ATTACH, EXEC, LOG, PORT_FORWARD, PROXY];
        let lists = [GET, WRITE, PATCH, LIST, DELETE, DELETE_COLLECTION, &[NAMESPACE, PRETTY]];
        let lists = lists.into_iter().chain(connections);
        for parameter in lists.flatten() {
            let text = parameter.description(&texts);
            assert!(text.is_some_and(|text| text.len() > 20), "{}", parameter.name);
        }
    }
}
