//! Nodes and what runs on them, certificates, and the explanations of every kind.

use crate::tool::Kubectl;

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";

/// A node, and two pods on it that terminate at once.
async fn node_with_pods(kubectl: &Kubectl) {
    kubectl.run_with("create -f -", NODE).await;
    for name in ["web-0", "web-1"] {
        let pod = format!(
            "apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: web}}}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  containers: [{{name: web, image: 'nginx:1'}}]
"
        );
        kubectl.run_with("create -f -", &pod).await;
        let status = "{\"status\": {\"phase\": \"Running\", \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}";
        kubectl.run(&format!("patch pod {name} --subresource=status --type=merge -p '{status}'")).await;
    }
}

pub async fn drains(kubectl: &Kubectl) {
    node_with_pods(kubectl).await;
    assert_eq!(kubectl.run("cordon n1").await, "node/n1 cordoned\n");
    assert_eq!(kubectl.run("get node n1 -o jsonpath={.spec.unschedulable}").await, "true");
    assert_eq!(kubectl.run("uncordon n1").await, "node/n1 uncordoned\n");
    assert_eq!(kubectl.run("get node n1 -o jsonpath={.spec.unschedulable}").await, "");

    kubectl.run("create pdb web --selector=app=web --min-available=2").await;
    let none = "{\"status\": {\"observedGeneration\": 1, \"disruptionsAllowed\": 0, \"currentHealthy\": 2, \"desiredHealthy\": 2, \"expectedPods\": 2}}";
    kubectl.run(&format!("patch pdb web --subresource=status --type=merge -p '{none}'")).await;
    let held = kubectl.fail("drain n1 --force --timeout=1s").await;
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert!(held.contains("pods/\"web-0\"") && held.contains(why), "{held}");
    assert_eq!(kubectl.run("get pods -o name").await, "pod/web-0\npod/web-1\n");

    let two = none.replace("\"disruptionsAllowed\": 0", "\"disruptionsAllowed\": 2");
    kubectl.run(&format!("patch pdb web --subresource=status --type=merge -p '{two}'")).await;
    let drained = kubectl.run("drain n1 --force").await;
    assert!(drained.contains("pod/web-0 evicted\n") && drained.contains("pod/web-1 evicted\n"), "{drained}");
    assert!(drained.ends_with("node/n1 drained\n"), "{drained}");
    assert_eq!(kubectl.run("get pods -o name").await, "");
    assert_eq!(kubectl.run("get pdb web -o jsonpath={.status.disruptionsAllowed}").await, "0");
}

pub async fn taints(kubectl: &Kubectl) {
    kubectl.run_with("create -f -", NODE).await;
    let taints = "get node n1 -o jsonpath={.spec.taints[*].key}";
    // New nodes have this taint.
    let not_ready = "taint node n1 node.kubernetes.io/not-ready:NoSchedule-";
    assert_eq!(kubectl.run(not_ready).await, "node/n1 untainted\n");
    assert_eq!(kubectl.run("taint node n1 disk=slow:NoSchedule").await, "node/n1 tainted\n");
    assert_eq!(kubectl.run(taints).await, "disk");
    let again = kubectl.fail("taint node n1 disk=fast:NoSchedule").await;
    assert!(again.contains("already has disk taint(s) with same effect(s)"), "{again}");
    assert_eq!(kubectl.run("taint node n1 disk=fast:NoSchedule --overwrite").await, "node/n1 modified\n");
    assert_eq!(kubectl.run("taint node n1 disk:NoSchedule-").await, "node/n1 untainted\n");
    assert_eq!(kubectl.run(taints).await, "");
}

pub async fn debugs(kubectl: &Kubectl) {
    node_with_pods(kubectl).await;
    kubectl.run("debug web-0 --image=busybox -c tools --quiet -- sleep 1d").await;
    let path = "get pod web-0 -o 'jsonpath={.spec.ephemeralContainers[*].name} {.spec.ephemeralContainers[*].image}'";
    assert_eq!(kubectl.run(path).await, "tools busybox");
    kubectl.run("debug web-0 --image=alpine -c more --target=web --quiet -- true").await;
    let names = "get pod web-0 -o jsonpath={.spec.ephemeralContainers[*].name}";
    assert_eq!(kubectl.run(names).await, "tools more");
    let described = kubectl.run("describe pod web-0").await;
    assert!(described.contains("Ephemeral Containers:\n  tools:\n"), "{described}");
}

pub async fn decides_on_certificates(kubectl: &Kubectl) {
    for name in ["yes", "no"] {
        let request = base64(include_bytes!("../fixtures/request.pem"));
        let object = format!(
            "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: '{name}'}}
spec: {{signerName: example.com/s, usages: [client auth], request: {request}}}
"
        );
        kubectl.run_with("create -f -", &object).await;
    }
    let group = "certificatesigningrequest.certificates.k8s.io";
    assert_eq!(kubectl.run("certificate approve yes").await, format!("{group}/yes approved\n"));
    assert_eq!(kubectl.run("certificate deny no").await, format!("{group}/no denied\n"));
    let condition = "-o 'jsonpath={.status.conditions[0].type} {.status.conditions[0].reason}'";
    assert_eq!(kubectl.run(&format!("get csr yes {condition}")).await, "Approved KubectlApprove");
    assert_eq!(kubectl.run(&format!("get csr no {condition}")).await, "Denied KubectlDeny");
    let table = kubectl.table("get csr").await;
    let row = |name: &str| table.iter().find(|row| row[0] == name).and_then(|row| row.last()).cloned();
    assert_eq!((row("yes").as_deref(), row("no").as_deref()), (Some("Approved"), Some("Denied")));
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

pub async fn scales_by_itself(kubectl: &Kubectl) {
    kubectl.run("create deployment web --image=nginx:1").await;
    let scaled = kubectl.run("autoscale deployment web --min=2 --max=5 --cpu-percent=80").await;
    assert_eq!(scaled, "horizontalpodautoscaler.autoscaling/web autoscaled\n");
    let path =
        "{.spec.minReplicas} {.spec.maxReplicas} {.spec.metrics[0].resource.target.averageUtilization}";
    assert_eq!(
        kubectl.run(&format!("get horizontalpodautoscalers.v2.autoscaling web -o 'jsonpath={path}'")).await,
        "2 5 80"
    );
    let path = "{.spec.targetCPUUtilizationPercentage}";
    assert_eq!(
        kubectl.run(&format!("get horizontalpodautoscalers.v1.autoscaling web -o 'jsonpath={path}'")).await,
        "80"
    );
}

pub async fn explains_and_gets_every_kind(kubectl: &Kubectl) {
    let pod = kubectl.run("explain pod --recursive").await;
    for line in ["spec\t<PodSpec>", "containerPort\t<integer> -required-", "livenessProbe\t<Probe>"] {
        assert!(pod.lines().any(|found| found.trim() == line), "{line:?} is not in {pod}");
    }
    let strategy = kubectl.run("explain deployment.spec.strategy").await;
    assert!(strategy.starts_with("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n"), "{strategy}");
    for line in ["FIELD: strategy <DeploymentStrategy>", "rollingUpdate\t<RollingUpdateDeployment>"] {
        assert!(strategy.lines().any(|found| found.trim() == line), "{line:?} is not in {strategy}");
    }
    let (_, description) = strategy.split_once("DESCRIPTION:\n").expect("a description");
    assert!(!description.trim_start().starts_with("<empty>"), "{strategy}");
    let resources = kubectl.run("api-resources --verbs=list -o name").await;
    let mut count = 0;
    for resource in resources.lines() {
        // With a group, kubectl would treat `events.events.k8s.io` as a path of fields.
        let plural = resource.split('.').next().expect("a plural");
        let explained = kubectl.run(&format!("explain {plural} --recursive")).await;
        assert!(explained.contains("FIELDS:\n"), "{resource}: {explained}");
        let by_v2 = kubectl.run(&format!("explain {plural} --output plaintext-openapiv2")).await;
        assert!(by_v2.contains("KIND: ") && by_v2.contains("FIELDS:\n"), "{resource}: {by_v2}");
        kubectl.run(&format!("get {resource} -A -o yaml")).await;
        kubectl.run(&format!("get {resource} -A -o wide")).await;
        count += 1;
    }
    assert!(count > 60, "{resources}");
}
