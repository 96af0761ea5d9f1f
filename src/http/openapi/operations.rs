//! The paths of a group version and what can be done there, in terms that v2 and v3 both render.

use serde_json::{Map, Value};

use super::entries::{Entries, encoded};
use super::names;
use super::parameters::{self, NAME, NAMESPACE, PRETTY, Parameter};
use crate::schema::registry::{GroupVersion, Origin};
use crate::schema::resource::{ForeignKind, ResourceDefinition, Subresource, Verb};

#[derive(Debug)]
pub(super) struct PathItem {
    pub path: String,
    /// Common to all operations of the path.
    pub parameters: Vec<Parameter>,
    pub operations: Vec<Operation>,
}

#[derive(Debug)]
pub(super) struct Operation {
    /// HTTP method in lower case.
    pub method: &'static str,
    pub id: String,
    pub tag: String,
    pub subject: Option<Subject>,
    pub query: &'static [Parameter],
    pub body: Body,
    pub codes: &'static [(u16, &'static str)],
    /// Name of the answer's schema.
    pub returns: String,
}

/// What an operation does, and to what kind: discovery has none.
#[derive(Debug)]
pub(super) struct Subject {
    /// `x-kubernetes-action`.
    pub action: &'static str,
    /// `x-kubernetes-group-version-kind`.
    pub kind: ForeignKind,
}

impl Operation {
    /// The names of the schemas that the operation refers to.
    pub fn schemas(&self) -> impl Iterator<Item = String> {
        let body = self.body.schema().map(str::to_owned);
        body.into_iter().chain([self.returns.clone()])
    }

    /// Reads a document of discovery.
    pub fn discovery(id: String, tag: String, returns: &str) -> Self {
        Self {
            method: "get",
            id,
            tag,
            subject: None,
            query: &[],
            body: Body::None,
            codes: OK,
            returns: returns.to_owned(),
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

const OK: &[(u16, &str)] = &[(200, "OK")];
const OK_CREATED: &[(u16, &str)] = &[(200, "OK"), (201, "Created")];
const OK_ACCEPTED: &[(u16, &str)] = &[(200, "OK"), (202, "Accepted")];
const ANY_CREATED: &[(u16, &str)] = &[(200, "OK"), (201, "Created"), (202, "Accepted")];

/// All paths of a group version, in the order of its resources.
pub(super) fn paths(origin: Origin, version: &GroupVersion) -> Vec<PathItem> {
    version
        .resources
        .iter()
        .flat_map(|definition| Paths { origin, definition, root: format!("/{}", version.path()) }.all())
        .filter(|item| !item.operations.is_empty())
        .collect()
}

/// The `paths` object from the two renderings in which v2 and v3 differ.
pub(super) fn render(
    items: &[PathItem],
    operation: fn(&Operation) -> Value,
    parameter: fn(&Parameter) -> Value,
) -> Entries {
    let render_item = |item: &PathItem| {
        let operations = item.operations.iter().map(|op| (op.method.to_owned(), operation(op)));
        let mut rendered: Map<String, Value> = operations.collect();
        rendered.insert("parameters".to_owned(), item.parameters.iter().map(parameter).collect());
        rendered.sort_keys();
        encoded(&rendered.into())
    };
    items.iter().map(|item| (item.path.clone(), render_item(item))).collect()
}

struct Paths<'a> {
    origin: Origin,
    definition: &'a ResourceDefinition,
    root: String,
}

impl Paths<'_> {
    fn all(&self) -> Vec<PathItem> {
        let mut items = vec![self.collection(), self.object()];
        items.extend(self.definition.subresources.iter().map(|sub| self.subresource(sub)));
        if self.definition.namespaced() {
            items.push(self.all_namespaces());
        }
        items
    }

    fn collection(&self) -> PathItem {
        let verbs = [Verb::List, Verb::Create, Verb::DeleteCollection];
        PathItem {
            path: self.collection_path(),
            parameters: self.path_parameters(&[PRETTY]),
            operations: self.operations(&verbs),
        }
    }

    fn object(&self) -> PathItem {
        let verbs = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
        PathItem {
            path: format!("{}/{{name}}", self.collection_path()),
            parameters: self.path_parameters(&[NAME, PRETTY]),
            operations: self.operations(&verbs),
        }
    }

    fn subresource(&self, sub: &Subresource) -> PathItem {
        let kind = sub.kind.clone().unwrap_or_else(|| self.kind());
        PathItem {
            path: format!("{}/{{name}}/{}", self.collection_path(), sub.name),
            parameters: self.path_parameters(&[NAME, PRETTY]),
            operations: sub.verbs.iter().map(|&verb| self.operation(verb, &kind, &sub.name)).collect(),
        }
    }

    fn all_namespaces(&self) -> PathItem {
        let mut operations = self.operations(&[Verb::List]);
        for operation in &mut operations {
            operation.id = self.operation_id("list", "", "ForAllNamespaces");
        }
        PathItem {
            path: format!("{}/{}", self.root, self.definition.plural),
            parameters: vec![PRETTY],
            operations,
        }
    }

    fn collection_path(&self) -> String {
        let namespace = if self.definition.namespaced() { "/namespaces/{namespace}" } else { "" };
        format!("{}{namespace}/{}", self.root, self.definition.plural)
    }

    fn path_parameters(&self, own: &[Parameter]) -> Vec<Parameter> {
        let namespace = self.definition.namespaced().then_some(NAMESPACE);
        let mut all: Vec<Parameter> = own.iter().copied().chain(namespace).collect();
        all.sort_by_key(|parameter| parameter.name);
        all
    }

    fn operations(&self, verbs: &[Verb]) -> Vec<Operation> {
        let served = verbs.iter().filter(|&&verb| self.definition.allows(verb));
        served.map(|&verb| self.operation(verb, &self.kind(), "")).collect()
    }

    fn operation(&self, verb: Verb, kind: &ForeignKind, sub: &str) -> Operation {
        let object = names::schema(self.origin, &kind.group, &kind.version, &kind.kind);
        let Shape { method, action, query, codes } = shape(verb);
        Operation {
            method,
            id: self.id(verb, sub),
            tag: names::tag(&self.definition.group, &self.definition.version),
            subject: Some(Subject { action, kind: kind.clone() }),
            query,
            body: match verb {
                Verb::Create | Verb::Update => Body::Object(object.clone()),
                Verb::Patch => Body::Patch,
                Verb::Delete | Verb::DeleteCollection => Body::Delete,
                Verb::Get | Verb::List | Verb::Watch => Body::None,
            },
            codes,
            returns: self.returns(verb, object),
        }
    }

    fn id(&self, verb: Verb, sub: &str) -> String {
        let suffix = names::capitalized(sub);
        match verb {
            Verb::Get => self.operation_id("read", "Namespaced", &suffix),
            Verb::Update => self.operation_id("replace", "Namespaced", &suffix),
            Verb::DeleteCollection => self.operation_id("delete", "CollectionNamespaced", &suffix),
            other => self.operation_id(other.as_str(), "Namespaced", &suffix),
        }
    }

    fn returns(&self, verb: Verb, object: String) -> String {
        match verb {
            Verb::List | Verb::Watch => self.schema(&self.definition.list_kind),
            Verb::Delete if self.definition.behavior.returns_deleted => object,
            Verb::Delete | Verb::DeleteCollection => names::STATUS.to_owned(),
            Verb::Create | Verb::Get | Verb::Patch | Verb::Update => object,
        }
    }

    /// Cluster-scoped kinds are not `Namespaced`.
    fn operation_id(&self, verb: &str, scope: &str, suffix: &str) -> String {
        let definition = self.definition;
        let scope = match scope.strip_suffix("Namespaced") {
            Some(rest) if !definition.namespaced() => rest,
            _ => scope,
        };
        let group_version = names::group_version(&definition.group, &definition.version);
        format!("{verb}{group_version}{scope}{}{suffix}", definition.kind)
    }

    fn schema(&self, kind: &str) -> String {
        names::schema(self.origin, &self.definition.group, &self.definition.version, kind)
    }

    fn kind(&self) -> ForeignKind {
        ForeignKind {
            group: self.definition.group.clone(),
            version: self.definition.version.clone(),
            kind: self.definition.kind.clone(),
        }
    }
}

/// What an operation owes to its verb alone.
struct Shape {
    method: &'static str,
    action: &'static str,
    query: &'static [Parameter],
    codes: &'static [(u16, &'static str)],
}

fn shape(verb: Verb) -> Shape {
    let (method, action, query, codes) = match verb {
        Verb::Get => ("get", "get", &[][..], OK),
        Verb::List | Verb::Watch => ("get", "list", parameters::LIST, OK),
        Verb::Create => ("post", "post", parameters::WRITE, ANY_CREATED),
        Verb::Update => ("put", "put", parameters::WRITE, OK_CREATED),
        Verb::Patch => ("patch", "patch", parameters::PATCH, OK_CREATED),
        Verb::Delete => ("delete", "delete", parameters::DELETE, OK_ACCEPTED),
        Verb::DeleteCollection => ("delete", "deletecollection", parameters::DELETE_COLLECTION, OK),
    };
    Shape { method, action, query, codes }
}
