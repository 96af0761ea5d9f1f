//! Actions: the verbs of the API, by HTTP method and path.

use axum::http::{HeaderMap, Method, header};

use crate::api::error::Error;
use crate::api::options::list::is_watch;
use crate::api::options::query::Query;
use crate::http::request::path::ResourcePath;
use crate::schema::resource::{Nature, ResourceDefinition, Verb};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// Reads the output of a container.
    Log,
    /// Connects to a Pod, a Service or a Node. The verb is that of the method.
    Connect(Verb),
}

/// The media type of a configuration that is applied.
const APPLY: &str = "application/apply-patch+yaml";

/// The verbs of paths that end with a name.
const ITEM_VERBS: [Verb; 4] = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];

impl Action {
    /// The action that a request wants; an error if the resource does not do that there.
    pub fn of(
        method: &Method,
        path: &ResourcePath,
        query: &Query,
        definition: &ResourceDefinition,
    ) -> Result<Self, Error> {
        if path.proxy {
            let resource = definition.group_resource();
            return Err(match definition.is_custom() {
                true => Error::NotSupported { resource, verb: "proxy" },
                false => Error::UnknownResource,
            });
        }
        check_scope(path, definition)?;
        let nature =
            path.subresource.as_deref().and_then(|name| definition.subresource(name)).map(|sub| sub.nature);
        if let Some(nature) = nature.filter(|nature| nature.connects() && !path.watch && path.name.is_some())
        {
            return connecting(method, nature).ok_or(Error::MethodNotAllowed);
        }
        // What is asked and never stored has no routes with names.
        let has_items = definition.is_custom() || ITEM_VERBS.iter().any(|verb| definition.allows(*verb));
        if path.name.is_some() && path.subresource.is_none() && !has_items {
            return Err(Error::UnknownResource);
        }
        // Upstream's routes of built-in kinds have no HEAD; its handler of custom resources asks for the verb alone.
        let reads = *method == Method::GET || *method == Method::HEAD && definition.is_custom();
        let action = if path.watch {
            match reads {
                true => Self::Watch,
                false => return Err(Error::MethodNotAllowed),
            }
        } else {
            match (method, path.name.is_some()) {
                (_, true) if reads && nature == Some(Nature::Log) => Self::Log,
                (_, true) if reads => Self::Get,
                (_, false) if reads && is_watch(query) => Self::Watch,
                (_, false) if reads => Self::List,
                (&Method::POST, named) if !named || path.subresource.is_some() => Self::Create,
                (&Method::PUT, true) => Self::Update,
                (&Method::PATCH, true) => Self::Patch,
                (&Method::DELETE, true) => Self::Delete,
                (&Method::DELETE, false) => Self::DeleteCollection,
                _ => return Err(Error::MethodNotAllowed),
            }
        };
        action.check(path, definition)?;
        Ok(action)
    }

    fn check(self, path: &ResourcePath, definition: &ResourceDefinition) -> Result<(), Error> {
        let writes_collection = matches!(self, Self::Create | Self::DeleteCollection);
        if writes_collection && definition.namespaced() && path.namespace.is_none() {
            // Upstream takes a custom resource in another scope for none.
            return Err(if definition.is_custom() {
                Error::UnknownResource
            } else {
                Error::MethodNotAllowed
            });
        }
        let allowed = match &path.subresource {
            None => definition.allows(self.as_verb()),
            Some(name) => {
                let subresource =
                    definition.subresource(name).ok_or_else(|| no_subresource(path, definition))?;
                subresource.verbs.contains(&self.as_verb())
            }
        };
        match (allowed, self) {
            (true, _) => Ok(()),
            (false, Self::Watch) if definition.allows(Verb::List) => {
                Err(Error::NotSupported { resource: definition.group_resource(), verb: "watch" })
            }
            (false, _) if definition.is_custom() => {
                Err(Error::NotSupported { resource: definition.group_resource(), verb: self.verb() })
            }
            (false, _) => Err(Error::MethodNotAllowed),
        }
    }

    pub fn as_verb(self) -> Verb {
        match self {
            Self::Get | Self::Log => Verb::Get,
            Self::List => Verb::List,
            Self::Watch => Verb::Watch,
            Self::Create => Verb::Create,
            Self::Update => Verb::Update,
            Self::Patch => Verb::Patch,
            Self::Delete => Verb::Delete,
            Self::DeleteCollection => Verb::DeleteCollection,
            Self::Connect(verb) => verb,
        }
    }

    /// The verb in the words of authorizers.
    pub fn verb(self) -> &'static str {
        self.as_verb().as_str()
    }

    pub fn is_reading(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch | Self::Log | Self::Connect(_))
    }

    /// Whether the request has no end of its own.
    pub fn is_long_running(self) -> bool {
        matches!(self, Self::Watch | Self::Log | Self::Connect(_))
    }

    /// The verb in the words of metrics, which call the deletion of a collection after its method.
    pub fn metric(self, headers: &HeaderMap) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == APPLY) => "APPLY",
            Self::Patch => "PATCH",
            Self::Delete | Self::DeleteCollection => "DELETE",
            Self::Log | Self::Connect(_) => "CONNECT",
        }
    }
}

/// The action of a method at a subresource that connects.
fn connecting(method: &Method, nature: Nature) -> Option<Action> {
    let verb = match (method, nature) {
        (&Method::GET, _) => Verb::Get,
        (&Method::POST, _) => Verb::Create,
        (_, Nature::Stream) => return None,
        (&Method::HEAD | &Method::OPTIONS, _) => Verb::Get,
        (&Method::PUT, _) => Verb::Update,
        (&Method::PATCH, _) => Verb::Patch,
        (&Method::DELETE, _) => Verb::Delete,
        _ => return None,
    };
    Some(Action::Connect(verb))
}

/// Upstream has routes for the subresources of built-in resources; of a custom one it says that the object is not there.
fn no_subresource(path: &ResourcePath, definition: &ResourceDefinition) -> Error {
    if !definition.is_custom() {
        return Error::UnknownResource;
    }
    let name = path.name.clone().unwrap_or_default();
    Error::NotFound { resource: definition.group_resource(), name }
}

/// Upstream has no route for a namespace around a cluster-scoped resource, nor for one object without its namespace.
fn check_scope(path: &ResourcePath, definition: &ResourceDefinition) -> Result<(), Error> {
    let fits = match (definition.namespaced(), &path.namespace) {
        (true, None) => path.name.is_none(),
        (false, Some(_)) => false,
        _ => true,
    };
    if fits { Ok(()) } else { Err(Error::UnknownResource) }
}
