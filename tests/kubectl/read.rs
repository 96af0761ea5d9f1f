//! The output of `get` and `describe` in every format.

use crate::tool::{Kubectl, rows};
use crate::{configmap, create_configmaps};

pub async fn reads_in_every_format(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    assert_eq!(kubectl.table("get configmaps").await, rows("NAME  DATA\na     1"));
    assert_eq!(kubectl.table("get cm/a --show-labels").await, rows("NAME  DATA  LABELS\na  1  app=web"));
    assert_eq!(
        kubectl.table("get cm -L app -A").await,
        rows("NAMESPACE  NAME  DATA  APP\ndefault  a  1  web")
    );
    assert_eq!(
        kubectl.table("get namespaces").await,
        rows(
            "NAME  STATUS\ndefault  Active\nkube-node-lease  Active\nkube-public  Active\nkube-system  Active"
        )
    );
    assert_eq!(kubectl.run("get cm -o name").await, "configmap/a\n");
    assert_eq!(
        kubectl.run("get cm a -o 'jsonpath={.kind} {.apiVersion} {.data.color}'").await,
        "ConfigMap v1 blue"
    );
    let yaml = kubectl.run("get cm a -o yaml").await;
    assert!(yaml.starts_with("apiVersion: v1\ndata:\n  color: blue\nkind: ConfigMap\n"), "{yaml}");
    let json: serde_json::Value = serde_json::from_str(&kubectl.run("get cm -o json").await).unwrap();
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"][0]["metadata"]["labels"]["app"], "web");
    assert_eq!(json["items"][0]["kind"], "ConfigMap");
    let columns = kubectl.table("get cm -o custom-columns=N:.metadata.name,C:.data.color").await;
    assert_eq!(columns, rows("N  C\na  blue"));
    assert_eq!(kubectl.fail("get cm b").await, "Error from server (NotFound): configmaps \"b\" not found\n");
    assert_eq!(
        kubectl.fail("get things").await,
        "error: the server doesn't have a resource type \"things\"\n"
    );
    assert_eq!(kubectl.end_of("get secrets", "").await.stderr, "No resources found in default namespace.\n");
    let raw = kubectl.run("get --raw /api/v1/namespaces/default/configmaps/a").await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&raw).unwrap()["data"]["color"], "blue");
    assert_eq!(kubectl.run("get --raw /readyz").await, "ok");
}

pub async fn selects_and_pages(kubectl: &Kubectl) {
    let manifests: String =
        (0..25).map(|n| configmap(&format!("c-{n:02}"), if n % 2 == 0 { "even" } else { "odd" })).collect();
    kubectl.run_with("create -f -", &manifests).await;
    let names =
        |range: Vec<u32>| -> String { range.into_iter().map(|n| format!("configmap/c-{n:02}\n")).collect() };
    assert_eq!(kubectl.run("get cm -o name --chunk-size=4").await, names((0..25).collect()));
    assert_eq!(kubectl.table("get cm -A --chunk-size=10").await.len(), 1 + 25);
    let odd = names((1..25).step_by(2).collect());
    assert_eq!(kubectl.run("get cm -o name -l app=odd --chunk-size=5").await, odd);
    assert_eq!(kubectl.run("get cm -o name -l 'app notin (even)'").await, odd);
    assert_eq!(kubectl.run("get cm -o name -l app!=even,!tier").await, odd);
    assert_eq!(kubectl.run("get cm -o name -l tier").await, "");
    assert_eq!(kubectl.run("get cm -o name --field-selector metadata.name=c-07").await, names(vec![7]));
    assert_eq!(
        kubectl.run("get cm -A -o name --field-selector metadata.namespace=default").await,
        names((0..25).collect())
    );
    let unknown = kubectl.fail("get cm --field-selector spec.x=1").await;
    assert!(unknown.contains(r#""spec.x" is not a known field selector: only "metadata.name""#), "{unknown}");
}

pub async fn describes(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    assert_eq!(
        kubectl.run("describe cm a").await.trim_end(),
        "Name:         a
Namespace:    default
Labels:       app=web
Annotations:  <none>

Data
====
color:
----
blue


BinaryData
====

Events:  <none>"
    );
    kubectl.run("create -f kinds.yaml").await;
    for (object, line) in [
        ("pod web-0", "    Image:        nginx:1"),
        (
            "deployment web",
            "Replicas:               3 desired | 0 updated | 0 total | 0 available | 0 unavailable",
        ),
        ("namespace team", "Status:       Active"),
        ("ingress web", "  example.com  "),
        ("role reader", "  pods       []                 []              [get list]"),
    ] {
        let text = kubectl.run(&format!("describe {object}")).await;
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    // kubectl requests the events of this very object.
    let uid = kubectl.run("get cm a -o jsonpath={.metadata.uid}").await;
    let event = r#"{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1"}, "type": "Warning",
        "reason": "Faded", "message": "too much sun", "source": {"component": "sky"},
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a", "uid": "UID"}}"#;
    kubectl.run_with("create -f -", &event.replace("UID", &uid)).await;
    let text = kubectl.run("describe cm a").await;
    assert!(text.contains("Faded") && text.contains("too much sun"), "{text}");
    assert!(kubectl.run("get events").await.contains("too much sun"));
}
