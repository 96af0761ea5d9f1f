//! Compared with what upstream's packages say (`tests/upstream/rbac`).

use std::io::Read as _;

use serde_json::Value as Json;

use super::*;
use crate::codec::object::Draft;
use crate::revision::Revision;
use crate::tree::{Map, Value};

/// Places of the resources in a policy's order.
const ROLES_PLACE: usize = 1;
const BINDINGS_PLACE: usize = 3;

pub fn lines(packed: &[u8]) -> Vec<Json> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// An object of upstream's, as the cache has it.
pub fn stored(object: &Json) -> Arc<Object> {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    let json = object.to_string().into();
    Arc::new(Draft::of_json(text("namespace"), text("name"), json).into_object(Revision(1)))
}

fn texts(value: &Json) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Json::as_str);
    texts.map(str::to_owned).collect()
}

/// The user of a request, and its attributes.
pub fn asked<'a>(request: &'a Json, user: &'a mut User) -> Attributes<'a> {
    let text = |name: &str| request[name].as_str().unwrap_or_default();
    *user = User { name: text("User").to_owned(), groups: texts(&request["Groups"]), ..User::default() };
    Attributes {
        group: text("Group"),
        resource: text("Resource"),
        subresource: text("Subresource"),
        namespace: text("Namespace"),
        name: text("Name"),
        ..Attributes::of_path(user, text("Verb"), text("Path"))
    }
}

#[test]
fn auth_63_the_policy_of_the_start_is_upstreams() {
    let mut own: Vec<(String, Value)> = bootstrap::objects().into_iter().map(named).collect();
    own.sort_by(|one, other| one.0.cmp(&other.0));
    let added: Vec<String> =
        own.extract_if(.., |(name, _)| name.contains("/rowplane:")).map(|(name, _)| name).collect();
    assert_eq!(added, ["ClusterRole /rowplane:history-viewer"]);
    let mut theirs: Vec<(String, Value)> =
        lines(include_bytes!("../../../../../testdata/rbac/bootstrap.jsonl.gz"))
            .iter()
            .map(|line| {
                let mut object: Map = serde_json::from_value(line["Object"].clone()).expect("an object");
                object.insert("kind", line["Kind"].as_str().expect("a kind").into());
                named(object)
            })
            .collect();
    theirs.sort_by(|one, other| one.0.cmp(&other.0));
    let names = |all: &[(String, Value)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&own), names(&theirs));
    for ((name, own), (_, theirs)) in own.iter().zip(&theirs) {
        assert_eq!(own, theirs, "{name}");
    }
}

/// An object under its kind, namespace and name, without what every object of its kind has.
fn named(mut object: Map) -> (String, Value) {
    let text = |path: &[&str]| crate::fields::text(&object, path).to_owned();
    let name =
        format!("{} {}/{}", text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"]));
    object.shift_remove("apiVersion");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|name, _| name.as_str() != "creationTimestamp");
    }
    for list in ["rules", "subjects"] {
        if crate::fields::items(&object, &[list]).is_empty() {
            object.shift_remove(list);
        }
    }
    (name, Value::Object(object))
}

#[test]
fn auth_51_52_53_55_decisions_and_reasons_are_upstreams() {
    let mut counts = [0, 0, 0];
    for line in lines(include_bytes!("../../../../../testdata/rbac/decisions.jsonl.gz")) {
        let mut policy = Policy::default();
        for (list, place) in [
            ("ClusterRoleBindings", BINDINGS_PLACE),
            ("ClusterRoles", ROLES_PLACE),
            ("RoleBindings", BINDINGS_PLACE),
            ("Roles", ROLES_PLACE),
        ] {
            for object in line["Policy"][list].as_array().into_iter().flatten() {
                let object = stored(object);
                policy.take_in(&OnceLock::new(), place, object.key(), Some(&object));
            }
        }
        for request in line["Requests"].as_array().expect("requests") {
            let mut user = User::default();
            let attributes = asked(request, &mut user);
            let reasons = texts(&request["Reasons"]);
            let (allowed, reason) = match policy.decide(&attributes) {
                PolicyDecision::Allowed(binding) => (true, binding.explain(&attributes)),
                PolicyDecision::NotAllowed { missing } => {
                    let missing_roles = policy.missing_roles(attributes.user, attributes.namespace);
                    assert_eq!(missing, missing_roles.is_some(), "{request}");
                    counts[2] += usize::from(missing);
                    (false, missing_roles.map(|text| format!("RBAC: {text}")).unwrap_or_default())
                }
            };
            assert_eq!(request["Allowed"], allowed, "{request} {}", line["Policy"]);
            assert!(reasons.contains(&reason), "{reason} is none of {reasons:?}");
            counts[usize::from(allowed)] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
}

/// The index after changes is the index of what is left.
#[test]
fn an_index_forgets_what_goes() {
    let role = |name: &str, verb: &str| {
        stored(&serde_json::json!({"metadata": {"name": name}, "rules": [
            {"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]}))
    };
    let binding = |name: &str, role: &str, subjects: &[&str]| {
        let subjects: Vec<Json> =
            subjects.iter().map(|name| serde_json::json!({"kind": "User", "name": name})).collect();
        stored(&serde_json::json!({"metadata": {"name": name, "namespace": "n"}, "subjects": subjects,
            "roleRef": {"kind": "ClusterRole", "name": role}}))
    };
    let mut policy = Policy::default();
    let may = |policy: &Policy, name: &str, verb: &str| {
        let user = User { name: name.to_owned(), ..User::default() };
        let attributes =
            Attributes { resource: "pods", namespace: "n", ..Attributes::of_path(&user, verb, "") };
        matches!(policy.decide(&attributes), PolicyDecision::Allowed(_))
    };
    let reader = role("reader", "get");
    policy.take_in(&OnceLock::new(), ROLES_PLACE, reader.key(), Some(&reader));
    for (name, role, subjects) in
        [("a", "reader", &["u", "v"][..]), ("b", "reader", &["u"]), ("c", "later", &["u", "u"])]
    {
        let binding = binding(name, role, subjects);
        policy.take_in(&OnceLock::new(), BINDINGS_PLACE, binding.key(), Some(&binding));
    }
    assert!(may(&policy, "u", "get") && may(&policy, "v", "get") && !may(&policy, "u", "list"));
    let later = role("later", "list");
    policy.take_in(&OnceLock::new(), ROLES_PLACE, later.key(), Some(&later));
    assert!(may(&policy, "u", "list") && !may(&policy, "v", "list"));
    policy.take_in(&OnceLock::new(), BINDINGS_PLACE, "n\0a", None);
    assert!(may(&policy, "u", "get") && !may(&policy, "v", "get"));
    policy.take_in(&OnceLock::new(), ROLES_PLACE, reader.key(), None);
    assert!(!may(&policy, "u", "get") && may(&policy, "u", "list"));
    for key in ["n\0b", "n\0c"] {
        policy.take_in(&OnceLock::new(), BINDINGS_PLACE, key, None);
    }
    policy.take_in(&OnceLock::new(), ROLES_PLACE, later.key(), None);
    assert!(policy.is_empty(), "{policy:?}");
}

/// A decision that looked at the role for each binding would make 10^8 comparisons, and a list of each binding's rules would
/// take some ten GB.
#[test]
fn a_large_role_is_looked_at_once_however_often_a_user_is_bound_to_it() {
    let mut policy = Policy::default();
    let rule = |n: u32| serde_json::json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": [format!("p{n}")]});
    let rules: Vec<Json> = (0..50_000).map(rule).collect();
    for name in ["large", "other"] {
        let role = serde_json::json!({"metadata": {"name": name, "namespace": "t"}, "rules": rules});
        let role = stored(&role);
        policy.take_in(&OnceLock::new(), ROLES_PLACE, role.key(), Some(&role));
    }
    for number in 0..2000 {
        let role = ["large", "other"][number % 2];
        let binding = serde_json::json!({
            "metadata": {"name": format!("b{number}"), "namespace": "t"},
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "jane"}],
        });
        let binding = stored(&binding);
        policy.take_in(&OnceLock::new(), BINDINGS_PLACE, binding.key(), Some(&binding));
    }
    let user = User { name: "jane".to_owned(), ..User::default() };
    let ask =
        |name| Attributes { resource: "pods", namespace: "t", name, ..Attributes::of_path(&user, "get", "") };
    for _ in 0..2 {
        assert!(matches!(policy.decide(&ask("none")), PolicyDecision::NotAllowed { missing: false }));
        assert!(matches!(policy.decide(&ask("p49999")), PolicyDecision::Allowed(_)));
    }
    assert_eq!(policy.held(&user, "t").0.iter().map(|role| role.rules().len()).sum::<usize>(), 100_000);
    let (told, is_whole, error) = policy.rules(&user, "t");
    assert!(!is_whole && told.len() > 10_000 && told.len() < 50_000, "{}", told.len());
    assert!(error.is_some_and(|error| error.contains("there are more rules")));
}
