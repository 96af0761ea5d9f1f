//! Commands for which kubectl knows the kinds, and therefore sends protobuf.

use crate::tool::Kubectl;

pub async fn creates_imperatively(kubectl: &Kubectl) {
    for (command, created) in [
        ("namespace team", "namespace/team"),
        ("configmap a --from-literal=color=blue --from-file=kinds=kinds.yaml", "configmap/a"),
        ("secret generic s --from-literal=password=hunter2", "secret/s"),
        ("serviceaccount robot", "serviceaccount/robot"),
        ("deployment web --image=nginx:1 --replicas=3 --port=80", "deployment.apps/web"),
        ("job once --image=busybox -- true", "job.batch/once"),
        ("cronjob often --image=busybox '--schedule=*/5 * * * *' -- true", "cronjob.batch/often"),
        ("service clusterip web --tcp=80:8080", "service/web"),
        ("role reader --verb=get,list --resource=pods", "role.rbac.authorization.k8s.io/reader"),
        ("rolebinding readers --role=reader --user=jane", "rolebinding.rbac.authorization.k8s.io/readers"),
        ("quota small --hard=pods=2,cpu=1", "resourcequota/small"),
        ("ingress web --rule=example.com/*=web:80", "ingress.networking.k8s.io/web"),
        ("priorityclass high --value=1000", "priorityclass.scheduling.k8s.io/high"),
        ("clusterrole viewer --verb=get --resource=nodes", "clusterrole.rbac.authorization.k8s.io/viewer"),
        ("pdb web --selector=app=web --min-available=1", "poddisruptionbudget.policy/web"),
    ] {
        let dry = kubectl.run(&format!("create --dry-run=server -o name {command}")).await;
        assert_eq!(dry, format!("{created}\n"));
        assert_eq!(kubectl.run(&format!("create {command}")).await, format!("{created} created\n"));
        kubectl.run(&format!("get {created}")).await;
    }
    assert_eq!(kubectl.run("get cm a -o jsonpath={.data.color}").await, "blue");
    assert_eq!(kubectl.run("get secret s -o jsonpath={.data.password}").await, "aHVudGVyMg==");
    let replicas = "get deployment web -o jsonpath={.spec.replicas}";
    assert_eq!(kubectl.run(replicas).await, "3");
    assert_eq!(kubectl.run("scale deployment web --replicas=5").await, "deployment.apps/web scaled\n");
    assert_eq!(kubectl.run(replicas).await, "5");
    assert_eq!(
        kubectl.fail("run alone --image=nginx:1").await,
        "Error from server (Forbidden): pods \"alone\" is forbidden: failed quota: small: must specify cpu for: alone\n"
    );
    assert_eq!(kubectl.run("get quota small -o jsonpath={.status.used.pods}").await, "0");
    kubectl.run("delete quota small").await;
    assert_eq!(kubectl.run("run alone --image=nginx:1").await, "pod/alone created\n");
    assert_eq!(kubectl.run("get pod alone -o jsonpath={.spec.containers[0].image}").await, "nginx:1");
    let exposed = kubectl.run("expose deployment web --name=front --port=80").await;
    assert_eq!(exposed, "service/front exposed\n");
    assert_eq!(kubectl.run("get service front -o jsonpath={.spec.selector.app}").await, "web");
    assert_eq!(kubectl.run("get cronjob often -o jsonpath={.spec.schedule}").await, "*/5 * * * *");
    let token = kubectl.run("create token robot --duration=10m").await;
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
    let again = kubectl.fail("create configmap a").await;
    assert!(again.ends_with("configmaps \"a\" already exists\n"), "{again}");
}

pub async fn asks_who_it_is_and_what_it_may(kubectl: &Kubectl) {
    assert_eq!(kubectl.run("auth can-i create deployments.apps").await, "yes\n");
    assert_eq!(kubectl.run("auth can-i '*' '*' -A").await, "yes\n");
    let who = kubectl.run("auth whoami").await;
    for (attribute, value) in
        [("Username", "kubernetes-admin"), ("Groups", "[system:masters system:authenticated]")]
    {
        let line = who.lines().find_map(|line| line.strip_prefix(attribute));
        assert_eq!(line.map(str::trim), Some(value), "{who}");
    }
    let rules = kubectl.run("auth can-i --list").await;
    assert!(rules.lines().any(|line| line.split_whitespace().eq(["*.*", "[]", "[]", "[*]"])), "{rules}");

    let jane = kubectl.as_jane();
    let pods = "get --raw /api/v1/namespaces/default/pods";
    assert_eq!(
        kubectl.fail(&format!("{pods} {jane}")).await,
        "Error from server (Forbidden): pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"\n"
    );
    assert_eq!(
        kubectl.fail(&format!("{pods} {}", jane.replace("jane-token", "no-token"))).await,
        "error: You must be logged in to the server (Unauthorized)\n"
    );
}

/// Roles and bindings as people make them, and what their user may do then.
pub async fn grants(kubectl: &Kubectl) {
    let jane = kubectl.as_jane();
    kubectl.run("create configmap c --from-literal=a=b").await;
    let list = format!("get configmaps -o name {jane}");
    assert!(kubectl.fail(&list).await.contains("User \"jane\" cannot list resource \"configmaps\""));
    kubectl.run("create role reader --verb=get,list --resource=configmaps").await;
    kubectl.run("create rolebinding readers --role=reader --user=jane").await;
    assert_eq!(kubectl.run(&list).await, "configmap/c\n");
    assert_eq!(kubectl.run(&format!("auth can-i list configmaps {jane}")).await, "yes\n");
    let refused = kubectl.fail(&format!("delete configmap c {jane}")).await;
    assert!(refused.contains("cannot delete resource"), "{refused}");
    kubectl.run("create clusterrole scaler --verb=get,update --resource=deployments.apps/scale").await;
    kubectl.run("create clusterrolebinding scalers --clusterrole=scaler --group=dev").await;
    let rules = kubectl.run(&format!("auth can-i --list {jane}")).await;
    for line in ["configmaps [] [] [get list]", "deployments.apps/scale [] [] [get update]"] {
        let found = rules.lines().any(|own| own.split_whitespace().eq(line.split(' ')));
        assert!(found, "{line}: {rules}");
    }
    let wanted = r#"{"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "reader", "namespace": "default"},
        "rules": [{"verbs": ["watch"], "apiGroups": [""], "resources": ["configmaps"]}]}"#;
    let reconciled = kubectl.run_with("auth reconcile -f -", wanted).await;
    assert!(reconciled.contains("role.rbac.authorization.k8s.io/reader reconciled"), "{reconciled}");
    assert_eq!(kubectl.run(&format!("auth can-i watch configmaps {jane}")).await, "yes\n");
    // What she does not have she cannot grant.
    kubectl.run("create role maker --verb=create --resource=roles.rbac.authorization.k8s.io").await;
    kubectl.run("create rolebinding makers --role=maker --user=jane").await;
    let refused = kubectl.fail(&format!("create role more --verb=get --resource=secrets {jane}")).await;
    assert!(refused.contains("is attempting to grant RBAC permissions not currently held"), "{refused}");
}
