//! What JSON and protobuf look like to the byte; assertions of `docs/spec/wire.md` by number.

use http::Method;
use rowplane::codec::protobuf::{Envelope, encode};
use rowplane::schema::builtin;
use rowplane::schema::names::Gvk;
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol};
use crate::support::database::Database;
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, config_map};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/t/leases";

on_every_store! {
    wire_1_a_pod,
    wire_14_15_headers,
    wire_17_18_structs_are_printed_and_nil_lists_are_not,
    wire_19_empty_lists_are_nil,
    wire_20_21_lists,
    wire_22_escapes_and_the_order_of_maps,
    wire_25_null_in_a_map,
    wire_28_29_times,
    wire_30_an_event_without_times,
    wire_31_32_quantities,
    wire_24_32_numbers_are_what_they_are_spelled_as,
    wire_34_numbers_and_names_of_ports,
    wire_38_vectors,
    wire_39_no_envelope,
    wire_40_41_fields_of_a_message,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_head_have_no_body() {
    let server = Setup::new(Database::memory()).start().await;
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}});
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io",
        "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    let widgets = "/apis/ex.io/v1/namespaces/default/widgets";
    let own = ["/livez/ping", "/openapi/v2", "/apis", "/apis/apps", "/nothing", "/apis/ex.io/v1", widgets];
    let refused = ["/api", "/api/v1", "/apis/apps/v1", "/version", "/openid/v1/jwks", CONFIGMAPS];
    for protocol in [Protocol::Http1, Protocol::Any] {
        let client = Client::of_certificate(&server.kubeconfig, protocol);
        for path in refused {
            let head = client.request(Method::HEAD, path).await;
            assert_eq!((head.status, head.text().as_str()), (405, ""), "{path}");
        }
        for path in own {
            let get = client.get(path).await;
            let head = client.request(Method::HEAD, path).await;
            assert_eq!((head.status, head.text().as_str()), (get.status, ""), "{path}");
            for name in ["content-type", "content-length"] {
                assert_eq!(head.header(name), get.header(name), "{name} of {path}");
            }
        }
    }
    server.stop().await;
}

async fn wire_1_a_pod(setup: Setup) {
    let server = setup.start().await;
    let pods = "/api/v1/namespaces/t/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    let answer = server.get(format!("{pods}/a")).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let text = answer.text();
    assert!(text.starts_with(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"#), "{text}");
    assert!(text.ends_with("}\n"), "{text}");
}

async fn wire_14_15_headers(setup: Setup) {
    let server = setup.start().await;
    let answer = server.get(CONFIGMAPS).header("audit-id", "mine").await;
    assert_eq!(answer.header("audit-id"), Some("mine"));
    assert_eq!(answer.header("cache-control"), Some("no-cache, private"));
    let unsent = server.get(CONFIGMAPS).await;
    assert_eq!(unsent.header("audit-id").map(str::len), Some(36));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = server.get("/apis").accept(aggregated).await;
    assert_eq!(answer.header("cache-control"), Some("public"));
}

async fn wire_17_18_structs_are_printed_and_nil_lists_are_not(setup: Setup) {
    let server = setup.start().await;
    let labels = json!({"app": "a"});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels, "creationTimestamp": null},
        "spec": {"containers": [{"name": "c", "image": "i", "args": []}], "volumes": []}}}});
    let created = server.post(DEPLOYMENTS, &deployment).await.expect(201);
    let template = &created["spec"]["template"];
    assert_eq!(template["metadata"], json!({"labels": labels}));
    assert_eq!(created["status"], json!({}));
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["resources"], json!({}));
    assert_eq!((container.get("args"), template["spec"].get("volumes")), (None, None));
}

async fn wire_19_empty_lists_are_nil(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let created = server.post(path, &role).await.expect(201);
    assert_eq!(created.get("rules"), Some(&Value::Null));
    assert_eq!(server.get(format!("{path}/r")).await.ok(), created);
}

async fn wire_20_21_lists(setup: Setup) {
    let server = setup.start().await;
    let empty = server.get(CONFIGMAPS).await.text();
    let revision = server.revision().await;
    let want = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"}},"items":[]}}"#
    );
    assert_eq!(empty, want + "\n");
    server.create("a", json!({})).await;
    let list = server.get(ALL_CONFIGMAPS).await.text();
    assert!(list.contains(r#""items":[{"metadata":{"name":"#), "{list}");
}

async fn wire_22_escapes_and_the_order_of_maps(setup: Setup) {
    let server = setup.start().await;
    let mut object = config_map("a", json!({"k": "\u{7f}/é"}));
    object["metadata"]["annotations"] = json!({"b": "\u{2028}/", "B": "1", "a": "<a&b>"});
    server.post(CONFIGMAPS, &object).await.expect(201);
    let path = format!("{CONFIGMAPS}/a");
    let in_list = server.get(CONFIGMAPS).await.text();
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let metadata = server.get(&path).accept(partial).await.text();
    let whole = server.get(&path).await.text();
    for text in [&in_list, &metadata, &whole] {
        let want = r#""annotations":{"B":"1","a":"\u003ca\u0026b\u003e","b":"\u2028/"}"#;
        assert!(text.contains(want), "{text}");
    }
    assert!(whole.contains("\"data\":{\"k\":\"\u{7f}/é\"}"), "{whole}");
}

async fn wire_25_null_in_a_map(setup: Setup) {
    let server = setup.start().await;
    let mut object = config_map("a", json!({"k": null}));
    object["metadata"]["labels"] = json!({"a": null});
    let created = server.post(CONFIGMAPS, &object).await.expect(201);
    assert_eq!((&created["metadata"]["labels"], &created["data"]), (&json!({"a": ""}), &json!({"k": ""})));
}

async fn wire_28_29_times(setup: Setup) {
    let server = setup.start().await;
    let pods = "/api/v1/namespaces/t/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    let condition =
        json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05.678+02:00"});
    let status = json!({"status": {"conditions": [condition]}});
    let changed = server.patch(format!("{pods}/a/status"), &status).await.ok();
    assert_eq!(changed["status"]["conditions"][0]["lastTransitionTime"], "2026-01-02T01:04:05Z");
    let lease = |name: &str, time: &str| json!({"metadata": {"name": name}, "spec": {"renewTime": time}});
    assert_eq!(server.post(LEASES, &lease("l", "2026-01-02T03:04:05.678Z")).await.status, 400);
    let created = server.post(LEASES, &lease("l", "2026-01-02T03:04:05.678901Z")).await.expect(201);
    assert_eq!(created["spec"]["renewTime"], "2026-01-02T03:04:05.678901Z");
}

async fn wire_30_an_event_without_times(setup: Setup) {
    let server = setup.start().await;
    let path = "/api/v1/namespaces/t/events";
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "t", "name": "p"}});
    let created = server.post(path, &event).await.expect(201);
    for field in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        assert_eq!(created.get(field), Some(&Value::Null), "{field}");
    }
}

async fn wire_31_32_quantities(setup: Setup) {
    let server = setup.start().await;
    let path = "/api/v1/namespaces/t/resourcequotas";
    for (index, (sent, want)) in [
        (json!({"cpu": "0.5", "memory": "1024Mi"}), json!({"cpu": "500m", "memory": "1Gi"})),
        (json!({"cpu": "1000m", "memory": "1.5Gi"}), json!({"cpu": "1", "memory": "1536Mi"})),
        (json!({"cpu": "1.500", "memory": "1000Mi"}), json!({"cpu": "1.500", "memory": "1000Mi"})),
        (json!({"cpu": 0.1, "memory": "1e3"}), json!({"cpu": "100m", "memory": "1e3"})),
    ]
    .into_iter()
    .enumerate()
    {
        let quota = json!({"metadata": {"name": format!("q{index}")}, "spec": {"hard": sent}});
        assert_eq!(server.post(path, &quota).await.expect(201)["spec"]["hard"], want);
    }
}

/// In YAML and in strategic merge patches upstream takes them for what they mean.
async fn wire_24_32_numbers_are_what_they_are_spelled_as(setup: Setup) {
    let server = setup.start().await;
    let path = "/api/v1/namespaces/t/resourcequotas";
    let post = |media: &'static str, path: &str, body: String| {
        server.request(http::Method::POST, path.to_owned()).body(media, body)
    };
    let quota = r#"{"metadata":{"name":"q"},"spec":{"hard":{"cpu":1e3,"memory":1.50,"pods":"1e3"}}}"#;
    let created = post("application/json", path, quota.to_owned()).await.expect(201);
    assert_eq!(created["spec"]["hard"], json!({"cpu": "1e3", "memory": "1500m", "pods": "1e3"}));
    let quota = "metadata: {name: r}\nspec: {hard: {cpu: 1e3, memory: 1.50}}\n";
    let created = post("application/yaml", path, quota.to_owned()).await.expect(201);
    assert_eq!(created["spec"]["hard"], json!({"cpu": "1k", "memory": "1500m"}));
    let deployment = |replicas: &str| {
        format!(
            r#"{{"metadata":{{"name":"d"}},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"a":"b"}}}},
            "template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
        )
    };
    for spelling in ["1e3", "1.0", "1E0"] {
        let refused = post("application/json", DEPLOYMENTS, deployment(spelling)).await;
        refused.bad_request(&format!(
            "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal number {spelling} \
             into Go struct field DeploymentSpec.spec.replicas of type int32"
        ));
    }
    let created = post("application/yaml", DEPLOYMENTS, deployment("1e1")).await.expect(201);
    assert_eq!(created["spec"]["replicas"], 10);
    let patch = server.request(http::Method::PATCH, format!("{DEPLOYMENTS}/d"));
    let patched =
        patch.body("application/strategic-merge-patch+json", r#"{"spec":{"replicas":2.0}}"#).await.ok();
    assert_eq!(patched["spec"]["replicas"], 2);
}

async fn wire_34_numbers_and_names_of_ports(setup: Setup) {
    let server = setup.start().await;
    let path = "/api/v1/namespaces/t/services";
    let port =
        |name: &str, number: u16, target: Value| json!({"name": name, "port": number, "targetPort": target});
    let service = json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"},
        "ports": [port("a", 80, json!(80)), port("b", 81, json!("web"))]}});
    let created = server.post(path, &service).await.expect(201);
    let targets = |service: &Value| [0, 1].map(|index| service["spec"]["ports"][index]["targetPort"].clone());
    assert_eq!(targets(&created), [json!(80), json!("web")]);
    let kind = builtin::kind(&Gvk::fixed("v1", "Service")).expect("a kind");
    let raw = encode(&kind, &serde_json::from_value(created).expect("an object")).expect("encodes");
    let request = server.request(http::Method::PUT, format!("{path}/s"));
    let updated = request.body(PROTOBUF, Envelope::wrap(&Gvk::fixed("v1", "Service"), &raw)).await.ok();
    assert_eq!(targets(&updated), [json!(80), json!("web")]);
}

async fn wire_38_vectors(setup: Setup) {
    let server = setup.start().await;
    let list = server.get("/api/v1/namespaces/t/pods").accept(PROTOBUF).await.body;
    let revision = server.revision().await.to_string();
    let metadata = [&b"\x0a\x00\x12"[..], &[revision.len() as u8], revision.as_bytes(), b"\x1a\x00"].concat();
    let raw = [&[0x0a, metadata.len() as u8][..], &metadata].concat();
    assert_eq!(list, Envelope::wrap(&Gvk::fixed("v1", "PodList"), &raw));
    assert_eq!(list[..4], *b"k8s\0");
}

async fn wire_39_no_envelope(setup: Setup) {
    let server = setup.start().await;
    let request = server.request(http::Method::POST, CONFIGMAPS).body(PROTOBUF, b"{\"a\":1}".to_vec());
    let message = request.await.failure()["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("expected prefix [107 56 115 0]"), "{message}");
}

async fn wire_40_41_fields_of_a_message(setup: Setup) {
    let server = setup.start().await;
    // data (2) out of order and before metadata (1), and a field 99 that nobody knows.
    let map = b"\x12\x06\x0a\x01b\x12\x01y\x12\x06\x0a\x01a\x12\x01x";
    let raw = [&map[..], b"\x0a\x05\x0a\x03odd", b"\x9a\x06\x01z"].concat();
    let request = server.request(http::Method::POST, CONFIGMAPS);
    let created =
        request.body(PROTOBUF, Envelope::wrap(&Gvk::fixed("v1", "ConfigMap"), &raw)).await.expect(201);
    assert_eq!(created["data"], json!({"a": "x", "b": "y"}));
    let stored = server.get(format!("{CONFIGMAPS}/odd")).accept(PROTOBUF).await.body;
    let sorted = b"\x12\x06\x0a\x01a\x12\x01x\x12\x06\x0a\x01b\x12\x01y";
    assert!(stored.windows(sorted.len()).any(|window| window == sorted), "{stored:02x?}");
    assert!(!stored.windows(3).any(|window| window == b"\x9a\x06\x01"), "{stored:02x?}");
    // The generation (1.7) is zero and written all the same.
    assert!(stored.windows(2).any(|window| window == b"\x38\x00"), "{stored:02x?}");
}
