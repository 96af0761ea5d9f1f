//! `apply` on either side, `diff`, `edit`, `set`, `scale` and `rollout`.

use crate::tool::Kubectl;

/// The Deployment of `web.yaml` with another image and number of replicas.
fn web(image: &str, replicas: u32) -> String {
    include_str!("web.yaml")
        .replace("nginx:1", image)
        .replace("replicas: 2", &format!("replicas: {replicas}"))
}

async fn field(kubectl: &Kubectl, path: &str) -> String {
    kubectl.run(&format!("get deployment web -o jsonpath={{{path}}}")).await
}

pub async fn applies(kubectl: &Kubectl) {
    assert_eq!(kubectl.run("apply -f web.yaml").await, "deployment.apps/web created\n");
    assert_eq!(kubectl.run("apply -f web.yaml").await, "deployment.apps/web unchanged\n");
    assert_eq!(kubectl.run_with("apply -f -", &web("nginx:2", 3)).await, "deployment.apps/web configured\n");
    assert_eq!(field(kubectl, ".spec.template.spec.containers[*].image").await, "nginx:2");
    // Fields that others added stay; fields that are not applied any more go.
    kubectl.run("label deployment web team=red").await;
    let less = web("nginx:2", 3).replace(", tier: front", "");
    assert_eq!(kubectl.run_with("apply -f -", &less).await, "deployment.apps/web configured\n");
    assert_eq!(field(kubectl, ".metadata.labels").await, r#"{"app":"web","team":"red"}"#);
    let diff = kubectl.end_of("diff -f -", &web("nginx:3", 3)).await;
    assert!(diff.stdout.contains("nginx:3") && !diff.success, "{diff:?}");
    let tried = kubectl.run_with("apply --dry-run=server -f -", &web("nginx:4", 3)).await;
    assert_eq!(tried, "deployment.apps/web configured (server dry run)\n");
    assert_eq!(field(kubectl, ".spec.template.spec.containers[*].image").await, "nginx:2");
}

pub async fn applies_on_the_server(kubectl: &Kubectl) {
    let apply = "apply --server-side -f -";
    let applied = "deployment.apps/web serverside-applied\n";
    assert_eq!(kubectl.run_with(apply, &web("nginx:1", 2)).await, applied);
    assert_eq!(kubectl.run_with(apply, &web("nginx:1", 2)).await, applied);
    let other = kubectl.end_of("apply --server-side --field-manager=other -f -", &web("nginx:1", 5)).await;
    assert!(!other.success);
    assert!(
        other.stderr.starts_with(
            "error: Apply failed with 1 conflict: conflict with \"kubectl\": .spec.replicas\nPlease review the fields above"
        ),
        "{}",
        other.stderr
    );
    let forced = "apply --server-side --field-manager=other --force-conflicts -f -";
    assert_eq!(kubectl.run_with(forced, &web("nginx:1", 5)).await, applied);
    assert_eq!(field(kubectl, ".spec.replicas").await, "5");
    let managers = kubectl.run("get deployment web -o jsonpath={.metadata.managedFields[*].manager}").await;
    assert_eq!(managers, "kubectl other");
}

pub async fn moves_to_the_server(kubectl: &Kubectl) {
    kubectl.run("apply -f web.yaml").await;
    let applied = kubectl.end_of("apply --server-side -f -", &web("nginx:2", 2)).await;
    assert!(applied.success, "{}", applied.stderr);
    assert_eq!(field(kubectl, ".spec.template.spec.containers[*].image").await, "nginx:2");
    let managers = kubectl.run("get deployment web -o jsonpath={.metadata.managedFields[*].manager}").await;
    // The annotation has a manager of its own; the manager of client-side apply is gone.
    assert_eq!(managers, "kubectl-last-applied kubectl");
    let less = web("nginx:2", 2).replace(", tier: front", "");
    kubectl.run_with("apply --server-side -f -", &less).await;
    assert_eq!(field(kubectl, ".metadata.labels").await, r#"{"app":"web"}"#);
}

pub async fn edits(kubectl: &Kubectl) {
    kubectl.run("create -f web.yaml").await;
    let edited = kubectl.run_in("EDITOR", "sed -i s/nginx:1/nginx:9/", "edit deployment web").await;
    assert_eq!(edited, "deployment.apps/web edited\n");
    assert_eq!(field(kubectl, ".spec.template.spec.containers[*].image").await, "nginx:9");
}

pub async fn changes_deployments(kubectl: &Kubectl) {
    kubectl.run("apply -f web.yaml").await;
    for (line, printed) in [
        ("set image deployment/web app=nginx:5", "image updated"),
        ("set env deployment/web COLOR=red", "env updated"),
        ("set resources deployment/web --limits=cpu=1", "resource requirements updated"),
        ("scale deployment web --replicas=4", "scaled"),
        ("rollout pause deployment web", "paused"),
        ("rollout resume deployment web", "resumed"),
        ("rollout restart deployment web", "restarted"),
        ("patch deployment web -p '{\"spec\":{\"minReadySeconds\":5}}'", "patched"),
    ] {
        assert_eq!(kubectl.run(line).await, format!("deployment.apps/web {printed}\n"));
    }
    assert_eq!(field(kubectl, ".spec.replicas").await, "4");
    assert_eq!(field(kubectl, ".spec.minReadySeconds").await, "5");
    assert_eq!(field(kubectl, ".spec.template.spec.containers[*].image").await, "nginx:5");
    let env = field(kubectl, ".spec.template.spec.containers[*].env[*].name").await;
    assert!(env.contains("MODE") && env.contains("COLOR"), "{env}");
}

pub async fn refuses_typos(kubectl: &Kubectl) {
    let typo = web("nginx:1", 2).replace("image: nginx:1", "imagePullpolicy: Always\n        image: nginx:1");
    let unknown = r#"unknown field "spec.template.spec.containers[0].imagePullpolicy""#;
    for validate in ["", "--validate=strict"] {
        let refused = kubectl.end_of(&format!("apply {validate} -f -"), &typo).await;
        assert!(!refused.success && refused.stderr.contains("Error from server (BadRequest)"), "{refused:?}");
        assert!(refused.stderr.contains(&format!("strict decoding error: {unknown}")), "{refused:?}");
    }
    let warned = kubectl.end_of("apply --validate=warn -f -", &typo).await;
    assert_eq!((warned.success, &*warned.stdout), (true, "deployment.apps/web created\n"), "{warned:?}");
    assert!(warned.stderr.contains(&format!("Warning: {unknown}")), "{warned:?}");
    let ignored = kubectl.end_of("apply --validate=ignore -f -", &typo).await;
    assert!(ignored.success && !ignored.stderr.contains("Warning"), "{ignored:?}");
    assert_eq!(field(kubectl, ".spec.template.spec.containers[0].imagePullPolicy").await, "IfNotPresent");
}
