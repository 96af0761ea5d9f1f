//! Webhooks from files (`staticManifestsDir`): section 2.14 of `docs/spec/admission.md`.

use serde_json::{Value, json};

use super::{MUTATING, VALIDATING, allowing, configure, hook, metric, patch, requests, reviewed, told};
use crate::support::server::{CONFIGMAPS, Setup, config_map};
use crate::support::webhook::WebhookServer;

on_every_store! {
    admission_124_webhooks_of_files,
}

/// 124. Webhooks of files are called before stored ones, and see what configures admission.
async fn admission_124_webhooks_of_files(mut setup: Setup) {
    let web =
        WebhookServer::start(&[], |seen| match &*seen.path.split('?').next().expect("a path").to_owned() {
            "/mutate" => reviewed(
                seen,
                patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"file": "x"}}])),
            ),
            "/deny" => {
                let denies = seen.body["request"]["name"] == "bad";
                reviewed(seen, json!({"allowed": !denies, "status": {"message": "it is bad"}}))
            }
            _ => reviewed(seen, json!({})),
        })
        .await;
    let later = allowing().await;
    let file = |kind: &str, hooks: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "h.static.k8s.io"}, "webhooks": hooks})
    };
    let all = json!({"resources": ["configmaps", "validatingwebhookconfigurations"]});
    let hooks = |path| json!([hook("file", web.client_config(path), all.clone(), json!({}))]);
    let mut plugins = Vec::new();
    for (kind, hooks) in [("Validating", hooks("/deny")), ("Mutating", hooks("/mutate"))] {
        let directory = setup.file(kind);
        std::fs::create_dir(&directory).expect("made");
        let text = file(&format!("{kind}WebhookConfiguration"), hooks).to_string();
        std::fs::write(directory.join("hooks.json"), text).expect("written");
        let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration", "staticManifestsDir": directory});
        plugins.push(json!({"name": format!("{kind}AdmissionWebhook"), "configuration": configuration}));
    }
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    let path = setup.file("admission.yaml");
    std::fs::write(&path, config.to_string()).expect("written");
    setup.admission.read_file(&path).expect("a configuration");
    let server = setup.start().await;

    let made = server.post(CONFIGMAPS, &config_map("a", json!({}))).await.expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"file": "x"}));
    let refused = server.post(CONFIGMAPS, &config_map("bad", json!({}))).await.failure();
    let why = "admission webhook \"file.ex.io\" denied the request: it is bad";
    assert_eq!(told(&refused), (400, why.to_owned()));
    for kind in [VALIDATING, MUTATING] {
        assert_eq!(server.get(kind).await.ok()["items"], json!([]));
    }
    // A stored webhook is called after them, and does not see configurations.
    configure(&server, MUTATING, "a", json!([hook("a", later.client_config("/"), all.clone(), json!({}))]))
        .await;
    server.post(CONFIGMAPS, &config_map("b", json!({}))).await.expect(201);
    assert_eq!(requests(&later)[0]["object"]["metadata"]["labels"], json!({"file": "x"}));
    let bad = json!({"metadata": {"name": "bad"}, "webhooks": []});
    assert_eq!(told(&server.post(VALIDATING, &bad).await.failure()), (400, why.to_owned()));
    assert!(requests(&later).is_empty());
    // Webhooks may go.
    std::fs::remove_file(setup.file("Validating").join("hooks.json")).expect("removed");
    server.reload_credentials().await;
    server.post(CONFIGMAPS, &config_map("bad", json!({}))).await.expect(201);
    let line = "apiserver_manifest_admission_config_controller_automatic_reloads_total{status=\"success\",\
                plugin=\"ValidatingAdmissionWebhook\",apiserver_id_hash=\"\"} 2";
    assert!(metric(&server, line).await);
    server.stop().await;
}
