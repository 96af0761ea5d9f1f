//! The objects that parametrize a policy.

use std::sync::Arc;

use super::policy::{Binding, ParamRef, Which};
use crate::admission::dynamic::matching::Facts;
use crate::cache::Range;
use crate::codec::object::Object;
use crate::resource::Resource;
use crate::schema::names::Gvk;
use crate::tree::Value;
use crate::{Cluster, ObjectMap};

/// The params that a policy is evaluated with, once for each; `None` stands for an evaluation without a param. The error
/// is one of the binding's configuration.
pub async fn of(
    cluster: &Cluster,
    facts: &Facts<'_>,
    kind: Option<&Gvk>,
    binding: &Binding,
) -> Result<Vec<Option<ObjectMap>>, String> {
    let Some(kind) = kind else { return Ok(vec![None]) };
    let Some(wanted) = &binding.params else { return Ok(vec![None]) };
    let resource = resource(cluster, kind)?;
    let namespace = namespace(&resource, wanted, facts)?;
    let found = found(cluster, &resource, wanted, namespace)?;
    if found.is_empty() && wanted.denies_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let found = cluster.converter.objects(&resource, found).await.map_err(|error| error.to_string())?;
    let decoded =
        found.iter().map(|object| resource.decode(object).map(|param| Some(seen(&resource, param))));
    decoded.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Groups whose objects upstream's admission reads like those of custom resources.
const UNTYPED: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// A param as expressions see it. Those of built-in kinds come from upstream's typed informers, which leave out what kind
/// an object is and who manages it.
fn seen(resource: &Resource, mut param: ObjectMap) -> ObjectMap {
    let definition = &resource.definition;
    if definition.is_custom() || UNTYPED.contains(&definition.group().as_str()) {
        return param;
    }
    param.shift_remove("apiVersion");
    param.shift_remove("kind");
    if let Some(own) = param.get_mut("metadata").and_then(Value::as_object_mut) {
        own.shift_remove("managedFields");
    }
    param
}

/// The resource of the params, in the version that the policy names; the error is one of the policy's configuration.
pub fn resource(cluster: &Cluster, kind: &Gvk) -> Result<Arc<Resource>, String> {
    let served = cluster.catalog.served();
    let found = served.by_kind(kind).cloned();
    found.ok_or_else(|| format!("failed to find resource referenced by paramKind: '{kind}'"))
}

fn namespace<'a>(resource: &Resource, wanted: &'a ParamRef, facts: &Facts<'a>) -> Result<&'a str, String> {
    match (resource.definition.namespaced(), &*wanted.namespace) {
        (true, "") if facts.namespace.is_empty() => {
            Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .to_owned())
        }
        (true, "") => Ok(facts.namespace),
        (true, namespace) => Ok(namespace),
        (false, "") => Ok(""),
        (false, _) => {
            Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned())
        }
    }
}

/// The stored params, in the order of their names.
fn found(
    cluster: &Cluster,
    resource: &Resource,
    wanted: &ParamRef,
    namespace: &str,
) -> Result<Vec<Arc<Object>>, String> {
    let state = cluster.cache.any();
    Ok(match &wanted.which {
        Which::Name(name) => state.get(resource.id, namespace, name).into_iter().collect(),
        Which::Selected(None) => return Err("the selector of paramRef cannot be read".to_owned()),
        Which::Selected(Some(selector)) => {
            let range = Range::of(resource.definition.namespaced().then_some(namespace));
            let objects = state.objects(resource.id);
            let selected = objects
                .range(&range)
                .filter(|object| object.json().is_err() || selector.matches(|key| object.label(key)));
            selected.cloned().collect()
        }
    })
}
