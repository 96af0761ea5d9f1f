//! `delete`, including dependents.

use crate::tool::Kubectl;
use crate::{configmap, create_configmaps};

pub async fn deletes(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a", "b", "c"]).await;
    let dry = kubectl.run("delete cm a b --dry-run=server").await;
    assert_eq!(dry.lines().filter(|line| line.ends_with("(server dry run)")).count(), 2, "{dry}");
    assert_eq!(kubectl.run("get cm -o name").await.lines().count(), 3);
    kubectl.run("label cm c app=other --overwrite").await;
    assert_eq!(kubectl.run("delete cm -l app=web -o name").await, "configmap/a\nconfigmap/b\n");
    assert_eq!(kubectl.run("get cm -o name").await, "configmap/c\n");
    assert_eq!(kubectl.run("delete cm --all -o name").await, "configmap/c\n");
    assert_eq!(
        kubectl.fail("delete cm a").await,
        "Error from server (NotFound): configmaps \"a\" not found\n"
    );
    assert_eq!(kubectl.run("delete cm a --ignore-not-found").await, "");

    kubectl.run("create -f kinds.yaml").await;
    for (grace, name) in [("--grace-period=1", "web-0"), ("--grace-period=0 --force", "web-1")] {
        if name != "web-0" {
            kubectl.run_with("create -f -", &pod(name)).await;
        }
        // The pod runs on no node, so nothing has to be stopped first.
        assert_eq!(kubectl.run(&format!("delete pod {name} {grace} -o name")).await, format!("pod/{name}\n"));
        assert!(kubectl.fail(&format!("get pod {name}")).await.contains("(NotFound)"));
    }
    // A namespace is deleted with its content, and kubectl waits for that.
    kubectl.run_with("create -n team -f -", &configmap("a", "web")).await;
    assert_eq!(kubectl.run("delete namespace team -o name").await, "namespace/team\n");
    assert_eq!(kubectl.run("get cm -A -o name").await, "configmap/settings\n");
}

fn pod(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: web, image: nginx}}]
"
    )
}

pub async fn deletes_with_dependents(kubectl: &Kubectl) {
    for policy in ["foreground", "background", "orphan"] {
        create_configmaps(kubectl, &["owner"]).await;
        let uid = kubectl.run("get cm owner -o jsonpath={.metadata.uid}").await;
        let child = format!(
            "
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences:
  - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}
"
        );
        kubectl.run_with("create -f -", &child).await;
        let deleted = kubectl.run(&format!("delete cm owner --cascade={policy} -o name")).await;
        assert_eq!(deleted, "configmap/owner\n");
        let owner = "jsonpath={.metadata.ownerReferences}";
        match policy {
            // The child was deleted first.
            "foreground" => assert!(kubectl.fail("get cm child").await.contains("(NotFound)")),
            "background" => {
                kubectl.run("wait --for=delete cm/child --timeout=-1s").await;
            }
            _ => assert_eq!(kubectl.run(&format!("get cm child -o {owner}")).await, ""),
        }
    }
}
