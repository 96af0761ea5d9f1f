//! The paths of a group version and what can be done there.

use super::operation::{
    ANSWERS, ANY, Body, CUSTOM_PATCHES, LOGS, OK, Operation, PATCHES, PathItem, STREAMS, Subject, TEXTS,
};
use super::parameters::{self, NAMESPACE, PRETTY, Parameter};
use super::{names, wording};
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::schema::registry::ServedVersion;
use crate::schema::resource::{Nature, Origin, ResourceDefinition, Subresource, Verb};
use crate::tree::Text;

const OK_CREATED: &[(u16, &str)] = &[(200, "OK"), (201, "Created")];
const OK_ACCEPTED: &[(u16, &str)] = &[(200, "OK"), (202, "Accepted")];
const ANY_CREATED: &[(u16, &str)] = &[(200, "OK"), (201, "Created"), (202, "Accepted")];

/// All paths of a group version, in the order of its resources.
pub(super) fn paths(version: &ServedVersion) -> Vec<PathItem> {
    version
        .resources
        .iter()
        .flat_map(|definition| Paths { definition, root: format!("/{}", version.path()) }.all())
        .filter(|item| !item.operations.is_empty())
        .collect()
}

struct Paths<'a> {
    definition: &'a ResourceDefinition,
    root: String,
}

impl Paths<'_> {
    fn all(&self) -> Vec<PathItem> {
        let mut items = vec![self.collection(), self.object()];
        for sub in &self.definition.subresources {
            match sub.nature {
                Nature::Object => items.push(self.subresource(sub)),
                Nature::Log => items.push(self.log(sub)),
                Nature::Stream | Nature::Proxy => items.extend(self.connections(sub)),
            }
        }
        if self.definition.namespaced() {
            items.push(self.all_namespaces());
        }
        // Upstream serves these for its own kinds only.
        if self.definition.origin == Origin::BuiltIn && self.definition.allows(Verb::Watch) {
            items.extend(self.watches());
        }
        items
    }

    fn collection(&self) -> PathItem {
        let verbs = [Verb::List, Verb::Create, Verb::DeleteCollection];
        PathItem::new(self.collection_path(""), self.path_parameters(vec![PRETTY]), self.operations(&verbs))
    }

    fn object(&self) -> PathItem {
        let verbs = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
        let path = format!("{}/{{name}}", self.collection_path(""));
        PathItem::new(path, self.object_parameters(self.definition.kind_name()), self.operations(&verbs))
    }

    fn subresource(&self, sub: &Subresource) -> PathItem {
        let kind = sub.kind.as_ref().unwrap_or(&self.definition.kind);
        let path = format!("{}/{{name}}/{}", self.collection_path(""), sub.name);
        let operations = sub.verbs.iter().map(|&verb| self.operation(verb, kind, &sub.name)).collect();
        PathItem::new(path, self.object_parameters(&self.subject(kind).kind), operations)
    }

    fn log(&self, sub: &Subresource) -> PathItem {
        let mut item = self.subresource(sub);
        for operation in &mut item.operations {
            operation.returns = names::TEXT.to_owned();
            operation.produces = LOGS;
        }
        let mut parameters = self.object_parameters(self.definition.kind_name());
        parameters.extend(parameters::connection("PodLogOptions").to_vec());
        PathItem::new(item.path, parameters, item.operations)
    }

    /// The paths of a subresource that connects, with an operation for each method; for a proxy also a path that goes on
    /// behind it.
    fn connections(&self, sub: &Subresource) -> Vec<PathItem> {
        const PROXIED: &[&str] = &["delete", "get", "head", "options", "patch", "post", "put"];
        let options = sub.kind.as_ref().unwrap_or(&self.definition.kind);
        let item = |methods: &[&'static str], below: &str, suffix: &str, own: Vec<Parameter>| {
            let path = format!("{}/{{name}}/{}{below}", self.collection_path(""), sub.name);
            let parameters = std::iter::once(Parameter::name_of(&options.gvk.kind)).chain(own).collect();
            let operations = methods.iter().map(|method| self.connection(method, options, &sub.name, suffix));
            PathItem::new(path, self.path_parameters(parameters), operations.collect())
        };
        match sub.nature {
            Nature::Proxy => vec![
                item(PROXIED, "", "", Vec::new()),
                item(PROXIED, "/{path}", "WithPath", vec![parameters::BELOW]),
            ],
            _ => vec![item(&["get", "post"], "", "", Vec::new())],
        }
    }

    fn connection(&self, method: &'static str, options: &Kind, sub: &str, suffix: &str) -> Operation {
        let suffix = format!("{}{suffix}", names::capitalized(sub));
        Operation {
            method,
            id: self.connection_id(method, &suffix),
            description: wording::connection(self.definition, method, sub),
            tag: names::tag(self.definition.group_version()),
            subject: Some(Subject { action: "connect", kind: options.gvk.clone() }),
            query: parameters::connection(&options.gvk.kind).to_vec(),
            body: Body::None,
            codes: OK,
            returns: names::TEXT.to_owned(),
            produces: ANY,
            consumes: ANY,
        }
    }

    fn all_namespaces(&self) -> PathItem {
        let mut operations = self.operations(&[Verb::List]);
        for operation in &mut operations {
            operation.id = self.operation_id("list", "", "ForAllNamespaces");
        }
        PathItem::new(format!("{}/{}", self.root, self.definition.plural), vec![PRETTY], operations)
    }

    /// The deprecated paths that say no `watch=true`.
    fn watches(&self) -> Vec<PathItem> {
        let kind = self.definition.kind_name();
        let item = |path: String, parameters: Vec<Parameter>, action, id| {
            let mut watch = self.operation(Verb::List, &self.definition.kind, "");
            watch.id = id;
            watch.description = match action {
                "watch" => format!("watch changes to an object of kind {kind}"),
                _ => format!("watch individual changes to a list of {kind}"),
            };
            watch.subject = Some(Subject { action, kind: self.definition.gvk().clone() });
            watch.returns = names::WATCH_EVENT.to_owned();
            PathItem::new(path, parameters, vec![watch])
        };
        let collection = self.collection_path("/watch");
        let object = format!("{collection}/{{name}}");
        let mut items = vec![
            item(
                collection,
                self.path_parameters(vec![PRETTY]),
                "watchlist",
                self.operation_id("watch", "Namespaced", "List"),
            ),
            item(object, self.object_parameters(kind), "watch", self.operation_id("watch", "Namespaced", "")),
        ];
        if self.definition.namespaced() {
            let path = format!("{}/watch/{}", self.root, self.definition.plural);
            let id = self.operation_id("watch", "", "ListForAllNamespaces");
            items.push(item(path, vec![PRETTY], "watchlist", id));
        }
        items
    }

    /// `prefix` stands between the version and the rest.
    fn collection_path(&self, prefix: &str) -> String {
        let namespace = if self.definition.namespaced() { "/namespaces/{namespace}" } else { "" };
        format!("{}{prefix}{namespace}/{}", self.root, self.definition.plural)
    }

    fn path_parameters(&self, own: Vec<Parameter>) -> Vec<Parameter> {
        let namespace = self.definition.namespaced().then_some(NAMESPACE);
        own.into_iter().chain(namespace).collect()
    }

    /// The parameters of a path that names an object of this kind.
    fn object_parameters(&self, kind: &Text) -> Vec<Parameter> {
        self.path_parameters(vec![Parameter::name_of(kind), PRETTY])
    }

    fn operations(&self, verbs: &[Verb]) -> Vec<Operation> {
        let served = verbs.iter().filter(|&&verb| self.definition.allows(verb));
        served.map(|&verb| self.operation(verb, &self.definition.kind, "")).collect()
    }

    fn operation(&self, verb: Verb, kind: &Kind, sub: &str) -> Operation {
        let object = names::schema(kind);
        let Shape { method, action, query, codes } = match self.definition.origin {
            Origin::BuiltIn => shape(verb),
            Origin::Custom => custom_shape(verb),
        };
        let is_custom = self.definition.origin == Origin::Custom;
        Operation {
            method,
            id: self.id(verb, sub),
            description: wording::operation(self.definition, verb, sub),
            tag: names::tag(self.definition.group_version()),
            subject: Some(Subject { action, kind: self.subject(kind).clone() }),
            query: query.to_vec(),
            body: match verb {
                Verb::Create | Verb::Update => Body::Object(object.clone()),
                Verb::Patch => Body::Patch,
                Verb::DeleteCollection if is_custom => Body::None,
                Verb::Delete | Verb::DeleteCollection => Body::Delete,
                Verb::Get | Verb::List | Verb::Watch => Body::None,
            },
            codes,
            returns: self.returns(verb, object),
            produces: match verb {
                _ if is_custom => TEXTS,
                Verb::List | Verb::Watch => STREAMS,
                _ => ANSWERS,
            },
            consumes: match verb {
                Verb::Patch if is_custom => CUSTOM_PATCHES,
                Verb::Patch => PATCHES,
                _ if is_custom => TEXTS,
                _ => ANY,
            },
        }
    }

    /// The kind that an operation is said to be about: a Scale of a custom resource goes by the resource's own.
    fn subject<'k>(&'k self, kind: &'k Kind) -> &'k Gvk {
        if self.definition.origin == Origin::Custom { self.definition.gvk() } else { &kind.gvk }
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
            Verb::List | Verb::Watch => names::list_schema(self.definition),
            // Upstream's documents do not know that a namespace is returned as well.
            Verb::Delete if self.definition.behavior.returns_deleted && !self.is_namespace() => object,
            Verb::Delete | Verb::DeleteCollection => names::STATUS.to_owned(),
            Verb::Create | Verb::Get | Verb::Patch | Verb::Update => object,
        }
    }

    fn is_namespace(&self) -> bool {
        self.definition.group().is_empty() && &*self.definition.plural == "namespaces"
    }

    /// Cluster-scoped kinds are not `Namespaced`.
    fn operation_id(&self, verb: &str, scope: &str, suffix: &str) -> String {
        self.id_of(verb, "", scope, suffix)
    }

    /// The method stands behind the version.
    fn connection_id(&self, method: &str, suffix: &str) -> String {
        self.id_of("connect", &names::capitalized(method), "Namespaced", suffix)
    }

    fn id_of(&self, verb: &str, method: &str, scope: &str, suffix: &str) -> String {
        let definition = self.definition;
        let scope = match scope.strip_suffix("Namespaced") {
            Some(rest) if !definition.namespaced() => rest,
            _ => scope,
        };
        let group_version = names::group_version(definition.group_version());
        format!("{verb}{group_version}{method}{scope}{}{suffix}", definition.kind_name())
    }
}

/// The parts of an operation that follow from its verb alone.
struct Shape {
    method: &'static str,
    action: &'static str,
    query: &'static [Parameter],
    codes: &'static [(u16, &'static str)],
}

/// The shape that upstream's builder for CustomResourceDefinitions gives to a verb.
fn custom_shape(verb: Verb) -> Shape {
    match verb {
        Verb::Get => Shape { query: parameters::GET, ..shape(verb) },
        Verb::Patch => Shape { codes: OK, ..shape(verb) },
        Verb::DeleteCollection => Shape { query: parameters::LIST, ..shape(verb) },
        _ => shape(verb),
    }
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
