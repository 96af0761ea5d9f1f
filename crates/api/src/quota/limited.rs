//! Resources that nobody may use unless a quota covers them (`ResourceQuotaConfiguration`).

use std::collections::BTreeSet;

use super::amounts::{Amounts, exceeds};
use super::evaluator::Evaluator;
use super::refusal::Refusal;
use super::scopes::Requirement as Scope;
use crate::ObjectMap;
use crate::gotext::quote;
use crate::schema::names::GroupResource;
use crate::tree::Value;

const FORMS: [(&str, &str); 3] = [
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
];

/// The configuration of the plugin ResourceQuota.
#[derive(Clone, Debug, Default)]
pub struct LimitedResources(Vec<Limited>);

#[derive(Clone, Debug)]
struct Limited {
    resource: GroupResource,
    /// Parts of the names of what is limited.
    contains: Vec<String>,
    /// Scopes whose objects are limited, whatever the resource is.
    scopes: Vec<ObjectMap>,
}

impl LimitedResources {
    /// Reads the configuration.
    pub fn parse(content: Option<&Value>) -> Result<Self, String> {
        let Some(content) = content else { return Ok(Self::default()) };
        let text = |name: &str| content[name].as_str().unwrap_or_default();
        let form = (text("apiVersion"), text("kind"));
        if !FORMS.contains(&form) {
            let (version, kind) = (quote(form.0), quote(form.1));
            return Err(format!("no kind {kind} is registered for version {version}"));
        }
        let entries = content["limitedResources"].as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = entries.iter().enumerate().map(|(index, entry)| Limited::parse(index, entry));
        Ok(Self(entries.collect::<Result<_, _>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names in a usage that a quota has to cover.
    pub(super) fn names(&self, resource: &GroupResource, usage: &Amounts) -> BTreeSet<String> {
        let of_resource = || self.0.iter().filter(|limited| limited.resource == *resource);
        let is_limited = |name: &str| {
            of_resource().any(|limited| limited.contains.iter().any(|part| name.contains(&**part)))
        };
        let used = usage.iter().filter(|(_, amount)| exceeds(amount, "0"));
        used.map(|(name, _)| name).filter(|name| is_limited(name)).map(str::to_owned).collect()
    }

    /// The limited scopes that an object is in.
    pub(super) fn scopes<'a>(&'a self, evaluator: Evaluator<'_>, object: &ObjectMap) -> Vec<Scope<'a>> {
        let scopes = self.0.iter().flat_map(|limited| &limited.scopes).map(Scope::selected);
        scopes.filter(|scope| evaluator.matches(std::slice::from_ref(scope), object)).collect()
    }
}

impl Limited {
    fn parse(index: usize, entry: &Value) -> Result<Self, String> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        if text("resource").is_empty() {
            return Err(format!("limitedResources[{index}].resource: Required value"));
        }
        let list = |name: &str| entry[name].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        Ok(Self {
            resource: GroupResource::new(text("apiGroup"), text("resource")),
            contains: list("matchContains").filter_map(Value::as_str).map(str::to_owned).collect(),
            scopes: list("matchScopes").filter_map(Value::as_object).cloned().collect(),
        })
    }
}

/// Refuses a use that no quota covers: of names that no quota counts, or in scopes that no quota has.
pub(super) fn uncovered(
    names: &BTreeSet<String>,
    counted: &BTreeSet<&str>,
    (limited, covered): (&[Scope<'_>], &[Scope<'_>]),
) -> Result<(), Refusal> {
    let missing: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !counted.contains(name)).collect();
    if !missing.is_empty() {
        return Err(Refusal::Forbidden(format!("insufficient quota to consume: {}", missing.join(","))));
    }
    let is_open = |scope: &&Scope<'_>| covered.iter().all(|other| other.name != scope.name);
    let open: Vec<String> = limited.iter().filter(is_open).map(Scope::printed).collect();
    match open.is_empty() {
        true => Ok(()),
        false => {
            let why = format!("insufficient quota to match these scopes: [{}]", open.join(" "));
            Err(Refusal::Plain(why))
        }
    }
}

/// The object's resource, as the configuration names it.
pub(super) fn resource_of(evaluator: Evaluator<'_>) -> GroupResource {
    match evaluator {
        Evaluator::Pods(_) => GroupResource::new("", "pods"),
        Evaluator::Services => GroupResource::new("", "services"),
        Evaluator::Claims => GroupResource::new("", "persistentvolumeclaims"),
        Evaluator::ResourceClaims(_) => GroupResource::new("resource.k8s.io", "resourceclaims"),
        Evaluator::Objects(definition) => GroupResource::new(definition.group(), &definition.plural),
    }
}

/// The amounts that an object adds, whichever quota counts it; `None` if it adds nothing.
pub(super) fn added(usage: &Amounts, before: Option<&Amounts>) -> Option<Amounts> {
    let mut delta = usage.clone();
    if let Some(before) = before {
        delta.subtract(before);
    }
    delta.retain(|_, amount| exceeds(amount, "0"));
    (!delta.is_empty()).then_some(delta)
}
