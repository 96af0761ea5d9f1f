//! Operations at a path, in terms that v2 and v3 both render.

use super::dialect::Dialect;
use super::names;
use super::parameters::Parameter;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value, json};

#[derive(Debug)]
pub(super) struct PathItem {
    pub path: String,
    /// Common to all operations of the path.
    pub parameters: Vec<Parameter>,
    pub operations: Vec<Operation>,
}

impl PathItem {
    /// `parameters` are those of the path itself; what all operations have in common goes there too.
    pub fn new(path: String, mut parameters: Vec<Parameter>, mut operations: Vec<Operation>) -> Self {
        let has = |operation: &Operation, name: &str| operation.query.iter().any(|each| each.name == name);
        let first = operations.first().map(|operation| operation.query.clone()).unwrap_or_default();
        let common = |each: &Parameter| operations.iter().all(|operation| has(operation, each.name));
        let common: Vec<Parameter> = first.into_iter().filter(common).collect();
        for operation in &mut operations {
            operation.query.retain(|each| !common.iter().any(|shared| shared.name == each.name));
        }
        parameters.extend(common);
        parameters.sort_by_key(|parameter| parameter.name);
        Self { path, parameters, operations }
    }

    /// The item in one of the two renderings that v2 and v3 have of its parts.
    pub fn render(
        &self,
        operation: impl Fn(&Operation) -> Value,
        parameter: impl Fn(&Parameter) -> Value,
    ) -> Value {
        let operations = self.operations.iter().map(|op| (op.method.to_owned(), operation(op)));
        let mut rendered: Map = operations.collect();
        if !self.parameters.is_empty() {
            rendered.insert("parameters", self.parameters.iter().map(parameter).collect());
        }
        rendered.sort_keys();
        rendered.into()
    }
}

#[derive(Debug)]
pub(super) struct Operation {
    /// HTTP method in lower case.
    pub method: &'static str,
    pub id: String,
    /// The description of the operation, in words.
    pub description: String,
    pub tag: String,
    pub subject: Option<Subject>,
    pub query: Vec<Parameter>,
    pub body: Body,
    pub codes: &'static [(u16, &'static str)],
    /// Name of the answer's schema, or [`names::TEXT`].
    pub returns: String,
    /// The media types of answers.
    pub produces: &'static [&'static str],
    /// The media types of bodies.
    pub consumes: &'static [&'static str],
}

/// The forms in which answers can be had.
pub(super) const ANSWERS: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The same where there may be a watch.
pub(super) const STREAMS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// The forms of a container's output.
pub(super) const LOGS: &[&str] =
    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The forms of custom resources.
pub(super) const TEXTS: &[&str] = &["application/json", "application/yaml"];

/// A body in any form that the server reads.
pub(super) const ANY: &[&str] = &["*/*"];

/// The forms that the PATCH of a built-in kind takes.
pub(super) const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The forms that the PATCH of a custom resource takes.
pub(super) const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// The form of answers that can be had as JSON alone.
pub(super) const JSON: &[&str] = &["application/json"];

pub(super) const OK: &[(u16, &str)] = &[(200, "OK")];

/// The action of an operation, and the kind that it acts on; an operation of discovery has none.
#[derive(Debug)]
pub(super) struct Subject {
    /// `x-kubernetes-action`.
    pub action: &'static str,
    /// `x-kubernetes-group-version-kind`.
    pub kind: Gvk,
}

impl Operation {
    /// The names of the schemas that the operation refers to.
    pub fn schemas(&self) -> impl Iterator<Item = String> {
        let body = self.body.schema().map(str::to_owned);
        let returned = Some(self.returns.clone()).filter(|name| name != names::TEXT);
        body.into_iter().chain(returned)
    }

    /// The schema of the answer.
    pub fn returned(&self, dialect: Dialect) -> Value {
        match self.returns.as_str() {
            names::TEXT => json!({"type": "string"}),
            name => dialect.reference(name),
        }
    }

    /// Reads a document of discovery.
    pub fn discovery(
        id: String,
        description: &str,
        tag: String,
        returns: &str,
        produces: &'static [&'static str],
    ) -> Self {
        Self {
            method: "get",
            id,
            description: description.to_owned(),
            tag,
            subject: None,
            query: Vec::new(),
            body: Body::None,
            codes: OK,
            returns: returns.to_owned(),
            produces,
            consumes: produces,
        }
    }
}

#[derive(Debug)]
pub(super) enum Body {
    None,
    /// Name of the schema.
    Object(String),
    Delete,
    Patch,
}

impl Body {
    /// The name of the body's schema.
    pub fn schema(&self) -> Option<&str> {
        match self {
            Body::None => None,
            Body::Object(name) => Some(name),
            Body::Delete => Some(names::DELETE_OPTIONS),
            Body::Patch => Some(names::PATCH),
        }
    }

    /// Everything but the options of a deletion must be sent.
    pub fn required(&self) -> bool {
        matches!(self, Body::Object(_) | Body::Patch)
    }
}
