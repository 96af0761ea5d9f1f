//! Matching of requests with webhooks and policies: rules, selectors of namespaces and objects, and resources that are
//! the same in another version.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::{Attempt, Operation};
use crate::codec::managed;
use crate::error::Error;
use crate::options::selector::label::LabelSelector;
use crate::resource::Resource;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::Verb;
use crate::tree::{Text, Value};
use crate::{Cluster, ObjectMap, fields, meta, metadata};

pub const NAMESPACES: Gvr = Gvr::fixed("v1", "namespaces");

/// The facts about a request that rules look at.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub operation: Operation,
    /// The resource in the version that the request names.
    pub resource: &'a Resource,
    pub subresource: &'a str,
    /// The object's namespace: a Namespace's own name; empty for other cluster-scoped objects.
    pub namespace: &'a str,
    /// Empty if it is to be generated, and for each object of a collection that is deleted.
    pub name: &'a str,
}

/// A version of the requested resource, and the kind that its objects have there.
#[derive(Clone)]
pub struct Matched {
    pub resource: Gvr,
    pub kind: Kind,
    /// `None` for the request's own version.
    pub other: Option<Arc<Resource>>,
}

impl<'a> Facts<'a> {
    pub fn of(attempt: &Attempt<'a>) -> Self {
        let (request, target) = (attempt.request, attempt.target);
        let is_collection = request.verb == Verb::DeleteCollection;
        let name = if is_collection { "" } else { target.name };
        let is_namespace = is_namespaces(target.resource);
        Self {
            operation: attempt.operation,
            resource: target.resource,
            subresource: request.subresource,
            namespace: if is_namespace { target.name } else { target.namespace },
            name,
        }
    }

    /// Whether the request is for a Namespace or a part of one.
    pub fn is_namespace(&self) -> bool {
        is_namespaces(self.resource)
    }

    /// The request's own version.
    pub fn own(&self) -> Matched {
        let resource = self.resource.definition.gvr();
        Matched { resource, kind: kind_of(self.resource, self.subresource), other: None }
    }

    /// The versions in which the resource is served besides.
    pub fn equivalents(&self, cluster: &Cluster) -> Vec<Arc<Resource>> {
        let served = cluster.catalog.served();
        let own = self.resource.definition.group_version();
        let others = served.versions_of_row(self.resource);
        let others = others.filter(|other| other.definition.group_version() != own);
        let has_part = |other: &&Arc<Resource>| {
            self.subresource.is_empty() || other.definition.subresource(self.subresource).is_some()
        };
        others.filter(has_part).cloned().collect()
    }
}

fn is_namespaces(resource: &Resource) -> bool {
    resource.definition.group().is_empty() && &*resource.definition.plural == "namespaces"
}

/// The kind of what is written there.
pub fn kind_of(resource: &Resource, subresource: &str) -> Kind {
    let of_subresource = resource.definition.subresource(subresource).and_then(|sub| sub.kind.clone());
    of_subresource.unwrap_or_else(|| resource.definition.kind.clone())
}

/// One of a webhook's `rules`.
#[derive(Clone, Debug)]
pub struct Rule {
    operations: Vec<Text>,
    groups: Vec<Text>,
    versions: Vec<Text>,
    /// Resource and subresource.
    resources: Vec<(Text, Text)>,
    scope: RuleScope,
    /// If there are any, only objects of these names.
    names: Vec<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleScope {
    All,
    Cluster,
    Namespaced,
}

impl Rule {
    pub fn of(rule: &ObjectMap) -> Self {
        let texts = |field| -> Vec<Text> {
            let items = fields::items(rule, &[field]).iter();
            items.filter_map(Value::as_str).map(Text::from).collect()
        };
        let split = |pattern: &Text| match pattern.split_once('/') {
            Some((resource, subresource)) => (resource.into(), subresource.into()),
            None => (pattern.clone(), Text::default()),
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").iter().map(split).collect(),
            scope: match fields::text(rule, &["scope"]) {
                "Cluster" => RuleScope::Cluster,
                "Namespaced" => RuleScope::Namespaced,
                _ => RuleScope::All,
            },
            names: texts("resourceNames"),
        }
    }

    /// Whether the rule is about a request as if it were for this version of its resource.
    pub fn matches(&self, facts: &Facts<'_>, resource: &Resource) -> bool {
        let definition = &resource.definition;
        let (group, version) = (definition.group().as_str(), definition.version());
        has(&self.operations, facts.operation.as_str())
            && self.is_about(&definition.plural, facts.subresource)
            && has(&self.groups, group)
            && has(&self.versions, version)
            && (self.names.is_empty() || self.names.iter().any(|name| name == facts.name))
            && match self.scope {
                RuleScope::All => true,
                RuleScope::Namespaced => !facts.is_namespace() && !facts.namespace.is_empty(),
                RuleScope::Cluster => facts.is_namespace() || facts.namespace.is_empty(),
            }
    }

    fn is_about(&self, plural: &str, subresource: &str) -> bool {
        self.resources
            .iter()
            .any(|(own, sub)| (own == "*" || own == plural) && (sub == "*" || sub == subresource))
    }
}

/// The plurals of the resources that rules may be about, each once; `None` if these may be any.
pub fn plurals(rules: &[Rule]) -> Option<BTreeSet<Text>> {
    let resources = || rules.iter().flat_map(|rule| &rule.resources);
    (!resources().any(|(plural, _)| plural == "*"))
        .then(|| resources().map(|(plural, _)| plural.clone()).collect())
}

fn has(list: &[Text], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

/// The version of the request's resource that rules are about: its own, or if `equivalent` another one.
pub fn matched(
    rules: &[Rule],
    equivalent: bool,
    facts: &Facts<'_>,
    others: &mut Option<Vec<Arc<Resource>>>,
    cluster: &Cluster,
) -> Option<Matched> {
    if rules.iter().any(|rule| rule.matches(facts, facts.resource)) {
        return Some(facts.own());
    }
    if !equivalent {
        return None;
    }
    let others = others.get_or_insert_with(|| facts.equivalents(cluster));
    let mut hits = rules.iter().filter_map(|rule| others.iter().find(|other| rule.matches(facts, other)));
    let other = hits.next()?;
    Some(Matched {
        resource: other.definition.gvr(),
        kind: kind_of(other, facts.subresource),
        other: Some(other.clone()),
    })
}

/// A selector in a configuration.
#[derive(Clone, Debug)]
pub enum Labels {
    /// The empty selector.
    All,
    Selected(LabelSelector),
    /// It cannot be read, which validation prevents.
    Malformed,
}

impl Labels {
    pub fn of(selector: Option<&Value>) -> Self {
        match selector.filter(|selector| !selector.is_null()) {
            None => Self::All,
            Some(selector) => match LabelSelector::of_object(Some(selector)) {
                Some(selector) if selector.is_empty() => Self::All,
                Some(selector) => Self::Selected(selector),
                None => Self::Malformed,
            },
        }
    }

    fn malformed() -> Error {
        Error::Internal("a selector cannot be read".to_owned())
    }

    /// Whether the request's namespace is selected. What is in no namespace always is.
    pub fn select_namespace(&self, attempt: &Attempt<'_>, facts: &Facts<'_>) -> Result<bool, Error> {
        if facts.namespace.is_empty() && !facts.is_namespace() {
            return Ok(true);
        }
        match self {
            Self::All => Ok(true),
            Self::Malformed => Err(Self::malformed()),
            Self::Selected(selector) => {
                let is_written = facts.subresource.is_empty() && facts.operation != Operation::Delete;
                if facts.is_namespace() && is_written {
                    return Ok(attempt.object.as_ref().is_some_and(|object| selects(selector, object)));
                }
                let namespace = stored_namespace(attempt.cluster, facts.namespace)?;
                Ok(selects(selector, &namespace))
            }
        }
    }

    /// Whether the new or the old object is selected.
    pub fn select_object(&self, object: Option<&ObjectMap>, old: Option<&ObjectMap>) -> Result<bool, Error> {
        match self {
            Self::All => Ok(true),
            Self::Malformed => Err(Self::malformed()),
            Self::Selected(selector) => {
                Ok([object, old].into_iter().flatten().any(|object| selects(selector, object)))
            }
        }
    }
}

fn selects(selector: &LabelSelector, object: &ObjectMap) -> bool {
    metadata(object).is_some_and(|own| selector.matches(|key| meta::label(own, key)))
}

/// The requests that a policy or a binding is about: `matchConstraints` and `matchResources`.
#[derive(Clone, Debug)]
pub struct MatchResources {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    is_equivalent: bool,
    namespaces: Labels,
    objects: Labels,
}

impl MatchResources {
    pub fn of(resources: &ObjectMap) -> Self {
        let rules = |field| {
            let rules = fields::items(resources, &[field]).iter().filter_map(Value::as_object);
            rules.map(Rule::of).collect()
        };
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_equivalent: fields::text(resources, &["matchPolicy"]) != "Exact",
            namespaces: Labels::of(resources.get("namespaceSelector")),
            objects: Labels::of(resources.get("objectSelector")),
        }
    }

    /// The plurals of the resources that this may be about, each once; `None` if it may be any.
    pub fn plurals(&self) -> Option<BTreeSet<Text>> {
        // Without rules it is about everything.
        plurals(&self.rules).filter(|_| !self.rules.is_empty())
    }

    /// The version of the request's resource that this is about.
    pub fn matched(
        &self,
        attempt: &Attempt<'_>,
        facts: &Facts<'_>,
        others: &mut Option<Vec<Arc<Resource>>>,
    ) -> Result<Option<Matched>, Error> {
        // An error counts only where the rules match.
        let namespace = self.namespaces.select_namespace(attempt, facts);
        if matches!(namespace, Ok(false)) {
            return Ok(None);
        }
        let object = self.objects.select_object(attempt.object.as_ref(), attempt.old);
        if matches!(object, Ok(false)) {
            return Ok(None);
        }
        let cluster = attempt.cluster;
        if matched(&self.excluded, self.is_equivalent, facts, others, cluster).is_some() {
            return Ok(None);
        }
        let found = match self.rules.is_empty() {
            true => Some(facts.own()),
            false => matched(&self.rules, self.is_equivalent, facts, others, cluster),
        };
        if found.is_some() {
            namespace.and(object)?;
        }
        Ok(found)
    }
}

/// Whether the object has the versions of its resource: that of a subresource may have a kind of its own.
pub fn has_versions(facts: Facts<'_>) -> bool {
    let definition = &facts.resource.definition;
    definition.subresource(facts.subresource).is_none_or(|subresource| subresource.kind.is_none())
}

/// 404 if it does not exist.
pub fn stored_namespace(cluster: &Cluster, name: &str) -> Result<ObjectMap, Error> {
    let not_found = || Error::not_found(GroupResource::new("", "namespaces"), name);
    let resource = cluster.resources.get(&NAMESPACES).ok_or(Error::UnknownResource)?;
    let found = cluster.cache.any().get(resource.id, "", name).ok_or_else(not_found)?;
    resource.decode(&found)
}

/// An object of the request's version in another one.
pub async fn converted(
    cluster: &Cluster,
    from: &Resource,
    to: &Resource,
    object: ObjectMap,
) -> Result<ObjectMap, Error> {
    let internal = |error: Error| match error {
        Error::Internal(why) => Error::Internal(why),
        other => Error::Internal(other.to_string()),
    };
    cluster.converter.between(from, to, object).await.map_err(internal)
}

/// A converted object, closed: some conversions open their object.
pub fn closed(mut object: ObjectMap) -> ObjectMap {
    managed::open(&mut object);
    managed::close(&mut object);
    object
}

#[cfg(test)]
mod tests;
