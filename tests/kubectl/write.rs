//! `create`, `replace`, `patch`, `label` and `annotate`.

use crate::tool::{Kubectl, rows};
use crate::{configmap, create_configmaps};

pub async fn creates_and_deletes_many_kinds(kubectl: &Kubectl) {
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
        kubectl.table("get storageclasses").await,
        rows(
            "NAME  PROVISIONER       RECLAIMPOLICY  VOLUMEBINDINGMODE  ALLOWVOLUMEEXPANSION\n\
             fast  example.com/fast  Delete         Immediate          false"
        )
    );
    // What kube-controller-manager does to unused storage.
    kubectl.run(r#"patch pvc disk --type=merge -p '{"metadata":{"finalizers":null}}'"#).await;
    let deleted = kubectl.run("delete -f kinds.yaml").await;
    assert_eq!(deleted.lines().count(), objects.len());
    for (line, (kind, _, name)) in deleted.lines().zip(objects) {
        assert!(line.starts_with(&format!(r#"{kind} "{name}" deleted"#)), "{line}");
    }
    // kubectl has waited until each was gone.
    assert_eq!(kubectl.fail("get -f kinds.yaml").await.lines().count(), objects.len());
}

pub async fn creates_from_json(kubectl: &Kubectl) {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": {"n": "1"}},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lock"}}
    ]}"#;
    let printed = kubectl.run_with("create -f -", list).await;
    let (created, rest) = printed.split_once('\n').unwrap();
    assert!(created.starts_with("configmap/c-") && created.ends_with(" created"), "{printed}");
    assert_eq!(rest, "lease.coordination.k8s.io/lock created\n");
    let name = created.trim_end_matches(" created");
    assert_eq!(name.len(), "configmap/c-".len() + 5);
    assert_eq!(kubectl.run(&format!("get {name} -o jsonpath={{.data}}")).await, r#"{"n":"1"}"#);
    let missing = kubectl.end_of("create -n nowhere -f -", &configmap("a", "web")).await;
    assert_eq!(
        missing.stderr,
        "Error from server (NotFound): error when creating \"STDIN\": namespaces \"nowhere\" not found\n"
    );
}

pub async fn replaces(kubectl: &Kubectl) {
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

pub async fn labels_and_annotates(kubectl: &Kubectl) {
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
    assert_eq!(kubectl.run("annotate cm a 'note=two words'").await, "configmap/a annotated\n");
    assert_eq!(kubectl.run("get cm a -o jsonpath={.metadata.annotations.note}").await, "two words");
    assert_eq!(kubectl.run("annotate cm a note-").await, "configmap/a annotated\n");
    assert_eq!(kubectl.run("get cm a -o jsonpath={.metadata.annotations}").await, "");
    let bad = kubectl.fail("label cm a 'tier=not a value'").await;
    assert!(bad.contains("a valid label must be"), "{bad}");
}

pub async fn patches(kubectl: &Kubectl) {
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
    // The output does not say that it is a dry run.
    let dry_run = format!("{} --dry-run=server", merge(r#"{"data": null}"#));
    assert_eq!(kubectl.run(&dry_run).await, patched);
    assert_eq!(kubectl.run("get cm a -o jsonpath={.data}").await, r#"{"shape":"round","size":"xl"}"#);
    let failed = kubectl.fail(&json(r#"[{"op": "test", "path": "/data/size", "value": "s"}]"#)).await;
    assert!(failed.starts_with("The request is invalid: "), "{failed}");
    assert_eq!(
        kubectl.fail("patch cm b --type merge -p {}").await,
        "Error from server (NotFound): configmaps \"b\" not found\n"
    );
}

pub async fn is_told_what_is_wrong(kubectl: &Kubectl) {
    let pod = |spec: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n");
    let one = kubectl.end_of("create -f -", &pod("{containers: [{name: app}]}")).await;
    assert_eq!(one.stderr, "The Pod \"p\" is invalid: spec.containers[0].image: Required value\n");
    let several = pod("{restartPolicy: Sometimes, containers: [{name: app}]}");
    let several = kubectl.end_of("create -f -", &several).await;
    assert!(!several.success);
    let mut lines: Vec<&str> = several.stderr.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "The Pod \"p\" is invalid: ",
            "* spec.containers[0].image: Required value",
            "* spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ]
    );
    kubectl.run("create -f web.yaml").await;
    let moved =
        kubectl.fail(r#"patch deployment web -p '{"spec":{"selector":{"matchLabels":{"app":"x"}}}}'"#).await;
    assert!(moved.starts_with("The Deployment \"web\" is invalid: \n"), "{moved}");
    assert!(
        moved.contains(
            "* spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable\n"
        ),
        "{moved}"
    );
    assert_eq!(kubectl.run("get deployment web -o jsonpath={.spec.selector.matchLabels.app}").await, "web");
}
