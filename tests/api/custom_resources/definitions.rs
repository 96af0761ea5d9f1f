//! The kind itself: what writes make of a definition.

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS_DEFINITION, change, condition, version, widgets, with};
use crate::support::client::Answer;
use crate::support::server::{Setup, TestServer, rv};

on_every_store! {
    custom_resources_1_2_what_a_definition_starts_with,
    custom_resources_3_4_the_status_of_a_definition,
    custom_resources_5_6_names_and_versions_are_checked,
    custom_resources_7_a_stored_version_stays,
    custom_resources_8_groups_of_the_community_need_approval,
    custom_resources_27_a_bundle_that_is_none,
}

fn says(response: &Answer, text: &str) {
    let failure = response.failure();
    let message = failure["message"].as_str().unwrap_or_default();
    assert!(response.status == 422 && message.contains(text), "{text}: {message}");
}

async fn refused(server: &TestServer, text: &str, change: impl Fn(&mut Value)) {
    let mut definition = widgets();
    change(&mut definition);
    says(&server.post(DEFINITIONS, &definition).await, text);
}

async fn custom_resources_1_2_what_a_definition_starts_with(setup: Setup) {
    let server = setup.start().await;
    let mut sent = widgets();
    sent["status"] = json!({"storedVersions": ["v9"], "acceptedNames": {"plural": "x", "kind": "X"}});
    let created = with(&server, &sent).await;
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    let names =
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    assert_eq!(created["spec"]["names"], names);
    assert_eq!(created["status"]["acceptedNames"], names);
    assert_eq!(created["spec"]["conversion"], json!({"strategy": "None"}));

    let missing = format!("{DEFINITIONS}/gadgets.ex.io");
    let mut other = created.clone();
    other["metadata"]["name"] = "gadgets.ex.io".into();
    assert_eq!(server.put(&missing, &other).await.status, 404);
    let mut blind = created.clone();
    blind["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    says(&server.put(WIDGETS_DEFINITION, &blind).await, "must be specified for an update");
    let labelled = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["metadata"]["labels"] = json!({"a": "b"});
    });
    assert_eq!(labelled.await.ok()["metadata"]["generation"], 1);
    let changed = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["names"]["shortNames"] = json!(["w"]);
    });
    assert_eq!(changed.await.ok()["metadata"]["generation"], 2);
}

async fn custom_resources_3_4_the_status_of_a_definition(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let status = format!("{WIDGETS_DEFINITION}/status");
    let changed = change(&server, &status, |definition| {
        definition["metadata"]["labels"] = json!({"a": "b"});
        definition["spec"]["names"]["shortNames"] = json!(["w"]);
    });
    let changed = changed.await.ok();
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(changed["metadata"]["generation"], 1);
    assert!(changed["spec"]["names"]["shortNames"].is_null(), "{changed}");
    change(&server, &status, |definition| definition["status"]["storedVersions"] = json!([])).await.ok();
    assert_eq!(server.get(WIDGETS_DEFINITION).await.ok()["status"]["storedVersions"], json!(["v1"]));
    let two =
        change(&server, &status, |definition| definition["status"]["storedVersions"] = json!(["v1", "v0"]));
    assert_eq!(two.await.ok()["status"]["storedVersions"], json!(["v1", "v0"]));
    let refused = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["metadata"]["labels"] = json!({"a": "c"});
    });
    let refused = refused.await;
    says(&refused, "missing from spec.versions; v0 was previously a storage version");
    assert_eq!(refused.failure()["details"]["causes"][0]["field"], "status.storedVersions[1]");
}

async fn custom_resources_5_6_names_and_versions_are_checked(setup: Setup) {
    let server = setup.start().await;
    refused(&server, "must be spec.names.plural+\".\"+spec.group", |definition| {
        definition["metadata"]["name"] = "foos.ex.io".into();
    })
    .await;
    refused(&server, "should be a domain with at least one dot", |definition| {
        definition["metadata"]["name"] = "widgets.ex".into();
        definition["spec"]["group"] = "ex".into();
    })
    .await;
    let one_stored = "must have exactly one version marked as storage version";
    refused(&server, one_stored, |definition| definition["spec"]["versions"][0]["storage"] = false.into())
        .await;
    let push = |definition: &mut Value, more: Value| {
        definition["spec"]["versions"].as_array_mut().expect("versions").push(more);
    };
    refused(&server, one_stored, |definition| push(definition, version("v2", true))).await;
    let unique = "must contain unique version names";
    refused(&server, unique, |definition| push(definition, version("v1", false))).await;
    for name in ["widgets.ex.io", "foos.ex.io"] {
        assert_eq!(server.get(format!("{DEFINITIONS}/{name}")).await.status, 404);
    }
}

async fn custom_resources_7_a_stored_version_stays(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let switched = change(&server, WIDGETS_DEFINITION, |definition| {
        let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
        versions[0]["storage"] = false.into();
        versions.push(version("v2", true));
    });
    assert_eq!(switched.await.ok()["status"]["storedVersions"], json!(["v1", "v2"]));
    let without = async || {
        change(&server, WIDGETS_DEFINITION, |definition| {
            definition["spec"]["versions"].as_array_mut().expect("versions").remove(0);
        })
        .await
    };
    says(&without().await, "v1 was previously a storage version, and must remain in spec.versions");
    let status = format!("{WIDGETS_DEFINITION}/status");
    change(&server, &status, |definition| definition["status"]["storedVersions"] = json!(["v2"])).await.ok();
    without().await.ok();
    assert_eq!(server.get("/apis/ex.io/v1/widgets").await.status, 404);
    server.get("/apis/ex.io/v2/widgets").await.ok();
}

async fn custom_resources_8_groups_of_the_community_need_approval(setup: Setup) {
    let server = setup.start().await;
    let annotated = |text: Option<&str>| {
        let mut definition = widgets();
        definition["metadata"]["name"] = "widgets.x.k8s.io".into();
        definition["spec"]["group"] = "x.k8s.io".into();
        if let Some(text) = text {
            definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": text});
        }
        definition
    };
    let refused = server.post(DEFINITIONS, &annotated(None)).await;
    says(&refused, "protected groups must have approval annotation");
    let policy = "KubernetesAPIApprovalPolicyConformant";
    let created = server.post(DEFINITIONS, &annotated(Some("unapproved, test"))).await.expect(201);
    assert_eq!(condition(&created, policy), "False UnapprovedAnnotation not approved: \"unapproved, test\"");
    let approved = change(&server, format!("{DEFINITIONS}/widgets.x.k8s.io"), |definition| {
        definition["metadata"]["annotations"]["api-approved.kubernetes.io"] = "https://x.io/1".into();
    });
    assert_eq!(condition(&approved.await.ok(), policy), "True ApprovedAnnotation approved in https://x.io/1");
    server.get("/apis/x.k8s.io/v1/widgets").await.ok();
}

async fn custom_resources_27_a_bundle_that_is_none(setup: Setup) {
    let server = setup.start().await;
    let mut hooked = widgets();
    hooked["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://localhost:1/convert", "caBundle": "bm8gYnVuZGxl"}}});
    let created = with(&server, &hooked).await;
    let invalid = "False InvalidCABundle The conversion webhook CABundle is invalid";
    assert_eq!(condition(&created, "Established"), invalid);
    let bundle = "/spec/conversion/webhook/clientConfig/caBundle";
    let cured = change(&server, WIDGETS_DEFINITION, |definition| {
        *definition.pointer_mut(bundle).expect("a bundle") = "".into();
    });
    let cured = cured.await.ok();
    assert!(condition(&cured, "Established").starts_with("True InitialNamesAccepted"), "{cured}");
    let refused = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = "bm8gYnVuZGxl".into();
    });
    says(&refused.await, "unable to load root certificates: unable to parse bytes as PEM block");
    assert!(rv(&server.get(WIDGETS_DEFINITION).await.ok()) > 0);
}
