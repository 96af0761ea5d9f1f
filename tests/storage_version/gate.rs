//! What a server accepts before it has registered, and after it has lost its registration.

use std::sync::atomic::Ordering::SeqCst;

use rowplane::server::application::build_on;
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol};
use crate::support::faulty::Faulty;
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, config_map};
use crate::{LEASES, NEVER, VERSIONS, id, identified, on_host};

on_both_databases! {
    storage_version_21_22_23_25_writes_wait_for_the_registration,
    storage_version_27_what_hinders_the_registration_is_told,
    a_database_that_contradicts_itself_is_not_asked_for_ever,
    a_server_that_has_lost_its_registration_writes_nothing_until_it_has_it_again,
}

/// Inserts a row that cannot be decoded, with the next revision.
async fn put_garbage(setup: &Setup, group: &str, plural: &str, namespace: &str, name: &str) {
    let (hex, no) = if setup.is_sqlite() { ("x'00'", "0") } else { ("'\\x00'", "false") };
    for sql in [
        "UPDATE clock SET revision = revision + 1".to_owned(),
        format!(
            "INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
             SELECT c.revision, r.id, '{namespace}', '{name}', {no}, 'u', 'v1', {hex} FROM clock c, resources r \
             WHERE r.api_group = '{group}' AND r.plural = '{plural}'"
        ),
        format!(
            "INSERT INTO changes (resource_version, resource, namespace, name, event, previous_version) \
             SELECT c.revision, r.id, '{namespace}', '{name}', 0, NULL FROM clock c, resources r \
             WHERE r.api_group = '{group}' AND r.plural = '{plural}'"
        ),
    ] {
        setup.database.execute(&sql).await;
    }
}

/// A database that was used by a server that registers nothing.
async fn used(setup: Setup) -> Setup {
    let mut setup = identified(setup, NEVER, NEVER);
    let server = setup.start().await;
    server.create("old", json!({})).await;
    server.delete(format!("{LEASES}/{}", id("rowplane-0"))).await.ok();
    server.stop().await;
    on_host(&mut setup, "rowplane-0");
    setup
}

fn refusal(resource: &str, error: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!(
            "wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
        ),
        "reason": "ServiceUnavailable", "code": 503
    })
}

/// A lease that cannot be read cannot be taken, and without it nothing is registered.
async fn storage_version_21_22_23_25_writes_wait_for_the_registration(setup: Setup) {
    let setup = used(setup).await;
    let lease = id("rowplane-0");
    put_garbage(&setup, "coordination.k8s.io", "leases", "kube-system", &lease).await;
    let server = setup.start_empty().await;

    let hook = "[-]poststarthook/built-in-resources-storage-version-updater failed: reason withheld";
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 500);
    assert!(ready.text().contains(hook));
    assert_eq!(server.get("/livez/ping").await.status, 200);

    let refused = server.post(CONFIGMAPS, &config_map("new", json!({}))).await;
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(refused.expect(503), refusal("configmaps", "<nil>"));
    let old = format!("{CONFIGMAPS}/old");
    let deployments = "/apis/apps/v1/namespaces/t/deployments";
    for (answer, resource) in [
        (server.patch(&old, &json!({"data": {}})).await, "configmaps"),
        (server.delete(&old).await, "configmaps"),
        (server.delete(CONFIGMAPS).await, "configmaps"),
        (server.patch("/api/v1/namespaces/t/pods/a/status", &json!({})).await, "pods"),
        (server.post(deployments, &json!({"metadata": {"name": "a"}})).await, "deployments.apps"),
        (server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await, "namespaces"),
        (
            server.post(LEASES.replace("kube-system", "t"), &json!({"metadata": {"name": "a"}})).await,
            "leases.coordination.k8s.io",
        ),
        (
            server.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a").await,
            "customresourcedefinitions.apiextensions.k8s.io",
        ),
        (
            server.delete("/apis/apiregistration.k8s.io/v1/apiservices/a").await,
            "apiservices.apiregistration.k8s.io",
        ),
    ] {
        assert_eq!(answer.expect(503), refusal(resource, "<nil>"));
    }
    // The refusal of authorization comes first.
    let alice = server.token("alice-token");
    assert_eq!(alice.post(CONFIGMAPS, &config_map("new", json!({}))).await.status, 403);

    // Reads, resources that are not stored, and what servers need to start.
    server.get(&old).await.ok();
    server.get(CONFIGMAPS).await.ok();
    server.watch(format!("{ALL_CONFIGMAPS}?watch=1&resourceVersion=0")).await.expect("ADDED").await;
    let review = "/apis/authentication.k8s.io/v1/tokenreviews";
    server.post(review, &json!({"spec": {"token": "alice-token"}})).await.expect(201);
    server.post(VERSIONS, &json!({"metadata": {"name": "example.com.things"}})).await.expect(201);
    server.delete(format!("{VERSIONS}/example.com.things")).await.ok();
    server.post(LEASES, &json!({"metadata": {"name": "mine"}})).await.expect(201);

    // Now the lease can be taken, and the rest follows.
    server
        .delete(format!("{LEASES}/{lease}?ignoreStoreReadErrorWithClusterBreakingPotential=true"))
        .await
        .ok();
    server.watch(format!("{VERSIONS}?watch=1&resourceVersion=0")).await.expect("ADDED").await;
    registered(&server).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    server.stop().await;
}

/// Writes until a write passes: the objects of a registration are visible a moment before its gate opens.
async fn registered(client: &Client) {
    while client.post(CONFIGMAPS, &config_map("new", json!({}))).await.status == 503 {}
    client.get(format!("{CONFIGMAPS}/new")).await.ok();
}

/// An index that a power cut has spoilt may find other rows than a list shows. Each attempt to register ends all the same, so
/// that the server is there, and says what is wrong.
async fn a_database_that_contradicts_itself_is_not_asked_for_ever(setup: Setup) {
    let setup = used(setup).await;
    let starting = setup.builder().start_with(async move |environment| {
        let store = Faulty::new(
            environment.commons.open(&environment.config, environment.runtime.clock.clone()).await?,
        );
        store.refuses_registrations.store(true, SeqCst);
        build_on(store, environment).await
    });
    let server = starting.await.unwrap_or_else(|error| panic!("start: {}", error.one_line()));
    let admin = Client::of_certificate(&setup.kubeconfig(), Protocol::Any);
    let message = async || {
        let refused = admin.post(CONFIGMAPS, &config_map("new", json!({}))).await.expect(503);
        refused["message"].as_str().expect("a message").to_owned()
    };
    let mut told = message().await;
    while told.ends_with("<nil>") {
        told = message().await;
    }
    assert!(told.contains("what the database lists and what it finds differ"), "{told}");
    server.stop().await;
}

async fn storage_version_27_what_hinders_the_registration_is_told(setup: Setup) {
    let setup = used(setup).await;
    let resource = ("internal.apiserver.k8s.io", "storageversions");
    put_garbage(&setup, resource.0, resource.1, "", "core.configmaps").await;
    let server = setup.start_empty().await;
    let told = async || {
        let refused = server.post(CONFIGMAPS, &config_map("new", json!({}))).await.expect(503);
        let message = refused["message"].as_str().expect("a message").to_owned();
        let start =
            "wait for storage version registration to complete for resource: configmaps, last seen error: ";
        message.strip_prefix(start).expect(&message).to_owned()
    };
    // The first two failures are not reported.
    let mut error = told().await;
    while error == "<nil>" {
        error = told().await;
    }
    assert!(error.contains("\"core.configmaps\"") && error.contains("cannot be decoded"), "{error}");
    server
        .delete(format!("{VERSIONS}/core.configmaps?ignoreStoreReadErrorWithClusterBreakingPotential=true"))
        .await
        .ok();
    registered(&server).await;
    server.stop().await;
}

async fn a_server_that_has_lost_its_registration_writes_nothing_until_it_has_it_again(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start().await;
    let mut first_refusal = None;
    setup.database.execute("DELETE FROM servers").await;
    let revision = server.revision().await;
    let mut left = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={revision}")).await;
    loop {
        let answer = server.post(CONFIGMAPS, &config_map("new", json!({}))).await;
        if answer.status == 201 {
            break;
        }
        let status = answer.expect(503);
        assert_eq!(status["message"], "this server's storage versions are not registered");
        first_refusal.get_or_insert(status);
    }
    assert!(first_refusal.is_some(), "the write after the loss was refused");
    left.expect_named("ADDED", "new").await;
    assert_eq!(setup.database.number("SELECT COUNT(*) FROM servers").await, 1);
    server.stop().await;
}
