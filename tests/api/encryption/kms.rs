//! Values that a key management service seals (assertion 110 of `docs/spec/auth.md`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rowplane::wall_clock::WallClock;
use serde_json::json;

use super::{SECRETS, configure, refused, secret, starts, stored};
use crate::support::kms::{Kms, Mood};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv};

on_every_store! {
    auth_110_a_service_wraps_a_seed_and_is_asked_for_nothing_else,
    what_a_service_hides_counts_once_it_is_back,
    a_hidden_dependent_holds_its_owner_until_it_is_back,
}

/// The provider of a service of this name at a socket.
fn provider(name: &str, socket: &Path) -> String {
    let socket = socket.display();
    format!("{{kms: {{apiVersion: v2, name: {name}, endpoint: 'unix://{socket}', timeout: 1s}}}}")
}

/// A clock that a test puts forward, in seconds.
fn with_seconds(setup: &mut Setup) -> Arc<AtomicU64> {
    let seconds = Arc::new(AtomicU64::new(0));
    let ahead = seconds.clone();
    setup.clock =
        WallClock::new(move || SystemTime::now() + Duration::from_secs(ahead.load(Ordering::SeqCst)));
    seconds
}

async fn auth_110_a_service_wraps_a_seed_and_is_asked_for_nothing_else(mut setup: Setup) {
    let socket = setup.file("kms.sock");
    let kms = Kms::start(&socket);
    let seconds = with_seconds(&mut setup);
    configure(&mut setup, "secrets", &[&provider("turns", &socket)]);
    let server = setup.start().await;
    let of_key = |id: &str| format!("k8s:enc:kms:v2:turns:\u{12}{}{id}", char::from(id.len() as u8));
    for n in 0..50 {
        server.secret(&format!("a{n:02}")).await;
    }
    starts(&stored(&*server.backend, "secrets", "a00").await, &of_key("key-1"));
    assert_eq!((kms.encrypted(), kms.decrypted()), (1, 0));
    assert!(server.get("/readyz?verbose").await.text().contains("[+]kms-providers ok"));
    assert_eq!(server.get("/livez/kms-providers").await.status, 404);

    // Another key: another seed, and what the old one has sealed is stale.
    kms.rotate("key-2");
    server.look_at_encryption().await;
    server.secret("b").await;
    starts(&stored(&*server.backend, "secrets", "b").await, &of_key("key-2"));
    assert_eq!((kms.encrypted(), kms.decrypted()), (2, 0));
    let (before, replaced) = server.replace(&format!("{SECRETS}/a00")).await;
    assert!(rv(&replaced) > rv(&before));
    starts(&stored(&*server.backend, "secrets", "a00").await, &of_key("key-2"));
    let (before, replaced) = server.replace(&format!("{SECRETS}/b")).await;
    assert_eq!(rv(&replaced), rv(&before));

    // While it fails or hangs, reads go on, and writes for three minutes.
    for (mood, why) in [(Mood::Fails, "the vault is sealed"), (Mood::Hangs, "DeadlineExceeded")] {
        kms.set(mood);
        server.look_at_encryption().await;
        let check = server.get("/readyz/kms-providers").await;
        assert!(check.status == 500 && check.text().contains(why), "{check:?}");
        told_as_the_service_did(&server).await;
        server.secret(&format!("{mood:?}").to_lowercase()).await;
        seconds.fetch_add(200, Ordering::SeqCst);
        let refused = server.post(SECRETS, &secret("late")).await;
        let text = refused.failure()["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(refused.status, 500, "{refused:?}");
        assert!(
            text.contains("encryptedDEKSource with keyID hash \"sha256:") && text.contains("expired at"),
            "{text}"
        );
        assert_eq!(server.get(format!("{SECRETS}/a01")).await.status, 200);
        server.create(&format!("unharmed-{mood:?}").to_lowercase(), json!({})).await;
        kms.set(Mood::Well);
        server.look_at_encryption().await;
        assert_eq!(server.get("/readyz/kms-providers").await.status, 200);
    }
    server.secret("late").await;
    assert_eq!(kms.encrypted(), 2, "the key is the same, and so is the seed");
    let all = names(&server.get(SECRETS).await.ok());
    server.stop().await;

    // A server that starts asks once for each seed, also if it starts while the service is unwell.
    kms.set(Mood::Fails);
    let server = setup.start_empty().await;
    refused(&server.get(format!("{SECRETS}/a01")).await, "a01", "the vault is sealed");
    refused(&server.get(SECRETS).await, "a00", "the vault is sealed");
    assert_eq!(server.get(CONFIGMAPS).await.status, 200);
    assert_eq!(server.get("/readyz").await.status, 500);
    let decrypted = kms.decrypted();
    kms.set(Mood::Well);
    server.look_at_encryption().await;
    assert_eq!(names(&server.get(SECRETS).await.ok()), all);
    assert_eq!(kms.decrypted() - decrypted, 2, "two seeds have sealed all of them");

    // A key that is lost takes its values with it, and nothing else.
    server.stop().await;
    kms.state.lost.lock().expect("lost").push("key-1".to_owned());
    let server = setup.start_empty().await;
    refused(&server.get(format!("{SECRETS}/a01")).await, "a01", "no such key");
    assert_eq!(server.get(format!("{SECRETS}/a00")).await.status, 200);
    refused(&server.delete(format!("{SECRETS}/a01")).await, "a01", "no such key");
    let anyway = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
    server.delete(format!("{SECRETS}/a01?{anyway}")).await.ok();
    server.stop().await;
}

/// Nobody writes anything between the last look at what cannot be read and the return of the service.
async fn what_a_service_hides_counts_once_it_is_back(mut setup: Setup) {
    let socket = setup.file("kms.sock");
    let kms = Kms::start(&socket);
    let sealed = "secrets, pods, customresourcedefinitions.apiextensions.k8s.io, \
        validatingadmissionpolicies.admissionregistration.k8s.io";
    configure(&mut setup, sealed, &[&provider("k", &socket)]);
    std::fs::write(setup.file("tokens.csv"), "node-token,system:node:n,,system:nodes\n").expect("write");
    let server = setup.start().await;
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'no'"}]}});
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    server.post(format!("{admission}/validatingadmissionpolicies"), &policy).await.expect(201);
    server.post(format!("{admission}/validatingadmissionpolicybindings"), &binding).await.expect(201);
    server.secret("s").await;
    let volume = json!({"name": "v", "secret": {"secretName": "s"}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "serviceAccountName": "default",
        "automountServiceAccountToken": false, "volumes": [volume], "containers": [{"name": "c", "image": "i"}]}});
    server.post("/api/v1/namespaces/t/pods", &pod).await.expect(201);
    server.stop().await;

    kms.set(Mood::Fails);
    let server = setup.start_empty().await;
    let (node, widgets) = (server.token("node-token"), "/apis/ex.io/v1/namespaces/t/widgets");
    loop {
        let before = server.revision().await;
        refused(&server.post(CONFIGMAPS, &config_map("yes", json!({}))).await, "p", "cannot be read");
        assert_eq!(server.get(widgets).await.status, 404);
        assert_eq!(node.get(format!("{SECRETS}/s")).await.status, 403);
        if server.revision().await == before {
            break;
        }
    }
    kms.set(Mood::Well);
    server.look_at_encryption().await;
    server.api.follow_definitions().await.expect("followed");
    assert_eq!(server.get(widgets).await.status, 200);
    node.get(format!("{SECRETS}/s")).await.ok();
    server.post(CONFIGMAPS, &config_map("yes", json!({}))).await.expect(201);
    assert_eq!(server.post(CONFIGMAPS, &config_map("no", json!({}))).await.status, 422);
    server.stop().await;
}

/// An owner whose dependents are to be orphaned waits for what may be one of them.
async fn a_hidden_dependent_holds_its_owner_until_it_is_back(mut setup: Setup) {
    let socket = setup.file("kms.sock");
    let kms = Kms::start(&socket);
    configure(&mut setup, "secrets", &[&provider("k", &socket)]);
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let mut owned = secret("owned");
    owned["metadata"]["ownerReferences"] = json!([reference]);
    server.post(SECRETS, &owned).await.expect(201);
    server.stop().await;

    kms.set(Mood::Fails);
    let server = setup.start_empty().await;
    let path = format!("{CONFIGMAPS}/owner");
    let marked = server.delete(&path).json(&json!({"propagationPolicy": "Orphan"})).await.ok();
    let of_owner =
        format!("{CONFIGMAPS}?watch=1&resourceVersion={}&fieldSelector=metadata.name%3Downer", rv(&marked));
    let mut watch = server.watch(of_owner).await;
    refused(&server.get(format!("{SECRETS}/owned")).await, "owned", "");
    kms.set(Mood::Well);
    server.look_at_encryption().await;
    watch.expect("DELETED").await;
    assert!(server.get(format!("{SECRETS}/owned")).await.ok()["metadata"].get("ownerReferences").is_none());
    server.stop().await;
}

/// For three seconds after somebody has asked a service that is not well, others are told its own words, without those that say
/// who asked.
async fn told_as_the_service_did(server: &TestServer) {
    for _ in 0..10 {
        let check = server.get("/readyz/kms-providers").await;
        if check.text().contains("kms-provider-0: rpc error: code = ") {
            return;
        }
        assert!(check.text().contains("failed to perform status section"), "{check:?}");
    }
    panic!("every answer is that of who asks first");
}
