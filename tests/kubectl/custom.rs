//! Custom resources: a definition, its objects, and the end of both.

use crate::tool::{Kubectl, rows};

const DEFINITION: &str = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        description: A job that comes again.
        properties:
          spec:
            type: object
            properties:
              cronSpec: {type: string, description: When it comes.}
              replicas: {type: integer, default: 1}
";

fn crontab(name: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {{name: {name}}}
spec: {spec}
"
    )
}

pub async fn defines_and_uses_custom_resources(kubectl: &Kubectl) {
    // Both at once, as charts do it: the second needs the first to be served.
    let applied = kubectl.run_with("apply -f -", DEFINITION).await;
    assert_eq!(
        applied,
        "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com created\n"
    );
    let waited = kubectl.run("wait --for=condition=established crd/crontabs.stable.example.com").await;
    assert!(waited.ends_with("condition met\n"), "{waited}");
    let objects =
        crontab("a", "{cronSpec: '* * * * 1'}") + &crontab("b", "{cronSpec: '* * * * 2', replicas: 2}");
    let applied = kubectl.run_with("apply -f -", &objects).await;
    assert_eq!(applied, "crontab.stable.example.com/a created\ncrontab.stable.example.com/b created\n");
    assert_eq!(kubectl.run_with("apply -f -", &objects).await, applied.replace("created", "unchanged"));
    let columns = "get ct --no-headers -o custom-columns=N:.metadata.name,R:.spec.replicas";
    assert_eq!(rows(&kubectl.run(columns).await), rows("a  1\nb  2"));
    assert!(kubectl.run("get all").await.contains("crontab.stable.example.com/a"));
    assert!(kubectl.run("explain crontab.spec.cronSpec").await.contains("When it comes."));

    let patch = "patch ct a --type merge -p '{\"spec\":{\"replicas\":5}}'";
    assert_eq!(kubectl.run(patch).await, "crontab.stable.example.com/a patched\n");
    let on_the_server = "apply --server-side --field-manager=other -f -";
    let applied = kubectl.run_with(on_the_server, &crontab("c", "{replicas: 3}")).await;
    assert_eq!(applied, "crontab.stable.example.com/c serverside-applied\n");
    assert_eq!(rows(&kubectl.run(columns).await), rows("a  5\nb  2\nc  3"));
    let refused = kubectl.end_of("apply -f -", &crontab("d", "{replicaz: 3}")).await;
    assert!(!refused.success && refused.stderr.contains("unknown field \"spec.replicaz\""), "{refused:?}");
    assert_eq!(kubectl.run("delete ct b").await.lines().count(), 1);

    let deleted = kubectl.run("delete crd crontabs.stable.example.com").await;
    assert!(deleted.contains("deleted"), "{deleted}");
    let gone = kubectl.fail("get crontabs.stable.example.com").await;
    assert!(gone.contains("the server doesn't have a resource type"), "{gone}");
    kubectl.run_with("create -f -", DEFINITION).await;
    assert_eq!(kubectl.run("get crontabs.stable.example.com -o name").await, "");
}

/// The commands of README.
pub async fn the_examples_are_right(kubectl: &Kubectl) {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples");
    kubectl.run(&format!("apply -f {examples}/backups.yaml")).await;
    kubectl.run(&format!("apply -f {examples}/backup.yaml")).await;
    let shown = rows(&kubectl.run("get backups").await);
    assert_eq!(shown[0], ["NAME", "SOURCE", "KEEP"]);
    assert_eq!(shown[1], ["orders", "orders-db", "7"]);
    assert!(kubectl.run("explain backup.spec").await.contains("How many copies are kept."));
    let refused = kubectl.fail("scale backup/orders --replicas=9").await;
    assert!(refused.contains("more copies are made at a time than are kept"), "{refused}");
    let scaled = kubectl.run("scale backup/orders --replicas=2").await;
    assert_eq!(scaled, "backup.example.com/orders scaled\n");
    kubectl.run(&format!("delete -f {examples}/backups.yaml")).await;
    let gone = kubectl.fail("get crd backups.example.com").await;
    assert!(gone.contains("NotFound"), "{gone}");
}
