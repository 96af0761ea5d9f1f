//! Policies from files (`staticManifestsDir`): section 2.14 of `docs/spec/admission.md`.

use std::path::Path;

use serde_json::{Value, json};

use super::{MUTATING, MUTATING_BINDINGS, VALIDATING, VALIDATING_BINDINGS, extend};
use crate::support::server::{CONFIGMAPS, Setup, config_map};

on_every_store! {
    admission_123_policies_of_files,
}

const VERSION: &str = "admissionregistration.k8s.io/v1";

/// A policy of all writes of these resources, and its binding, as the documents of a file.
fn bound(kind: &str, name: &str, resources: Value, spec: Value) -> String {
    let mut whole = json!({"matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
        "resources": resources, "operations": ["CREATE", "UPDATE"]}]}});
    extend(&mut whole, spec);
    let policy = json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": whole});
    let mut spec = json!({"policyName": name});
    if kind.starts_with("Validating") {
        spec["validationActions"] = json!(["Deny"]);
    }
    let kind = format!("{kind}Binding");
    let binding = json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
    format!("{policy}\n---\n{binding}\n")
}

fn refusing(name: &str, resources: Value, expression: &str) -> String {
    let spec = json!({"validations": [{"expression": expression}]});
    bound("ValidatingAdmissionPolicy", name, resources, spec)
}

fn labelling(name: &str, label: &str) -> String {
    let expression = format!("Object{{metadata: Object.metadata{{labels: {{'{label}': 'x'}}}}}}");
    let mutation =
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    let spec = json!({"reinvocationPolicy": "Never", "mutations": [mutation]});
    bound("MutatingAdmissionPolicy", name, json!(["configmaps"]), spec)
}

/// Configures both plugins with directories below this one.
fn configure(setup: &mut Setup, below: &Path) {
    let entry = |plugin: &str, directory: &str| {
        let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1",
            "kind": format!("{plugin}Configuration"), "staticManifestsDir": below.join(directory)});
        json!({"name": plugin, "configuration": configuration})
    };
    let plugins =
        [entry("ValidatingAdmissionPolicy", "validating"), entry("MutatingAdmissionPolicy", "mutating")];
    let file = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    let path = below.join("admission.yaml");
    std::fs::write(&path, file.to_string()).expect("written");
    setup.admission.read_file(&path).expect("a configuration");
}

/// 123. Policies of files come before stored ones, see policies too, are no objects, and follow the files.
async fn admission_123_policies_of_files(mut setup: Setup) {
    let below = tempfile::tempdir().expect("a directory");
    let below = below.path();
    // A server never sees half of a file.
    let write = |name: &str, text: &str| {
        std::fs::write(below.join("new"), text).expect("written");
        std::fs::rename(below.join("new"), below.join(name)).expect("moved");
    };
    for directory in ["validating", "mutating"] {
        std::fs::create_dir(below.join(directory)).expect("made");
    }
    write(
        "validating/policies.yaml",
        &refusing("z.static.k8s.io", json!(["configmaps"]), "!has(object.data) || !('bad' in object.data)"),
    );
    write(
        "validating/guard.json",
        &refusing(
            "guard.static.k8s.io",
            json!(["validatingadmissionpolicies"]),
            "object.metadata.name.startsWith('ok')",
        ),
    );
    write("mutating/label.yml", &labelling("label.static.k8s.io", "one"));
    configure(&mut setup, below);
    let server = setup.start().await;

    let why = |failure: Value| failure["message"].as_str().unwrap_or_default().to_owned();
    let bad = config_map("a", json!({"bad": "x"}));
    let refused = why(server.post(CONFIGMAPS, &bad).await.failure());
    let start = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'z.static.k8s.io' with binding 'z.static.k8s.io' \
                 denied request: ";
    assert!(refused.starts_with(start), "{refused}");
    let made = server.post(CONFIGMAPS, &config_map("b", json!({}))).await.expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"one": "x"}));
    for kind in [VALIDATING, VALIDATING_BINDINGS, MUTATING, MUTATING_BINDINGS] {
        assert_eq!(server.get(kind).await.ok()["items"], json!([]));
    }
    server.get(format!("{VALIDATING}/z.static.k8s.io")).await.expect(404);

    // Stored policies come after them, whatever their names are, and do not see policies.
    let stored = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"validations": [{"expression": "false"}],
        "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
            "resources": ["configmaps", "validatingadmissionpolicybindings"]}]}}})
    };
    let refused = why(server.post(VALIDATING, &stored("a")).await.failure());
    assert!(refused.contains("'guard.static.k8s.io'"), "{refused}");
    server.post(VALIDATING, &stored("ok-a")).await.expect(201);
    let spec = json!({"policyName": "ok-a", "validationActions": ["Deny"]});
    server.post(VALIDATING_BINDINGS, &json!({"metadata": {"name": "a"}, "spec": spec})).await.expect(201);
    assert!(why(server.post(CONFIGMAPS, &bad).await.failure()).starts_with(start));
    let refused = why(server.post(CONFIGMAPS, &config_map("c", json!({}))).await.failure());
    assert!(refused.contains("'ok-a'"), "{refused}");
    server.delete(format!("{VALIDATING_BINDINGS}/a")).await.ok();

    // What the files hold counts once they are read again; what cannot be used changes nothing.
    write("validating/policies.yaml", &refusing("z.static.k8s.io", json!(["configmaps"]), "true"));
    write("mutating/label.yml", &labelling("label.static.k8s.io", "two"));
    server.reload_credentials().await;
    let made = server.post(CONFIGMAPS, &config_map("d", json!({"bad": "x"}))).await.expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"two": "x"}));
    write("validating/policies.yaml", &refusing("no-end", json!(["configmaps"]), "false"));
    std::fs::remove_file(below.join("mutating/label.yml")).expect("removed");
    server.reload_credentials().await;
    let made = server.post(CONFIGMAPS, &config_map("e", json!({"bad": "x"}))).await.expect(201);
    assert_eq!(made["metadata"].get("labels"), None);
    let metrics = server.get("/metrics").await.text();
    let name = "apiserver_manifest_admission_config_controller";
    for line in [
        format!(
            "{name}_automatic_reloads_total{{status=\"success\",plugin=\"ValidatingAdmissionPolicy\",apiserver_id_hash=\"\"}} 2"
        ),
        format!(
            "{name}_automatic_reloads_total{{status=\"failure\",plugin=\"ValidatingAdmissionPolicy\",apiserver_id_hash=\"\"}} "
        ),
        format!(
            "{name}_automatic_reloads_total{{status=\"success\",plugin=\"MutatingAdmissionPolicy\",apiserver_id_hash=\"\"}} 3"
        ),
        format!(
            "{name}_last_config_info{{plugin=\"ValidatingAdmissionPolicy\",apiserver_id_hash=\"\",hash=\"sha256:"
        ),
    ] {
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    server.stop().await;

    // At the start everything has to be usable.
    configure(&mut setup, below);
    let text = setup.builder().start().await.err().expect("an error").one_line();
    assert!(text.contains("must have a name ending with"), "{text}");
}
