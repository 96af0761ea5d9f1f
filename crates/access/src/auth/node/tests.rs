//! Compared with what upstream's node authorizer says (`tests/upstream/rbac`).

use serde_json::Value as Json;

use super::*;
use crate::auth::authorizer::{Operator, Requirement, Selectors};
use crate::auth::rbac::tests::{asked, lines};
use crate::codec::object::Draft;
use crate::revision::Revision;
use crate::runtime::Runtime;
use crate::storage::{Change, Expect, HighWaterMark, Key, Mutation, memory};

/// An authorizer over a store with these objects.
async fn authorizer(objects: &[(Gvr, Json)]) -> NodeAuthorizer {
    let backend = memory::open();
    let resources = [PODS, VOLUMES, ATTACHMENTS, SLICES, CERTIFICATES];
    let names = resources.each_ref().map(Gvr::group_resource);
    let ids = backend.resource_ids(&names).await.expect("ids");
    let id = |wanted: &Gvr| resources.iter().position(|one| one == wanted).map(|at| ids[at]);
    let put = |(resource, object): &(Gvr, Json)| {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let draft = Draft::of_json(namespace, name, object.to_string().into());
        let change = Change::Put { uid: "".into(), stored_version: "v1".into(), value: draft.into() };
        Mutation::new(Key::new(id(resource).expect("an id"), namespace, name), Expect::Absent, change)
    };
    let mutations: Vec<Mutation> = objects.iter().map(put).collect();
    backend.commit(&mutations, Revision(0)).await.expect("committed");
    let runtime = Runtime::default();
    let mark = std::sync::Arc::new(HighWaterMark::default());
    let (cache, _sink) =
        Cache::start(backend.clone(), Draft::parse, &ids, mark, &runtime, &Default::default())
            .await
            .expect("load");
    NodeAuthorizer::new(cache, id)
}

/// `a=b,c!=d`.
#[derive(Debug)]
struct Fields(String);

impl Selectors for Fields {
    fn fields(&self) -> Vec<Requirement> {
        let terms = self.0.split(',').filter(|term| !term.is_empty());
        let requirement = |term: &str| {
            let (key, operator, value) = match term.split_once("!=") {
                Some((key, value)) => (key, Operator::NotIn, value),
                None => term.split_once('=').map(|(key, value)| (key, Operator::In, value)).expect("a term"),
            };
            Requirement { key: key.to_owned(), operator, values: vec![value.to_owned()] }
        };
        terms.map(requirement).collect()
    }

    fn labels(&self) -> Vec<Requirement> {
        Vec::new()
    }
}

fn objects(drawn: &Json) -> Vec<(Gvr, Json)> {
    let list = |name: &str, resource: Gvr| {
        let items = drawn[name].as_array().cloned().unwrap_or_default();
        items.into_iter().map(move |item| (resource.clone(), item)).collect::<Vec<_>>()
    };
    let on_node = |name: &str, resource: Gvr| {
        let nodes = drawn[name].as_object().cloned().unwrap_or_default();
        let object = move |(name, node): (String, Json)| {
            (resource.clone(), serde_json::json!({"metadata": {"name": name}, "spec": {"nodeName": node}}))
        };
        nodes.into_iter().map(object).collect::<Vec<_>>()
    };
    let mut all = list("Pods", PODS);
    all.extend(list("Volumes", VOLUMES));
    all.extend(on_node("Attachments", ATTACHMENTS));
    all.extend(on_node("Slices", SLICES));
    all
}

#[tokio::test]
async fn auth_66_67_68_decisions_and_reasons_are_upstreams() {
    let mut counts = [0, 0];
    for line in lines(include_bytes!("../../../../../testdata/rbac/nodes.jsonl.gz")) {
        let authorizer = authorizer(&objects(&line["Objects"])).await;
        for request in line["Requests"].as_array().expect("requests") {
            let mut user = User::default();
            let selectors = Fields(request["Fields"].as_str().unwrap_or_default().to_owned());
            let attributes = Attributes { selectors: &selectors, ..asked(request, &mut user) };
            let (allowed, reason) = match authorizer.decide(&attributes).decided().await {
                Decision::Allow(reason) => (true, reason.text(&attributes)),
                Decision::NoOpinion(reason) => (false, reason.text(&attributes)),
                Decision::Deny(_) => panic!("it never denies"),
            };
            let want = (request["Allowed"] == true, request["Reasons"][0].as_str().unwrap_or_default());
            assert_eq!((allowed, reason.as_str()), want, "{request} {}", line["Objects"]);
            counts[usize::from(allowed)] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
}

/// A user with a part of a node's credential is named in the log once, at his first request.
#[tokio::test]
async fn what_looks_like_a_node_and_is_none_is_named() {
    let authorizer = authorizer(&[]).await;
    let users =
        [("system:node:n", NODES), ("kubelet-1", NODES), ("system:node:m", "devs"), ("alice", "devs")];
    for _ in 0..2 {
        for (name, group) in users {
            let user = User { name: name.to_owned(), groups: vec![group.to_owned()], ..User::default() };
            let attributes = Attributes::of_path(&user, "get", "/version");
            let _ = authorizer.foresee(&attributes);
            let _ = authorizer.decide(&attributes).decided().await;
        }
    }
    let mut named: Vec<_> = authorizer.shared.named.lock().expect("a lock").iter().cloned().collect();
    named.sort_unstable();
    assert_eq!(named, ["kubelet-1", "system:node:m"]);
}
