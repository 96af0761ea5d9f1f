//! Real kubectls, one older than the server and one of its own version, as a user types them.

mod support;

#[path = "kubectl/tool.rs"]
mod tool;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::tool::{Kubectl, rows};

/// Makes a test of every case for each version: `v1_32::case` and `v1_37::case`.
macro_rules! with_each_kubectl {
    ($($case:ident),* $(,)?) => {
        mod v1_32 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(&crate::tool::Kubectl::start(32).await).await
            })*
        }
        mod v1_37 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(&crate::tool::Kubectl::start(37).await).await
            })*
        }
    };
}

with_each_kubectl! {
    creates_and_deletes_many_kinds,
    creates_from_json,
    reads_in_every_format,
    selects_and_pages,
    watches,
    replaces,
    labels_and_annotates,
    patches,
    deletes,
    deletes_with_dependents,
    waits,
    describes,
    discovers,
    proxies,
}

/// ConfigMap `name` with one label and one entry.
fn configmap(name: &str, app: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, labels: {{app: {app}}}}}
data: {{color: blue}}
"
    )
}

async fn create_configmaps(kubectl: &Kubectl, names: &[&str]) {
    for name in names {
        let printed = kubectl.run_with("create -f -", &configmap(name, "web")).await;
        assert_eq!(printed, format!("configmap/{name} created\n"));
    }
}

async fn creates_and_deletes_many_kinds(kubectl: &Kubectl) {
    let objects = [
        ("configmap", "configmap", "settings"),
        ("secret", "secret", "credentials"),
        ("serviceaccount", "serviceaccount", "robot"),
        ("service", "service", "web"),
        ("pod", "pod", "web-0"),
        ("persistentvolumeclaim", "persistentvolumeclaim", "disk"),
        ("deployment.apps", "deployment", "web"),
        ("job.batch", "job", "once"),
        ("role.rbac.authorization.k8s.io", "role", "reader"),
        ("ingress.networking.k8s.io", "ingress", "web"),
        ("namespace", "namespace", "team"),
        ("storageclass.storage.k8s.io", "storageclass", "fast"),
    ];
    let lines = |suffix: &str| -> String {
        objects.iter().map(|(kind, _, name)| format!("{kind}/{name}{suffix}\n")).collect()
    };
    assert_eq!(
        kubectl.run("create -f kinds.yaml --dry-run=server").await,
        lines(" created (server dry run)")
    );
    assert!(kubectl.fail("get -f kinds.yaml").await.contains(r#"configmaps "settings" not found"#));
    assert_eq!(kubectl.run("create -f kinds.yaml").await, lines(" created"));
    let again = kubectl.fail("create -f kinds.yaml").await;
    assert_eq!(again.lines().count(), objects.len());
    assert_eq!(
        again.lines().next().unwrap(),
        r#"Error from server (AlreadyExists): error when creating "kinds.yaml": configmaps "settings" already exists"#
    );
    assert_eq!(kubectl.run("get -f kinds.yaml -o name").await, lines(""));
    for (_, kind, name) in objects {
        assert!(
            kubectl.run(&format!("get {kind} {name} -o yaml")).await.contains(&format!("name: {name}\n"))
        );
    }
    assert_eq!(
        kubectl.table("get pods -o wide").await,
        rows(
            "NAME   READY  STATUS   RESTARTS  IP      NODE    NOMINATED NODE  READINESS GATES\n\
             web-0  0/1    Pending  0         <none>  <none>  <none>          <none>"
        )
    );
    assert_eq!(
        kubectl.table("get deployments -o wide").await,
        rows(
            "NAME  READY  UP-TO-DATE  AVAILABLE  CONTAINERS  IMAGES   SELECTOR\n\
             web   0/3    0           0          web         nginx:1  app=web"
        )
    );
    assert_eq!(
        kubectl.table("get jobs,ingresses,storageclasses").await[..3],
        rows("NAME  STATUS  COMPLETIONS  DURATION\njob.batch/once  Running  0/1\n\n")
    );
    let deleted = kubectl.run("delete -f kinds.yaml").await;
    assert_eq!(deleted.lines().count(), objects.len());
    for (line, (kind, _, name)) in deleted.lines().zip(objects) {
        assert!(line.starts_with(&format!(r#"{kind} "{name}" deleted"#)), "{line}");
    }
    // kubectl has waited for each to be gone.
    assert_eq!(kubectl.fail("get -f kinds.yaml").await.lines().count(), objects.len());
}

async fn creates_from_json(kubectl: &Kubectl) {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": {"n": "1"}},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lock"}}
    ]}"#;
    let printed = kubectl.run_with("create -f -", list).await;
    let (configmap, rest) = printed.split_once('\n').unwrap();
    assert!(configmap.starts_with("configmap/c-") && configmap.ends_with(" created"), "{printed}");
    assert_eq!(rest, "lease.coordination.k8s.io/lock created\n");
    let name = configmap.trim_end_matches(" created");
    assert_eq!(name.len(), "configmap/c-".len() + 5);
    assert_eq!(kubectl.run(&format!("get {name} -o jsonpath={{.data}}")).await, r#"{"n":"1"}"#);
    let missing = kubectl.end_of("create -n nowhere -f -", &crate::configmap("a", "web")).await;
    assert_eq!(
        missing.stderr,
        "Error from server (NotFound): error when creating \"STDIN\": namespaces \"nowhere\" not found\n"
    );
}

async fn reads_in_every_format(kubectl: &Kubectl) {
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
        kubectl.run("get cm a -o jsonpath='{.kind} {.apiVersion} {.data.color}'").await,
        "ConfigMap v1 blue"
    );
    let yaml = kubectl.run("get cm a -o yaml").await;
    assert!(yaml.starts_with("apiVersion: v1\ndata:\n  color: blue\nkind: ConfigMap\n"), "{yaml}");
    let json: serde_json::Value = serde_json::from_str(&kubectl.run("get cm -o json").await).unwrap();
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"][0]["metadata"]["labels"]["app"], "web");
    assert_eq!(json["items"][0]["kind"], "ConfigMap");
    assert_eq!(
        kubectl.run("get cm -o custom-columns=N:.metadata.name,C:.data.color").await,
        "N   C\na   blue\n"
    );
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

async fn selects_and_pages(kubectl: &Kubectl) {
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

async fn watches(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let columns = "-o custom-columns=N:.metadata.name,C:.data.color --no-headers";
    let mut watch = kubectl.keep_running(&format!("get cm -w --output-watch-events {columns}")).await;
    let mut only_b =
        kubectl.keep_running(&format!("get cm -w --field-selector metadata.name=b {columns}")).await;
    assert_eq!(rows(&watch.line().await), rows("ADDED  a  blue"));
    create_configmaps(kubectl, &["b"]).await;
    kubectl.run("patch cm a --type merge -p '{\"data\":{\"color\":\"red\"}}'").await;
    kubectl.run("delete cm b").await;
    assert_eq!(rows(&watch.line().await), rows("ADDED  b  blue"));
    assert_eq!(rows(&watch.line().await), rows("MODIFIED  a  red"));
    assert_eq!(rows(&watch.line().await), rows("DELETED  b  blue"));
    assert_eq!(rows(&only_b.line().await), rows("b  blue"));
    let mut table = kubectl.keep_running("get cm -w").await;
    assert_eq!(rows(&table.line().await), [["NAME", "DATA"]].map(|row| row.map(str::to_owned).to_vec()));
    assert!(table.line().await.starts_with("a "));
}

async fn replaces(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let read = kubectl.run("get cm a -o yaml").await;
    let changed = read.replace("color: blue", "color: green");
    assert_eq!(kubectl.run_with("replace -f -", &changed).await, "configmap/a replaced\n");
    assert_eq!(kubectl.run("get cm a -o jsonpath={.data.color}").await, "green");
    let stale = kubectl.end_of("replace -f -", &read).await;
    assert!(!stale.success);
    assert!(
        stale.stderr.starts_with("Error from server (Conflict): error when replacing \"STDIN\": Operation cannot be fulfilled on configmaps \"a\": the object has been modified;"),
        "{}",
        stale.stderr
    );
    assert_eq!(kubectl.run_with("replace -f -", &configmap("a", "new")).await, "configmap/a replaced\n");
    let forced = kubectl.run_with("replace --force -f -", &configmap("a", "newer")).await;
    assert!(forced.ends_with("configmap/a replaced\n"), "{forced}");
    let missing = kubectl.end_of("replace -f -", &configmap("b", "web")).await;
    assert!(missing.stderr.contains("(NotFound)"), "{}", missing.stderr);
}

async fn labels_and_annotates(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a", "b"]).await;
    assert_eq!(kubectl.run("label cm a tier=front").await, "configmap/a labeled\n");
    assert_eq!(
        kubectl.fail("label cm a tier=back").await,
        "error: 'tier' already has a value (front), and --overwrite is false\n"
    );
    assert_eq!(kubectl.run("label cm a tier=back --overwrite").await, "configmap/a labeled\n");
    assert_eq!(
        kubectl.run("label cm -l app=web size=xl").await,
        "configmap/a labeled\nconfigmap/b labeled\n"
    );
    assert_eq!(kubectl.run("get cm -o name -l size=xl,tier=back").await, "configmap/a\n");
    assert_eq!(kubectl.run("label cm a tier-").await, "configmap/a unlabeled\n");
    assert_eq!(kubectl.run("get cm -o name -l tier").await, "");
    assert_eq!(kubectl.run("annotate cm a note='two words'").await, "configmap/a annotated\n");
    assert_eq!(kubectl.run("get cm a -o jsonpath={.metadata.annotations.note}").await, "two words");
    assert_eq!(kubectl.run("annotate cm a note-").await, "configmap/a annotated\n");
    assert_eq!(kubectl.run("get cm a -o jsonpath={.metadata.annotations}").await, "");
    let bad = kubectl.fail("label cm a 'tier=not a value'").await;
    assert!(bad.contains("a valid label must be"), "{bad}");
}

async fn patches(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let json = |patch: &str| format!("patch cm a --type json -p '{patch}'");
    let merge = |patch: &str| format!("patch cm a --type merge -p '{patch}'");
    let patched = "configmap/a patched\n";
    let add = json(
        r#"[{"op": "test", "path": "/data/color", "value": "blue"}, {"op": "add", "path": "/data/size", "value": "xl"}]"#,
    );
    assert_eq!(kubectl.run(&add).await, patched);
    assert_eq!(kubectl.run(&merge(r#"{"data": {"color": null, "shape": "round"}}"#)).await, patched);
    let unchanged = merge(r#"{"data": {"shape": "round"}}"#);
    assert_eq!(kubectl.run(&unchanged).await, "configmap/a patched (no change)\n");
    assert_eq!(
        kubectl.run(&format!("{} --dry-run=server", merge(r#"{"data": null}"#))).await,
        "configmap/a patched (server dry run)\n"
    );
    assert_eq!(kubectl.run("get cm a -o jsonpath={.data}").await, r#"{"shape":"round","size":"xl"}"#);
    let failed = kubectl.fail(&json(r#"[{"op": "test", "path": "/data/size", "value": "s"}]"#)).await;
    assert!(failed.starts_with("The request is invalid: "), "{failed}");
    assert_eq!(
        kubectl.fail("patch cm b --type merge -p {}").await,
        "Error from server (NotFound): configmaps \"b\" not found\n"
    );
}

async fn deletes(kubectl: &Kubectl) {
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
            let pod = kubectl_pod(name);
            kubectl.run_with("create -f -", &pod).await;
        }
        // No node runs it, so nothing has to be stopped first.
        assert_eq!(kubectl.run(&format!("delete pod {name} {grace} -o name")).await, format!("pod/{name}\n"));
        assert!(kubectl.fail(&format!("get pod {name}")).await.contains("(NotFound)"));
    }
    // A namespace goes with what is in it, and kubectl waits for that.
    kubectl.run_with("create -n team -f -", &configmap("a", "web")).await;
    assert_eq!(kubectl.run("delete namespace team -o name").await, "namespace/team\n");
    assert_eq!(kubectl.run("get cm -A -o name").await, "configmap/settings\n");
}

fn kubectl_pod(name: &str) -> String {
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

async fn deletes_with_dependents(kubectl: &Kubectl) {
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
            // The child went first.
            "foreground" => assert!(kubectl.fail("get cm child").await.contains("(NotFound)")),
            "background" => {
                kubectl.run("wait --for=delete cm/child --timeout=60s").await;
            }
            _ => assert_eq!(kubectl.run(&format!("get cm child -o {owner}")).await, ""),
        }
    }
}

async fn waits(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let met = "configmap/a condition met\n";
    assert_eq!(kubectl.run("wait --for=jsonpath={.data.color}=blue cm/a").await, met);
    let change = "patch cm a --type merge -p '{\"data\":{\"color\":\"red\"}}'";
    let (waited, _) = tokio::join!(
        kubectl.run("wait --for=jsonpath={.data.color}=red cm/a --timeout=60s"),
        kubectl.run(change)
    );
    assert_eq!(waited, met);
    let (waited, _) =
        tokio::join!(kubectl.run("wait --for=delete cm/a --timeout=60s"), kubectl.run("delete cm a"));
    assert!(waited.is_empty() || waited == met, "{waited}");

    kubectl.run("create -f kinds.yaml").await;
    let wait = "wait --for=condition=Available deployment/web";
    let timed_out = kubectl.fail(&format!("{wait} --timeout=1s")).await;
    assert!(timed_out.starts_with("error: timed out waiting for the condition"), "{timed_out}");
    let status = r#"'{"status": {"conditions": [{"type": "Available", "status": "True"}]}}'"#;
    let patch = format!("patch deployment web --subresource=status --type=merge -p {status}");
    let wait = format!("{wait} --timeout=60s");
    let (waited, patched) = tokio::join!(kubectl.run(&wait), kubectl.run(&patch));
    assert_eq!(patched, "deployment.apps/web patched\n");
    assert_eq!(waited, "deployment.apps/web condition met\n");
}

async fn describes(kubectl: &Kubectl) {
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
            "Replicas:           3 desired | 0 updated | 0 total | 0 available | 0 unavailable",
        ),
        ("namespace team", "Status:       Active"),
        ("ingress web", "  example.com  "),
        ("role reader", "  pods       []                 []              [get list]"),
        ("job once", "Pods Statuses:    0 Active (0 Ready) / 0 Succeeded / 0 Failed"),
    ] {
        let text = kubectl.run(&format!("describe {object}")).await;
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    let event = r#"{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1"}, "type": "Warning",
        "reason": "Faded", "message": "too much sun", "source": {"component": "sky"},
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a"}}"#;
    kubectl.run_with("create -f -", event).await;
    let text = kubectl.run("describe cm a").await;
    assert!(text.contains("Faded") && text.contains("too much sun"), "{text}");
    assert!(kubectl.run("get events").await.contains("too much sun"));
}

async fn discovers(kubectl: &Kubectl) {
    let resources = kubectl.run("api-resources").await;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let resources: Vec<_> = resources.lines().map(words).collect();
    for line in [
        "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
        "configmaps cm v1 true ConfigMap",
        "namespaces ns v1 false Namespace",
        "deployments deploy apps/v1 true Deployment",
        "horizontalpodautoscalers hpa autoscaling/v2 true HorizontalPodAutoscaler",
        "leases coordination.k8s.io/v1 true Lease",
        "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition",
    ] {
        assert!(resources.contains(&words(line)), "{line} is not in {resources:#?}");
    }
    let versions = kubectl.run("api-versions").await;
    for version in ["v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "storage.k8s.io/v1"] {
        assert!(versions.lines().any(|line| line == version), "{version} is not in {versions}");
    }
    let namespaced = kubectl.run("api-resources --namespaced=false -o name").await;
    assert!(namespaced.lines().any(|line| line == "namespaces"));
    assert!(!namespaced.lines().any(|line| line == "configmaps"));
    assert!(kubectl.run("api-resources --api-group=apps -o name").await.contains("deployments.apps\n"));

    let version = kubectl.run("version").await;
    assert!(version.lines().any(|line| line.starts_with("Server Version: v1.37.")), "{version}");
    let info = kubectl.run("cluster-info").await;
    assert!(info.contains("Kubernetes control plane") && info.contains("https://127.0.0.1:"), "{info}");
    assert!(kubectl.run("get all").await.is_empty());
    assert_eq!(kubectl.run("get --raw /livez").await, "ok");
    let missing = kubectl.fail("get --raw /nowhere").await;
    assert!(missing.contains("the server could not find the requested resource"), "{missing}");
}

async fn proxies(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let mut proxy = kubectl.keep_running("proxy --port=0").await;
    let line = proxy.line().await;
    let address = line.strip_prefix("Starting to serve on ").unwrap_or_else(|| panic!("{line}"));
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = "GET /api/v1/namespaces/default/configmaps/a HTTP/1.0\r\nHost: localhost\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.0 200 OK\r\n"), "{response}");
    assert!(response.contains(r#""color":"blue""#), "{response}");
}
