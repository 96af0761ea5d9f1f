//! Commands that wait for something to happen.

use crate::create_configmaps;
use crate::tool::{Kubectl, rows};

pub async fn watches(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let columns = "--no-headers -o custom-columns=N:.metadata.name,C:.data.color";
    let events = "--no-headers -o custom-columns=E:.type,N:.object.metadata.name,C:.object.data.color";
    let mut all = kubectl.keep_running(&format!("get cm -w --output-watch-events {events}")).await;
    let mut only_a =
        kubectl.keep_running(&format!("get cm -w --field-selector metadata.name=a {columns}")).await;
    let mut table = kubectl.keep_running("get cm -w").await;
    // Each has printed the present state before anything changes.
    assert_eq!(rows(&all.line().await), rows("ADDED  a  blue"));
    assert_eq!(rows(&only_a.line().await), rows("a  blue"));
    assert!(table.line().await.starts_with("NAME "));
    assert!(table.line().await.starts_with("a  "));

    create_configmaps(kubectl, &["b"]).await;
    kubectl.run("patch cm a --type merge -p '{\"data\":{\"color\":\"red\"}}'").await;
    kubectl.run("delete cm b").await;
    assert_eq!(rows(&all.line().await), rows("ADDED  b  blue"));
    assert_eq!(rows(&all.line().await), rows("MODIFIED  a  red"));
    assert_eq!(rows(&all.line().await), rows("DELETED  b  blue"));
    assert_eq!(rows(&only_a.line().await), rows("a  red"));
    for name in ["b", "a", "b"] {
        assert!(table.line().await.starts_with(&format!("{name}  ")));
    }
}

pub async fn waits(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let met = "configmap/a condition met\n";
    assert_eq!(kubectl.run("wait --for=jsonpath={.data.color}=blue cm/a").await, met);
    let change = "patch cm a --type merge -p '{\"data\":{\"color\":\"red\"}}'";
    let (waited, _) = tokio::join!(
        kubectl.run("wait --for=jsonpath={.data.color}=red cm/a --timeout=-1s"),
        kubectl.run(change)
    );
    assert_eq!(waited, met);
    let (waited, _) =
        tokio::join!(kubectl.run("wait --for=delete cm/a --timeout=-1s"), kubectl.run("delete cm a"));
    assert!(waited.is_empty() || waited == met, "{waited}");

    kubectl.run("create -f kinds.yaml").await;
    let wait = "wait --for=condition=Available deployment/web";
    let timed_out = kubectl.fail(&format!("{wait} --timeout=1s")).await;
    assert!(timed_out.starts_with("error: timed out waiting for the condition"), "{timed_out}");
    let status = r#"'{"status": {"conditions": [{"type": "Available", "status": "True"}]}}'"#;
    let patch = format!("patch deployment web --subresource=status --type=merge -p {status}");
    let wait = format!("{wait} --timeout=-1s");
    let (waited, patched) = tokio::join!(kubectl.run(&wait), kubectl.run(&patch));
    assert_eq!(patched, "deployment.apps/web patched\n");
    assert_eq!(waited, "deployment.apps/web condition met\n");
}
