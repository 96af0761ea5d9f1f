//! Calls of webhooks, and what goes wrong with them.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowplane::api::service_routes::{Config, FixedAddresses, Routing, parse_fixed};
use serde_json::{Value, json};

use super::{
    MUTATING, VALIDATING, allowing, configuration, configure, hook, metric, patch, requests, reviewed, told,
};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};
use crate::support::webhook::WebhookServer;

on_every_store! {
    admission_35_37_38_39_40_41_52_58_answers,
    admission_36_53_times,
    admission_49_side_by_side,
    admission_50_dry_runs,
    admission_51_54_55_56_who_is_not_reached,
    webhooks_of_services_by_endpoints_and_by_fixed_addresses,
    admission_57_credentials,
    admission_59_static_names,
}

/// Writes a ConfigMap on trial.
async fn attempt(server: &TestServer) -> crate::support::client::Answer {
    server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("a", json!({}))).await
}

/// Sets the one webhook, which is of this kind.
async fn only(server: &TestServer, kind: &str, hook: Value) {
    for kind in [VALIDATING, MUTATING] {
        server.delete(format!("{kind}/only")).await;
    }
    configure(server, kind, "only", json!([hook])).await;
}

/// 35, 37 to 41, 52, 58: answers, by the path that is asked.
async fn admission_35_37_38_39_40_41_52_58_answers(setup: Setup) {
    let server = setup.start().await;
    let web = WebhookServer::start(&[], |seen| {
        let path = seen.path.split('?').next().expect("a path");
        let no_uid = |response: Value| reviewed(seen, response);
        match path {
            "/uid" => no_uid(json!({"uid": "other"})),
            "/patch" => no_uid(json!({"patch": "W10="})),
            "/type" => no_uid(json!({"patchType": "JSONPatch"})),
            "/both" => no_uid(patch(json!([]))),
            "/bare" => no_uid(json!({"allowed": false})),
            "/status" => no_uid(json!({"allowed": false, "warnings": ["beware"], "status":
                {"code": 409, "reason": "Conflict", "message": "m", "details": {"kind": "k"}}})),
            "/ok" => no_uid(json!({"allowed": false, "status": {"code": 200, "message": "m"}})),
            "/warn" => no_uid(json!({"warnings": ["careful"]})),
            "/404" => (404, "nothing".to_owned()),
            "/302" => (302, "elsewhere".to_owned()),
            "/500" => (500, "boom".to_owned()),
            "/html" => (200, "<html></html>".to_owned()),
            "/huge" => (200, "x".repeat(17 << 20)),
            _ => no_uid(json!({})),
        }
    })
    .await;
    let failed = |why: &str| format!("Internal error occurred: failed calling webhook \"h.ex.io\": {why}");
    let invalid = |why: &str| failed(&format!("received invalid webhook response: {why}"));
    let denied = "admission webhook \"h.ex.io\" denied the request";
    let call = |why: &str| failed(&format!("failed to call webhook: {why}"));
    for (kind, path, code, text) in [
        (VALIDATING, "/patch", 500, invalid("validating webhook may not return response.patch")),
        (VALIDATING, "/type", 500, invalid("validating webhook may not return response.patchType")),
        (MUTATING, "/patch", 500, invalid("webhook returned response.patch but not response.patchType")),
        (MUTATING, "/type", 500, invalid("webhook returned response.patchType but not response.patch")),
        (MUTATING, "/both", 201, String::new()),
        (VALIDATING, "/bare", 400, format!("{denied} without explanation")),
        (MUTATING, "/status", 409, format!("{denied}: m")),
        (VALIDATING, "/ok", 400, format!("{denied}: m")),
        (VALIDATING, "/404", 500, call("the server could not find the requested resource")),
        (
            MUTATING,
            "/302",
            500,
            call("the server responded with the status code 302 but did not return more information"),
        ),
        (
            VALIDATING,
            "/500",
            500,
            call("an error on the server (\"boom\") has prevented the request from succeeding"),
        ),
    ] {
        only(&server, kind, hook("h", web.client_config(path), json!({}), json!({}))).await;
        let answer = attempt(&server).await;
        assert_eq!(u64::from(answer.status), code, "{path}: {answer:?}");
        if code != 201 {
            assert_eq!(told(&answer.failure()), (code, text), "{path}");
        }
    }
    for (path, start) in [
        ("/uid", invalid("expected response.uid=\"")),
        ("/html", call("couldn't get version/kind; json parse error: ")),
        ("/huge", call("Post \"https://")),
    ] {
        only(&server, MUTATING, hook("h", web.client_config(path), json!({}), json!({}))).await;
        let (code, text) = told(&attempt(&server).await.failure());
        assert!(code == 500 && text.starts_with(&start), "{path}: {text}");
        only(
            &server,
            MUTATING,
            hook("h", web.client_config(path), json!({}), json!({"failurePolicy": "Ignore"})),
        )
        .await;
        attempt(&server).await.expect(201);
    }
    only(&server, VALIDATING, hook("h", web.client_config("/status"), json!({}), json!({}))).await;
    let refused = attempt(&server).await;
    assert_eq!(refused.header("warning"), Some("299 - \"beware\""));
    let status = refused.json();
    assert_eq!((&status["reason"], &status["details"]), (&json!("Conflict"), &json!({"kind": "k"})));
    only(&server, VALIDATING, hook("h", web.client_config("/warn"), json!({}), json!({}))).await;
    assert_eq!(attempt(&server).await.header("warning"), Some("299 - \"careful\""));

    // Versions of the review: the first that is known.
    web.seen();
    for (versions, used) in [(json!(["v1beta1", "v1"]), "v1beta1"), (json!(["v2", "v1"]), "v1")] {
        let more = json!({"admissionReviewVersions": versions});
        only(&server, VALIDATING, hook("h", web.client_config("/"), json!({}), more)).await;
        attempt(&server).await.expect(201);
        assert_eq!(web.seen()[0].body["apiVersion"], format!("admission.k8s.io/{used}"));
    }
}

/// 36, 53. How long a webhook may take, and what it is told of that.
async fn admission_36_53_times(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    only(&server, VALIDATING, hook("h", web.client_config("/"), json!({}), json!({}))).await;
    server.post(format!("{CONFIGMAPS}?timeout=3s"), &config_map("a", json!({}))).await.expect(201);
    assert_eq!(web.seen()[0].path, "/?timeout=3s");
    web.hold();
    let slow = json!({"timeoutSeconds": 1});
    only(&server, VALIDATING, hook("h", web.client_config("/"), json!({}), slow)).await;
    let began = Instant::now();
    let (code, text) = told(&attempt(&server).await.failure());
    assert!(began.elapsed() >= Duration::from_secs(1));
    let url = web.url("/?timeout=1s");
    let why = format!("failed to call webhook: Post \"{url}\": context deadline exceeded");
    assert_eq!(
        (code, text),
        (500, format!("Internal error occurred: failed calling webhook \"h.ex.io\": {why}"))
    );
    // The request's own end is an end also where failures are forgiven.
    let patient = json!({"timeoutSeconds": 30, "failurePolicy": "Ignore"});
    only(&server, VALIDATING, hook("h", web.client_config("/"), json!({}), patient)).await;
    let path = format!("{CONFIGMAPS}?timeout=1s");
    server.post(path, &config_map("b", json!({}))).await.timed_out();
}

/// 49. Validating webhooks are called side by side, and of several refusals the first in order is answered.
async fn admission_49_side_by_side(setup: Setup) {
    let server = setup.start().await;
    let refusing = WebhookServer::start(&[], |seen| {
        let path = seen.path.split('?').next().expect("a path").to_owned();
        reviewed(seen, json!({"allowed": false, "status": {"message": path}}))
    })
    .await;
    let of = |name: &str| hook(name, refusing.client_config(&format!("/{name}")), json!({}), json!({}));
    configure(&server, VALIDATING, "b", json!([of("third")])).await;
    configure(&server, VALIDATING, "a", json!([of("first"), of("second")])).await;
    refusing.hold();
    let waiting = tokio::spawn(server.post(CONFIGMAPS, &config_map("x", json!({}))).into_future());
    // All three have been called before any is answered.
    refusing.arrived(3).await;
    refusing.release();
    let refused = waiting.await.expect("an answer").failure();
    assert_eq!(told(&refused).1, "admission webhook \"first.ex.io\" denied the request: /first");
}

/// 50. Dry runs call only webhooks without effects.
async fn admission_50_dry_runs(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    for effects in ["None", "NoneOnDryRun"] {
        only(
            &server,
            MUTATING,
            hook("h", web.client_config("/"), json!({}), json!({"sideEffects": effects})),
        )
        .await;
        attempt(&server).await.expect(201);
        assert_eq!(requests(&web)[0]["dryRun"], true);
    }
}

/// 51, 54, 55, 56. Webhooks that are not reached.
async fn admission_51_54_55_56_who_is_not_reached(setup: Setup) {
    let (server, mut web) = (setup.start().await, allowing().await);
    let failed = |why: &str| format!("Internal error occurred: failed calling webhook \"h.ex.io\": {why}");
    let service = |name: &str, port: u16| json!({"service": {"namespace": "t", "name": name, "port": port, "path": "/p"}, "caBundle": web.ca_bundle});
    let to_service = |name: &str, port: u16, why: &str| {
        failed(&format!("failed to call webhook: Post \"https://{name}.t.svc:{port}/p?timeout=10s\": {why}"))
    };
    let external =
        json!({"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}});
    let services = "/api/v1/namespaces/t/services";
    server.post(services, &external).await.expect(201);
    let mut other = external.clone();
    other["metadata"]["name"] = "other".into();
    server.post(services, &other).await.expect(201);
    let cluster = json!({"metadata": {"name": "in"}, "spec": {"ports": [{"port": 80}]}});
    server.post(services, &cluster).await.expect(201);
    let port = web.address.port();
    only(&server, VALIDATING, hook("h", service("hook", port), json!({}), json!({}))).await;
    attempt(&server).await.expect(201);
    assert_eq!(web.seen()[0].headers["host"], format!("hook.t.svc:{port}"));
    let wrong =
        "tls: failed to verify certificate: x509: certificate is valid for hook.t.svc, not other.t.svc";
    let of_bundle = |bundle: &str, why: &str| {
        let config = json!({"url": web.url("/"), "caBundle": STANDARD.encode(bundle)});
        (config, failed(&format!("could not get REST client: unable to load root certificates: {why}")))
    };
    let block = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
    let no_block = "unable to parse bytes as PEM block";
    for (config, text) in [
        of_bundle("no PEM", no_block),
        of_bundle("\n", no_block),
        of_bundle("-----BEGIN CERTIFICATE-----\n", no_block),
        of_bundle(&format!("{}rest", block("PUBLIC KEY")), no_block),
        of_bundle(&block("PUBLIC KEY"), "no valid certificate authority data seen"),
        of_bundle(&block("CERTIFICATE"), "failed to parse certificate: x509: malformed certificate"),
        (service("other", port), to_service("other", port, wrong)),
        (service("nobody", 443), to_service("nobody", 443, "service \"nobody\" not found")),
        (service("in", 443), to_service("in", 443, "no service port 443 found for service \"in\"")),
    ] {
        only(&server, VALIDATING, hook("h", config, json!({}), json!({}))).await;
        assert_eq!(told(&attempt(&server).await.failure()), (500, text));
    }
    web.stop().await;
    only(&server, VALIDATING, hook("h", web.client_config("/p"), json!({}), json!({}))).await;
    let refused = attempt(&server).await.failure();
    let why = format!(
        "failed to call webhook: Post \"{}\": dial tcp {}: connect: connection refused",
        web.url("/p?timeout=10s"),
        web.address
    );
    assert_eq!(told(&refused), (500, failed(&why)));
    let cause = format!("failed calling webhook \"h.ex.io\": {why}");
    assert_eq!(refused["details"]["causes"], json!([{"message": cause}]));
    only(
        &server,
        VALIDATING,
        hook("h", web.client_config("/p"), json!({}), json!({"failurePolicy": "Ignore"})),
    )
    .await;
    attempt(&server).await.expect(201);
    let opened = "apiserver_admission_webhook_fail_open_count{name=\"h.ex.io\",type=\"validating\"} 1";
    assert!(metric(&server, opened).await);
}

/// 2.11. Webhooks of Services are called at ready endpoints, by the name of the Service's port, the next one where nobody listens;
/// and at the addresses that the server is started with.
async fn webhooks_of_services_by_endpoints_and_by_fixed_addresses(mut setup: Setup) {
    let web = WebhookServer::start(&["hook.t.svc", "away.t.svc"], |seen| reviewed(seen, json!({}))).await;
    let away = parse_fixed(&format!("t/away:https={}", web.address)).expect("an address");
    let of_number = parse_fixed("t/away:444=127.0.0.1:1").expect("an address");
    setup.service_routes =
        Config { routing: Routing::Endpoints, fixed: FixedAddresses::new([away, of_number]) };
    let server = setup.start().await;
    let place = |name: &str, port: u16| json!({"service": {"namespace": "t", "name": name, "port": port, "path": "/p"}, "caBundle": web.ca_bundle});
    let failed = |name: &str, port: u16, why: &str| {
        let post = format!("Post \"https://{name}.t.svc:{port}/p?timeout=10s\"");
        format!(
            "Internal error occurred: failed calling webhook \"h.ex.io\": failed to call webhook: {post}: {why}"
        )
    };
    let ports = json!([{"name": "metrics", "port": 80}, {"name": "https", "port": 443}]);
    for name in ["hook", "away"] {
        let service = json!({"metadata": {"name": name}, "spec": {"clusterIP": "None", "ports": ports}});
        server.post("/api/v1/namespaces/t/services", &service).await.expect(201);
    }
    only(&server, VALIDATING, hook("h", place("hook", 443), json!({}), json!({}))).await;
    let none = failed("hook", 443, "no endpoints available for service \"hook\"");
    assert_eq!(told(&attempt(&server).await.failure()), (500, none.clone()));

    // Only 127.0.0.1 has a listener; among addresses of IPv4 upstream allows none of these.
    let slices = "/apis/discovery.k8s.io/v1/namespaces/t/endpointslices";
    let port = json!([{"name": "metrics", "port": 1}, {"name": "https", "port": web.address.port()}]);
    let slice = |name: &str, endpoints: Value| {
        json!({"metadata": {"name": name, "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "FQDN", "ports": port, "endpoints": endpoints})
    };
    let unready = json!([{"addresses": ["127.0.0.1"], "conditions": {"ready": false}}]);
    server.post(slices, &slice("a", unready)).await.expect(201);
    assert_eq!(told(&attempt(&server).await.failure()), (500, none));
    for (name, address) in [("b", "127.0.0.2"), ("c", "127.0.0.3"), ("d", "127.0.0.1"), ("e", "127.0.0.4")] {
        server.post(slices, &slice(name, json!([{"addresses": [address]}]))).await.expect(201);
    }
    attempt(&server).await.expect(201);
    assert_eq!(web.seen()[0].headers["host"], "hook.t.svc:443");

    // By the name of its port, by its number, and a Service without an address of its own.
    only(&server, VALIDATING, hook("h", place("away", 443), json!({}), json!({}))).await;
    attempt(&server).await.expect(201);
    assert_eq!(web.seen()[0].path, "/p?timeout=10s");
    for (name, port, why) in [
        ("away", 444, "dial tcp 127.0.0.1:1: connect: connection refused"),
        ("hook", 444, "no service port 444 found for service \"hook\""),
        ("nobody", 443, "service \"nobody\" not found"),
    ] {
        only(&server, VALIDATING, hook("h", place(name, port), json!({}), json!({}))).await;
        assert_eq!(told(&attempt(&server).await.failure()), (500, failed(name, port, why)));
    }
}

/// 57. Credentials are shown to the hosts that they are for.
async fn admission_57_credentials(mut setup: Setup) {
    let kubeconfig = setup.file("hooks.kubeconfig");
    let web = allowing().await;
    let users = format!(
        "users:\n- name: '*.t.svc:{}'\n  user: {{token: secret}}\n- name: '127.0.0.1:1'\n  user: {{token: t}}\n",
        web.address.port()
    );
    std::fs::write(&kubeconfig, users).expect("written");
    let file = setup.file("admission.yaml");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
         - name: ValidatingAdmissionWebhook\n  configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n    \
         kind: WebhookAdmissionConfiguration\n    kubeConfigFile: {}\n",
        kubeconfig.display()
    );
    std::fs::write(&file, text).expect("written");
    setup.admission.read_file(&file).expect("a configuration");
    let server = setup.start().await;
    let external =
        json!({"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}});
    server.post("/api/v1/namespaces/t/services", &external).await.expect(201);
    let service = json!({"service": {"namespace": "t", "name": "hook", "port": web.address.port()},
        "caBundle": web.ca_bundle});
    for (config, shown) in [(service, Some("Bearer secret")), (web.client_config("/"), None)] {
        only(&server, VALIDATING, hook("h", config, json!({}), json!({}))).await;
        attempt(&server).await.expect(201);
        let header =
            web.seen()[0].headers.get("authorization").map(|value| value.to_str().expect("text").to_owned());
        assert_eq!(header.as_deref(), shown);
    }
}

/// 59. Names of static configurations are nobody's.
async fn admission_59_static_names(setup: Setup) {
    let server = setup.start().await;
    let text = "metadata.name: Invalid value: \"x.static.k8s.io\": names ending with \".static.k8s.io\" are reserved for \
                static manifest-based configurations and cannot be managed via the API";
    for (kind, singular) in
        [(VALIDATING, "ValidatingWebhookConfiguration"), (MUTATING, "MutatingWebhookConfiguration")]
    {
        let refused = server.post(kind, &configuration("x.static.k8s.io", json!([]))).await.failure();
        let subject = format!("{singular}.admissionregistration.k8s.io \"x.static.k8s.io\" is invalid");
        assert_eq!(told(&refused), (422, format!("{subject}: {text}")));
    }
}
