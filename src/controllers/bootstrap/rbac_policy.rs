//! The roles and bindings that exist from the start are brought up to date at each start, as upstream's hook
//! `rbac/bootstrap-roles` does (`component-helpers/auth/rbac/reconciliation`): what is missing is added, what was added
//! by others stays. They are compared with the cache, and written in one transaction.

use crate::api::error::Error;
use crate::api::write::together::{InsteadOf, Wanted};
use crate::api::{Api, ObjectMap, Target, fields};
use crate::auth::rbac::bootstrap::{self, AUTOUPDATE};
use crate::auth::rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PolicyRule, ROLE_BINDINGS, ROLES};
use crate::cache::State;
use crate::tree::Value;

/// How often others may be faster before the server gives up.
const ATTEMPTS: usize = 100;
/// A binding that earlier releases of Kubernetes had as a part of [`DISCOVERY`].
const PUBLIC_INFO_VIEWER: &str = "system:public-info-viewer";
const DISCOVERY: &str = "system:discovery";

pub async fn reconcile(api: &Api) -> Result<(), Error> {
    let expected = bootstrap::objects();
    for _ in 0..ATTEMPTS {
        let state = api.cache.fresh().await?;
        let wanted: Vec<Wanted<'_>> =
            expected.iter().filter_map(|object| wanted(api, &state, object)).collect();
        let count = wanted.len();
        if api.write_all(wanted).await? {
            if count > 0 {
                tracing::info!(objects = count, "brought the roles and bindings of the system up to date");
            }
            return Ok(());
        }
    }
    Err(Error::Internal("the roles and bindings of the system keep changing".to_owned()))
}

/// The write that an expected object needs; `None` if it needs none.
fn wanted<'a>(api: &'a Api, state: &State, expected: &'a ObjectMap) -> Option<Wanted<'a>> {
    let (resource, is_role) = match fields::text(expected, &["kind"]) {
        "ClusterRole" => (CLUSTER_ROLES, true),
        "Role" => (ROLES, true),
        "ClusterRoleBinding" => (CLUSTER_ROLE_BINDINGS, false),
        _ => (ROLE_BINDINGS, false),
    };
    let text = |name| fields::text(expected, &["metadata", name]);
    let target =
        Target { resource: api.resources.get(&resource)?, namespace: text("namespace"), name: text("name") };
    let Some(stored) = state.get(target.resource.id, target.namespace, target.name) else {
        let older = split_from(state, target);
        let object = older.map_or_else(|| expected.clone(), |older| split(expected, &older));
        return Some(Wanted { target, object, instead_of: InsteadOf::Nothing });
    };
    let existing = target.resource.decode_closed(&stored).ok()?;
    if annotation(&existing, AUTOUPDATE) == "false" {
        return None;
    }
    if !is_role && fields::object(&existing, "roleRef") != fields::object(expected, "roleRef") {
        return Some(Wanted { target, object: expected.clone(), instead_of: InsteadOf::Another(stored) });
    }
    let mut object = existing.clone();
    add_metadata(&mut object, expected);
    match is_role {
        true => add_rules(&mut object, expected),
        false => add_subjects(&mut object, expected),
    }
    (object != existing).then_some(Wanted { target, object, instead_of: InsteadOf::Older(stored) })
}

/// The binding that a missing one was a part of in earlier releases of Kubernetes (`primeSplitClusterRoleBindings`).
fn split_from(state: &State, target: Target<'_>) -> Option<ObjectMap> {
    let is_split =
        target.name == PUBLIC_INFO_VIEWER && target.resource.definition.gvr() == CLUSTER_ROLE_BINDINGS;
    let older = state.get(target.resource.id, "", DISCOVERY).filter(|_| is_split)?;
    target.resource.decode_closed(&older).ok()
}

/// A binding with the subjects, labels and annotations of the one that it was a part of: who has taken the right to discovery
/// from somebody has meant both.
fn split(expected: &ObjectMap, older: &ObjectMap) -> ObjectMap {
    let mut object = expected.clone();
    object.shift_remove("subjects");
    if let Some(subjects) = older.get("subjects") {
        object.insert("subjects", subjects.clone());
    }
    let metadata = fields::object_mut(&mut object, "metadata");
    for map in ["labels", "annotations"] {
        metadata.shift_remove(map);
        if let Some(own) = fields::at(older, &["metadata", map]) {
            metadata.insert(map, own.clone());
        }
    }
    if annotation(&object, AUTOUPDATE) != "false" {
        add_metadata(&mut object, expected);
        add_subjects(&mut object, expected);
    }
    object
}

fn annotation<'a>(object: &'a ObjectMap, name: &str) -> &'a str {
    fields::text(object, &["metadata", "annotations", name])
}

/// Adds missing labels and annotations; those that are there keep their values.
fn add_metadata(object: &mut ObjectMap, expected: &ObjectMap) {
    for map in ["labels", "annotations"] {
        let wanted = fields::at(expected, &["metadata", map]).and_then(Value::as_object);
        let own = fields::object_mut(fields::object_mut(object, "metadata"), map);
        for (name, value) in wanted.into_iter().flatten() {
            if !own.contains_key(name) {
                own.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Adds missing rights, one rule for each, and missing selectors.
fn add_rules(object: &mut ObjectMap, expected: &ObjectMap) {
    let (own, wanted) = (PolicyRule::of_role(object), PolicyRule::of_role(expected));
    let rules = wanted.iter().filter(|rule| !own.iter().any(|own| own.covers(rule)));
    let rights = rules.flat_map(PolicyRule::single_rights);
    let missing = rights.filter(|right| !own.iter().any(|own| own.covers(right)));
    let missing = missing.map(|right| right.to_value()).collect();
    append(object, "rules", missing);
    let selectors =
        |role: &ObjectMap| fields::items(role, &["aggregationRule", "clusterRoleSelectors"]).to_vec();
    match fields::object(expected, "aggregationRule") {
        None => _ = object.shift_remove("aggregationRule"),
        Some(_) => {
            let own = selectors(object);
            let missing = selectors(expected).into_iter().filter(|one| !own.contains(one)).collect();
            append(fields::object_mut(object, "aggregationRule"), "clusterRoleSelectors", missing);
        }
    }
}

fn add_subjects(object: &mut ObjectMap, expected: &ObjectMap) {
    let own = fields::items(object, &["subjects"]);
    let missing = |one: &&Value| !own.iter().any(|own| is_same_subject(own, one));
    let missing = fields::items(expected, &["subjects"]).iter().filter(missing).cloned().collect();
    append(object, "subjects", missing);
}

fn is_same_subject(one: &Value, other: &Value) -> bool {
    ["kind", "apiGroup", "name", "namespace"].iter().all(|name| {
        let text = |subject: &Value| subject[*name].as_str().unwrap_or_default().to_owned();
        text(one) == text(other)
    })
}

/// Appends items to a list that may be missing.
fn append(object: &mut ObjectMap, name: &str, items: Vec<Value>) {
    if items.is_empty() {
        return;
    }
    let mut all = fields::items(object, &[name]).to_vec();
    all.extend(items);
    object.insert(name, Value::Array(all));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    fn map(value: Value) -> ObjectMap {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn auth_64_rights_are_added_and_others_stay() {
        let expected =
            map(json!({"rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]}));
        let mut role = map(json!({"rules": [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["*"]},
            {"verbs": ["delete"], "apiGroups": [""], "resources": ["nodes"]}], "aggregationRule": {}}));
        add_rules(&mut role, &expected);
        assert_eq!(
            Value::Object(role.clone()),
            json!({"rules": [
                {"verbs": ["get"], "apiGroups": [""], "resources": ["*"]},
                {"verbs": ["delete"], "apiGroups": [""], "resources": ["nodes"]},
                {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]})
        );
        let before = role.clone();
        add_rules(&mut role, &expected);
        assert_eq!(role, before);
    }

    #[test]
    fn a_binding_that_is_split_off_has_the_subjects_of_the_older_one() {
        let expected = map(json!({"kind": "ClusterRoleBinding", "metadata": {"name": PUBLIC_INFO_VIEWER,
            "annotations": {AUTOUPDATE: "true"}, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
            "subjects": [{"kind": "Group", "name": "all"}]}));
        let older = |autoupdate: &str| {
            map(json!({"metadata": {"name": DISCOVERY, "annotations": {AUTOUPDATE: autoupdate}},
                "subjects": [{"kind": "User", "name": "u"}]}))
        };
        let kept = split(&expected, &older("false"));
        assert_eq!(kept["subjects"], json!([{"kind": "User", "name": "u"}]));
        assert_eq!(
            kept["metadata"],
            json!({"name": PUBLIC_INFO_VIEWER, "annotations": {AUTOUPDATE: "false"}})
        );
        let grown = split(&expected, &older("true"));
        assert_eq!(
            grown["subjects"],
            json!([{"kind": "User", "name": "u"}, {"kind": "Group", "name": "all"}])
        );
        assert_eq!(grown["metadata"]["labels"], json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    }

    #[test]
    fn auth_64_labels_subjects_and_selectors_are_added_and_never_changed() {
        let expected = map(json!({"metadata": {"labels": {"a": "1", "b": "2"}},
            "subjects": [{"kind": "User", "name": "u"}], "aggregationRule": {"clusterRoleSelectors": [{"x": 1}]}}));
        let mut object = map(json!({"metadata": {"labels": {"b": "own"}},
            "subjects": [{"kind": "User", "name": "v"}], "aggregationRule": {"clusterRoleSelectors": [{"y": 1}]}}));
        add_metadata(&mut object, &expected);
        add_rules(&mut object, &expected);
        add_subjects(&mut object, &expected);
        assert_eq!(object["metadata"]["labels"], json!({"b": "own", "a": "1"}));
        assert_eq!(object["subjects"], json!([{"kind": "User", "name": "v"}, {"kind": "User", "name": "u"}]));
        assert_eq!(object["aggregationRule"]["clusterRoleSelectors"], json!([{"y": 1}, {"x": 1}]));
    }
}
