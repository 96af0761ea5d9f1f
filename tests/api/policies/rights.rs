//! Who may write policies and bindings with params.

use rowplane::kinds::built_in::enablement::Enablement;
use serde_json::{Value, json};

use super::{BETA, BETA_BINDINGS, MUTATING, MUTATING_BINDINGS, VALIDATING, VALIDATING_BINDINGS};
use crate::support::client::Client;
use crate::support::server::Setup;

on_every_store! {
    writers_may_read_the_params,
    writers_of_a_beta_version_may_read_the_params,
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn policy(kind: &str, param: Value) -> Value {
    let constraints = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["configmaps"], "operations": ["CREATE"]}]});
    let spec = match kind {
        VALIDATING => json!({"validations": [{"expression": "true"}]}),
        _ => {
            json!({"reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch",
            "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/kind', value: 'x'}]"}}]})
        }
    };
    let mut policy = json!({"metadata": {"name": "p"}, "spec": spec});
    policy["spec"]["matchConstraints"] = constraints;
    policy["spec"]["paramKind"] = param;
    policy
}

fn binding(kind: &str, name: &str, reference: Value) -> Value {
    let mut binding = json!({"metadata": {"name": name}, "spec": {"policyName": "p", "paramRef": reference}});
    binding["spec"]["paramRef"]["parameterNotFoundAction"] = "Allow".into();
    if kind == VALIDATING_BINDINGS {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    binding
}

/// The path and the text of the only cause of a 422.
async fn forbidden(client: &Client, kind: &str, body: &Value) -> (String, String) {
    let failure = client.post(kind, body).await.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let causes = failure["details"]["causes"].as_array().expect("causes");
    assert_eq!((causes.len(), causes[0]["reason"].as_str()), (1, Some("FieldValueForbidden")), "{failure}");
    let text = |member: &str| causes[0][member].as_str().unwrap_or_default().to_owned();
    let why = text("message");
    (text("field"), why.strip_prefix("Forbidden: ").unwrap_or(&why).to_owned())
}

/// 3.9. Policies need `get` on all params, bindings on those that they name; members of system:masters need nothing.
async fn writers_may_read_the_params(setup: Setup) {
    may_read_the_params(setup, &[(VALIDATING, VALIDATING_BINDINGS), (MUTATING, MUTATING_BINDINGS)]).await;
}

/// Nobody gets around that by the other version.
async fn writers_of_a_beta_version_may_read_the_params(mut setup: Setup) {
    setup.enablement = Enablement::parse("api/beta=true").expect("known");
    may_read_the_params(setup, &[(BETA, BETA_BINDINGS)]).await;
}

async fn may_read_the_params(setup: Setup, kinds: &[(&str, &str)]) {
    let lines = "root-token,root,u-2,system:masters\nalice-token,alice,u-1,devs\n";
    std::fs::write(setup.file("tokens.csv"), lines).expect("write");
    let server = setup.start().await;
    let (root, alice) = (server.token("root-token"), server.token("alice-token"));
    let rules = json!([{"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]}]);
    let role = json!({"metadata": {"name": "policies"}, "rules": rules});
    root.post(format!("{RBAC}/clusterroles"), &role).await.expect(201);
    let binding_of = |name: &str| {
        json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": "alice"}]})
    };
    root.post(format!("{RBAC}/clusterrolebindings"), &binding_of("policies")).await.expect(201);
    let user = "&{alice u-1 [devs system:authenticated] map[]}";
    let secrets = json!({"apiVersion": "v1", "kind": "Secret"});
    for &(policies, bindings) in kinds {
        let whole = |kind: &str, version: &str| {
            format!(
                "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
                 apiVersion={version})"
            )
        };
        let refused = forbidden(&alice, policies, &policy(policies, secrets.clone())).await;
        assert_eq!(refused, ("spec.paramKind".to_owned(), whole("Secret", "v1")));
        let unknown = json!({"apiVersion": "ex.io/v1", "kind": "No"});
        let refused = forbidden(&alice, policies, &policy(policies, unknown)).await;
        assert_eq!(refused, ("spec.paramKind".to_owned(), whole("No", "ex.io/v1")));
        let lacking = format!(
            "unable to get policy p to determine minimum required permissions and user {user} does not have \"get\" \
             permission for all groups, versions and resources"
        );
        let named = json!({"name": "n", "namespace": "t"});
        let refused = forbidden(&alice, bindings, &binding(bindings, "b", named.clone())).await;
        assert_eq!(refused, ("spec.paramRef".to_owned(), lacking));
        // Without params nobody asks, and what does not change is not asked about again.
        alice.post(policies, &policy(policies, Value::Null)).await.expect(201);
        let refused =
            alice.patch(format!("{policies}/p"), &json!({"spec": {"paramKind": secrets}})).await.failure();
        assert_eq!(refused["code"], 422);
        root.patch(format!("{policies}/p"), &json!({"spec": {"paramKind": secrets}})).await.ok();
        alice.patch(format!("{policies}/p"), &json!({"spec": {"failurePolicy": "Ignore"}})).await.ok();
        for (reference, verb) in [(named.clone(), "get"), (json!({"selector": {}, "namespace": "t"}), "list")]
        {
            let refused = forbidden(&alice, bindings, &binding(bindings, "b", reference)).await;
            let (first, second) = if policies == VALIDATING { (user, verb) } else { (verb, user) };
            let why = format!(
                "user {first} does not have \"{second}\" permission on the object referenced by paramRef"
            );
            assert_eq!(refused, ("spec.paramRef".to_owned(), why));
        }
        root.post(bindings, &binding(bindings, "r", named.clone())).await.expect(201);
    }
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
    let role = json!({"metadata": {"name": "secrets"}, "rules": rules});
    root.post(format!("{RBAC}/clusterroles"), &role).await.expect(201);
    root.post(format!("{RBAC}/clusterrolebindings"), &binding_of("secrets")).await.expect(201);
    for &(policies, bindings) in kinds {
        let named = json!({"name": "n", "namespace": "t"});
        alice.post(bindings, &binding(bindings, "b", named)).await.expect(201);
        alice.delete(format!("{policies}/p")).await.ok();
        alice.post(policies, &policy(policies, secrets.clone())).await.expect(201);
    }
}
