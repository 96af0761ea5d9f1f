//! Discovery, the index and paths that are none; assertions of `docs/spec/wire.md` by number. What 52 and 53 say of custom
//! resources is in `custom_resources/elsewhere.rs`.

use http::header::ACCEPT;
use rowplane::codec::protobuf::{Envelope, decode};
use rowplane::codec::yaml;
use rowplane::kinds::built_in::enablement::Enablement;
use rowplane::schema::builtin;
use serde_json::{Value, json};

use crate::support::server::Setup;

const PARAMETERS: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

on_every_store! {
    wire_50_versions_of_documents,
    wire_51_resources_of_the_core,
    wire_52_the_order_of_versions,
    wire_53_all_in_one_answer,
    wire_54_old_aggregation,
    wire_55_kinds_of_answers,
    wire_56_the_index_and_the_version,
    wire_57_what_is_not_there,
    aggregation_in_every_encoding,
    who_refuses_what,
    people_get_indentation,
    component_statuses_are_found_out,
    what_is_not_enabled_is_not_served,
    definitions_do_not_join_built_in_versions,
    the_core_group_may_be_written_as_it_is,
}

fn aggregated(media: &str) -> String {
    format!("{media}{PARAMETERS}")
}

async fn wire_50_versions_of_documents(setup: Setup) {
    let server = setup.start_empty().await;
    for (path, kind, version) in [
        ("/api", "APIVersions", None),
        ("/apis", "APIGroupList", Some("v1")),
        ("/apis/apps", "APIGroup", Some("v1")),
        ("/api/v1", "APIResourceList", None),
        ("/apis/apps/v1", "APIResourceList", Some("v1")),
    ] {
        let document = server.get(path).await.ok();
        assert_eq!(document["kind"], kind, "{path}");
        assert_eq!(document.get("apiVersion").and_then(Value::as_str), version, "{path}");
    }
}

async fn wire_51_resources_of_the_core(setup: Setup) {
    let server = setup.start_empty().await;
    let document = server.get("/api/v1").await.ok();
    let resources = document["resources"].as_array().expect("resources");
    let names: Vec<_> = resources.iter().map(|resource| resource["name"].as_str().expect("a name")).collect();
    assert!(names.is_sorted(), "{names:?}");
    let pods = names.iter().position(|name| *name == "pods").expect("pods");
    assert_eq!(names[pods + 1..pods + 3], ["pods/attach", "pods/binding"]);
    assert_eq!(resources[pods]["storageVersionHash"], "xPOwRZ+Yhw8=");
    for resource in resources {
        let sub = resource["name"].as_str().is_some_and(|name| name.contains('/'));
        assert_eq!(resource["singularName"] == "", sub, "{resource}");
        assert!(!(sub && resource.get("storageVersionHash").is_some()), "{resource}");
    }
}

async fn wire_52_the_order_of_versions(setup: Setup) {
    let server = setup.start_empty().await;
    let group = server.get("/apis/autoscaling").await.ok();
    let version = |name: &str| json!({"groupVersion": format!("autoscaling/{name}"), "version": name});
    assert_eq!(group["versions"], json!([version("v2"), version("v1")]));
    assert_eq!(group["preferredVersion"], version("v2"));
    let groups = server.get("/apis").await.ok();
    let names: Vec<_> = groups["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|group| group["name"].as_str().expect("a name"))
        .collect();
    let want = [
        "apiregistration.k8s.io",
        "apps",
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "discovery.k8s.io",
        "resource.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "storagemigration.k8s.io",
    ];
    assert_eq!(names, want);
}

async fn wire_53_all_in_one_answer(setup: Setup) {
    let server = setup.start_empty().await;
    for path in ["/api", "/apis"] {
        let accept = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json";
        let answer = server.get(path).accept(accept).await;
        assert_eq!(answer.header("content-type"), Some(&*aggregated("application/json")), "in this order");
        assert_eq!((answer.header("vary"), answer.header("cache-control")), (Some("Accept"), Some("public")));
        let document = answer.ok();
        assert_eq!(
            (&document["kind"], &document["apiVersion"]),
            (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
        );
        let etag = answer.header("etag").expect("an ETag");
        let hash = etag.trim_matches('"');
        assert_eq!((hash.len(), etag.len()), (128, 130));
        assert!(hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F')), "{etag}");
        let ask = |known: &str| server.get(path).accept(accept).header("if-none-match", known);
        let known = ask(etag).await;
        assert_eq!((known.status, known.body.len()), (304, 0));
        assert_eq!((known.header("etag"), known.header("cache-control")), (Some(etag), Some("public")));
        // Byte for byte: no lists, no weak tags, no wildcard.
        for other in [format!("\"x\", {etag}"), format!("W/{etag}"), "*".to_owned(), hash.to_owned()] {
            assert_eq!(ask(&other).await.ok(), document, "{other}");
        }
    }
}

async fn wire_54_old_aggregation(setup: Setup) {
    let server = setup.start_empty().await;
    let old = aggregated("application/json").replace("v=v2", "v=v2beta1");
    let refused = server.get("/apis").accept(&old).await;
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    refused.fails(406, "NotAcceptable", message, Value::Null);
    let legacy = server.get("/apis").accept(&format!("{old},application/json")).await;
    assert_eq!(legacy.header("content-type"), Some("application/json"));
    assert_eq!(legacy.ok()["kind"], "APIGroupList");
}

async fn wire_55_kinds_of_answers(setup: Setup) {
    let server = setup.start_empty().await;
    let document = server.get("/apis").accept(&aggregated("application/json")).await.ok();
    let groups = document["items"].as_array().expect("groups");
    let apps = groups.iter().find(|group| group["metadata"]["name"] == "apps").expect("apps");
    let resources = apps["versions"][0]["resources"].as_array().expect("resources");
    let deployments = resources.iter().find(|each| each["resource"] == "deployments").expect("deployments");
    assert_eq!(deployments["responseKind"], json!({"group": "", "version": "", "kind": "Deployment"}));
    let scale = &deployments["subresources"][0];
    assert_eq!(scale["subresource"], "scale");
    assert_eq!(scale["responseKind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
}

async fn wire_56_the_index_and_the_version(setup: Setup) {
    let server = setup.start_empty().await;
    for path in ["/", "/index.html"] {
        let index = server.get(path).await;
        assert_eq!(index.text(), format!("{:#}", index.ok()), "indented, without a line end");
        let index = index.ok();
        let paths: Vec<_> =
            index["paths"].as_array().expect("paths").iter().filter_map(Value::as_str).collect();
        assert!(paths.is_sorted_by(|a, b| a < b), "sorted bytewise, each once");
        let groups = server.get("/apis").await.ok();
        let versions = groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
            let versions = group["versions"].as_array().expect("versions").iter();
            versions.map(|version| format!("/apis/{}", version["groupVersion"].as_str().expect("a version")))
        });
        let more = ["/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/metrics", "/readyz", "/version"];
        for path in versions.chain(more.map(str::to_owned)) {
            assert!(paths.contains(&&*path), "{path}");
            assert_eq!(server.get(&path).await.status, 200, "{path}");
        }
    }
    let version = server.anonymous().get("/version").await;
    let text = version.text();
    assert!(text.contains("\n  \"major\": \"1\",\n  \"minor\": \"37\",\n") && text.ends_with('}'), "{text}");
    assert!(version.ok().as_object().expect("an object").values().all(Value::is_string));
}

async fn wire_57_what_is_not_there(setup: Setup) {
    let server = setup.start_empty().await;
    for path in [
        "/nosuch",
        "/apis/nosuch",
        "/apis/nosuch/v1",
        "/apis/nosuch/v1/things",
        "/openapi",
        "/healthz/",
        "/healthz/nosuch",
        "/apis//v1",
        "/apis//v1/pods",
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, &*answer.text()), (404, "404 page not found\n"), "{path}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    for path in [
        "/api/v1/nosuch",
        "/api/v1/namespaces/default/nosuch/x",
        "/api/v1/namespaces/default/pods/x/nosuch",
        "/api/v1/namespaces/default/pods/x/y/z",
        "/api/v1/a/b/c/d",
        "/api/v2",
        "/api/v2/pods",
        "/apis/apps/v1/nosuch",
        "/apis/apps/v9",
        "/apis/apps/v9/deployments",
    ] {
        let message = "the server could not find the requested resource";
        server.get(path).await.fails(404, "NotFound", message, json!({}));
    }
}

/// The same in every form, under one ETag.
async fn aggregation_in_every_encoding(setup: Setup) {
    let server = setup.start_empty().await;
    for path in ["/api", "/apis"] {
        let json = server.get(path).accept(&aggregated("application/json")).await;
        let printed = json.ok();
        for media in ["application/yaml", PROTOBUF] {
            let accept = aggregated(media);
            let answer = server.get(path).header(ACCEPT.as_str(), &accept).await;
            assert_eq!((answer.status, answer.header("content-type")), (200, Some(&*accept)));
            assert_eq!(answer.header("etag"), json.header("etag"));
            let mut found = if media == PROTOBUF {
                let envelope = Envelope::parse(&answer.body).expect("an envelope");
                assert_eq!(
                    (&*envelope.api_version, &*envelope.kind),
                    ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
                );
                let members =
                    decode(&builtin::kind(&envelope.gvk().expect("a name")).expect("a kind"), envelope.raw)
                        .expect("decodes");
                serde_json::to_value(members).expect("JSON")
            } else {
                serde_json::to_value(yaml::parse(&answer.body).expect("YAML")).expect("JSON")
            };
            found["kind"] = printed["kind"].clone();
            found["apiVersion"] = printed["apiVersion"].clone();
            assert_eq!(found, printed, "{path} {media}");
        }
    }
}

/// Upstream's router or its handlers: by the texts one tells.
async fn who_refuses_what(setup: Setup) {
    let server = setup.start_empty().await;
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for path in ["/api", "/api/v1", "/apis/apps/v1"] {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {types}");
        server.get(path).accept("text/html").await.fails(406, "NotAcceptable", &message, json!({}));
    }
    for path in ["/apis", "/apis/apps"] {
        let message = format!("only the following media types are accepted: {types}");
        server.get(path).accept("text/html").await.fails(406, "NotAcceptable", &message, Value::Null);
    }
}

async fn people_get_indentation(setup: Setup) {
    let server = setup.start_empty().await;
    for path in ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"] {
        let compact = server.get(path).await;
        assert_eq!(compact.text(), format!("{}\n", compact.json()), "{path}");
        for indented in [
            server.get(path).header("user-agent", "curl/8.5.0").await,
            server.get(format!("{path}?pretty=true")).await,
            server.get(path).accept("application/json;pretty=1").await,
        ] {
            assert_eq!(indented.text(), format!("{:#}", compact.json()), "{path}");
        }
        assert_eq!(
            server.get(format!("{path}?pretty=0")).header("user-agent", "curl/8.5.0").await.body,
            compact.body
        );
    }
}

async fn component_statuses_are_found_out(setup: Setup) {
    let server = setup.start_empty().await;
    let path = "/api/v1/componentstatuses";
    let list = server.get(path).await;
    assert_eq!(list.headers("warning"), ["299 - \"v1 ComponentStatus is deprecated in v1.19+\""]);
    let item = json!({"metadata": {"name": "etcd-0"}, "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]});
    let want = json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": [item]});
    assert_eq!(list.ok(), want);
    assert_eq!(server.get(format!("{path}?fieldSelector=metadata.name%3Dx")).await.ok()["items"], json!([]));
    assert_eq!(server.get(format!("{path}?labelSelector=a")).await.ok()["items"], json!([]));
    let one = server.get(format!("{path}/etcd-0")).await.ok();
    assert_eq!((&one["kind"], &one["conditions"]), (&json!("ComponentStatus"), &item["conditions"]));
    let missing = server.get(format!("{path}/x")).await;
    assert_eq!(missing.failure()["message"], "componentstatus \"x\" not found");
    let table = server.get(path).accept("application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    assert_eq!(table["rows"][0]["cells"], json!(["etcd-0", "Healthy", "ok", ""]));
    let protobuf = server.get(path).accept(PROTOBUF).await;
    assert_eq!(Envelope::parse(&protobuf.body).expect("an envelope").kind, "ComponentStatusList");
    for (method, path) in [("POST", path), ("DELETE", path), ("PUT", "/api/v1/componentstatuses/etcd-0")] {
        let answer = server.request(method.parse().expect("a method"), path).json(&json!({})).await;
        assert_eq!(answer.status, 405, "{method}");
    }
    let served = server.get("/api/v1").await.ok();
    let shown = served["resources"]
        .as_array()
        .expect("resources")
        .iter()
        .find(|one| one["name"] == "componentstatuses");
    let want = json!({"name": "componentstatuses", "singularName": "componentstatus", "namespaced": false,
        "kind": "ComponentStatus", "verbs": ["get", "list"], "shortNames": ["cs"]});
    assert_eq!(shown, Some(&want));
}

/// A definition in a group version that is the server's own is kept, and serves nothing there.
async fn definitions_do_not_join_built_in_versions(setup: Setup) {
    let server = setup.start_empty().await;
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let definition = json!({
        "metadata": {"name": "foos.networking.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, test-only"}},
        "spec": {"group": "networking.k8s.io", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version("v1", true), version("v7", false)]}
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    // In a version of its own it is served, so the one that is built in would be by now.
    while server.get("/apis/networking.k8s.io/v7/foos").await.status != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/apis/networking.k8s.io/v1/foos").await.status, 404);
    let served = server.get("/apis/networking.k8s.io/v1").await.ok();
    let is_shown = |one: &Value| one["name"].as_str().is_some_and(|name| name.starts_with("foos"));
    assert!(!served["resources"].as_array().expect("resources").iter().any(is_shown));
    server.delete(format!("{definitions}/foos.networking.k8s.io")).await.ok();
}

async fn the_core_group_may_be_written_as_it_is(setup: Setup) {
    let server = setup.start().await;
    let made = server
        .post(
            "/api/v1/namespaces/t/configmaps",
            &json!({
                "apiVersion": "/v1", "kind": "ConfigMap", "metadata": {"name": "slash"}
            }),
        )
        .await
        .expect(201);
    assert_eq!(made["apiVersion"], "v1");
    let wrong = json!({"apiVersion": "/v2", "kind": "ConfigMap", "metadata": {"name": "slash"}});
    assert_eq!(server.post("/api/v1/namespaces/t/configmaps", &wrong).await.status, 400);
}

async fn what_is_not_enabled_is_not_served(mut setup: Setup) {
    let off = "policy/v1=false,autoscaling/v1=false,batch/v1/cronjobs=false";
    setup.enablement = Enablement::parse(off).expect("known");
    let server = setup.start().await;
    let groups = server.get("/apis").await.ok();
    let group = |name: &str| {
        groups["groups"].as_array().expect("groups").iter().find(|group| group["name"] == name).cloned()
    };
    assert_eq!(group("policy"), None);
    assert_eq!(group("autoscaling").expect("it has another")["preferredVersion"]["version"], "v2");
    let batch = server.get("/apis/batch/v1").await.ok();
    let names: Vec<&Value> =
        batch["resources"].as_array().expect("resources").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["jobs", "jobs/status"]);
    for (path, body) in [
        ("/apis/policy/v1/poddisruptionbudgets", "404 page not found\n"),
        ("/apis/policy/v1", "404 page not found\n"),
        ("/openapi/v3/apis/policy/v1", ""),
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, &*answer.text()), (404, body), "{path}");
    }
    for path in ["/apis/batch/v1/cronjobs", "/apis/autoscaling/v1/namespaces/t/horizontalpodautoscalers"] {
        assert_eq!(
            server.get(path).await.failure()["message"],
            "the server could not find the requested resource"
        );
    }
    server.get("/apis/batch/v1/jobs").await.ok();
    server.get("/apis/autoscaling/v2/horizontalpodautoscalers").await.ok();
}
