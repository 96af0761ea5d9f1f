//! Effects of writes: rows that are committed with a quota, a policy or a definition, in whichever way it is written.

use rowplane::api::Target;
use rowplane::schema::names::Gvr;
use rowplane::storage::{Expect, Key, StaleRow};
use serde_json::{Value, json};

use crate::support::server::{Setup, TestServer, UNREAD};

const QUOTAS: &str = "/api/v1/namespaces/t/resourcequotas";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

on_both_databases! {
    each_verb_changes_the_rows_that_stand_for_a_set,
    a_deletion_of_an_unreadable_quota_changes_its_row,
    a_rewrite_restores_the_names_of_a_definition,
    a_registration_that_ends_gives_back_what_its_lease_was_charged,
}

fn quota(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"hard": {"secrets": "5"}}})
}

fn policy(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
        ]},
        "validations": [{"expression": "true"}],
    }})
}

/// The revisions of the rows that stand for the quotas of `t`, and for what configures admission.
async fn rows(server: &TestServer) -> [u64; 2] {
    let (state, hidden) = (server.api.cache.fresh().await.expect("a state"), &server.api.hidden);
    let sets = hidden.quota_sets.get(&state, "", "t");
    let configuration = hidden.admission.get(&state, "", "all");
    [sets, configuration].map(|row| row.map_or(0, |row| row.revision().0))
}

/// Checks which of the rows have changed since, and returns them.
#[track_caller]
fn changed(before: [u64; 2], now: [u64; 2], which: [bool; 2]) -> [u64; 2] {
    assert_eq!([now[0] > before[0], now[1] > before[1]], which, "{before:?} {now:?}");
    now
}

async fn each_verb_changes_the_rows_that_stand_for_a_set(setup: Setup) {
    let server = setup.start().await;
    let mut seen = rows(&server).await;
    server.post(QUOTAS, &quota("q")).await.expect(201);
    seen = changed(seen, rows(&server).await, [true, false]);
    server.post(POLICIES, &policy("p")).await.expect(201);
    seen = changed(seen, rows(&server).await, [false, true]);
    server.patch(format!("{QUOTAS}/q"), &json!({"spec": {"hard": {"secrets": "6"}}})).await.ok();
    seen = changed(seen, rows(&server).await, [true, false]);
    server.patch(format!("{POLICIES}/p"), &json!({"spec": {"failurePolicy": "Ignore"}})).await.ok();
    seen = changed(seen, rows(&server).await, [false, true]);
    // A status configures nothing, and a label limits nothing.
    server.patch(format!("{POLICIES}/p/status"), &json!({"status": {"observedGeneration": 1}})).await.ok();
    server.patch(format!("{QUOTAS}/q"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    seen = changed(seen, rows(&server).await, [false, false]);
    server.delete(format!("{QUOTAS}/q?dryRun=All")).await.ok();
    server.delete(format!("{POLICIES}/p?dryRun=All")).await.ok();
    seen = changed(seen, rows(&server).await, [false, false]);
    server.delete(format!("{QUOTAS}/q")).await.ok();
    seen = changed(seen, rows(&server).await, [true, false]);
    server.delete(format!("{POLICIES}/p")).await.ok();
    changed(seen, rows(&server).await, [false, true]);
    server.stop().await;
}

async fn a_deletion_of_an_unreadable_quota_changes_its_row(setup: Setup) {
    let server = setup.start().await;
    server.post(QUOTAS, &quota("bad")).await.expect(201);
    server.stop().await;
    let garbage = if setup.is_sqlite() { "x'7b7b'" } else { "'\\x7b7b'" };
    setup.database.execute(&format!("UPDATE objects SET value = {garbage} WHERE name = 'bad'")).await;
    let server = setup.start().await;
    let seen = rows(&server).await;
    server.delete(format!("{QUOTAS}/bad?{UNREAD}")).await.ok();
    changed(seen, rows(&server).await, [true, false]);
    server.stop().await;
}

async fn a_rewrite_restores_the_names_of_a_definition(setup: Setup) {
    let server = setup.start().await;
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {
        "group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }});
    server.post(DEFINITIONS, &definition).await.expect(201);
    let (api, names) = (&server.api, server.api.hidden.definition_names);
    let state = api.cache.fresh().await.expect("a state");
    let row = names.get(&state, "ex.io", "widgets").expect("the name is kept");
    let lost = names.delete("ex.io", "widgets", Expect::At(row.revision()));
    api.store.write(lost).await.expect("written");

    let resource = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let resource = api.resources.get(&resource).expect("served");
    let stored = state.get(resource.id, "", "widgets.ex.io").expect("stored");
    let target = Target { resource, namespace: "", name: "widgets.ex.io" };
    let stale = StaleRow { key: Key::new(target.resource.id, "", target.name), revision: stored.revision() };
    api.rewrite(resource, &stale).await.expect("rewritten");
    let state = api.cache.fresh().await.expect("a state");
    assert!(names.get(&state, "ex.io", "widgets").is_some());
    server.stop().await;
}

/// The lease goes in the transaction that takes the server out of the registry.
async fn a_registration_that_ends_gives_back_what_its_lease_was_charged(setup: Setup) {
    let server = setup.start().await;
    let hard =
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/leases.coordination.k8s.io": "2"}}});
    server.post(QUOTAS, &hard).await.expect(201);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/t/leases";
    for name in ["stays", "goes"] {
        server.post(leases, &json!({"metadata": {"name": name}, "spec": {}})).await.expect(201);
    }
    let used = async || {
        let quota = server.get(format!("{QUOTAS}/q")).await.ok();
        quota["status"]["used"]["count/leases.coordination.k8s.io"].clone()
    };
    assert_eq!(used().await, "2");
    let resource = server.api.resources.get(&Gvr::fixed("coordination.k8s.io/v1", "leases")).expect("leases");
    let lease = Target { resource, namespace: "t", name: "goes" };
    server.api.withdraw(Some(lease), |_, _, _| false).await.expect("withdrawn");
    assert_eq!(server.get(format!("{leases}/goes")).await.status, 404);
    assert_eq!(used().await, "1");
    server.stop().await;
}
