//! What is said of objects, kind by kind; `tests/upstream/versus` has asked upstream the same.

use rowplane_objects::fields::ObjectMap;
use rowplane_objects::kinds::behavior::part::Part;
use rowplane_objects::kinds::behavior::warnings::KindWarnings;
use rowplane_objects::kinds::built_in;
use rowplane_objects::kinds::core::pod_spec::app_armor;
use rowplane_objects::warnings::Warnings;
use rowplane_values::tree::{Value, json};

fn warnings_of(group: &str, kind: &str) -> KindWarnings {
    built_in::any_version(group, kind).warnings
}

fn object(value: Value) -> ObjectMap {
    let Value::Object(object) = value else { panic!("no object") };
    object
}

fn of_new(group: &str, kind: &str, new: Value) -> Vec<String> {
    let warnings = Warnings::default();
    warnings_of(group, kind).create(&object(new), &warnings);
    warnings.take()
}

fn of_change(group: &str, kind: &str, part: Part, new: Value, old: Value) -> Vec<String> {
    let warnings = Warnings::default();
    warnings_of(group, kind).update(part, &object(new), &object(old), &warnings);
    warnings.take()
}

fn of_pod(spec: Value) -> Vec<String> {
    of_new("", "Pod", json!({"metadata": {"name": "a"}, "spec": spec}))
}

#[test]
fn names_that_are_no_labels() {
    let named = |group, kind| of_new(group, kind, json!({"metadata": {"name": "a.b"}}));
    for (group, kind) in
        [("apps", "Deployment"), ("batch", "Job"), ("batch", "CronJob"), ("", "ReplicationController")]
    {
        assert!(
            named(group, kind)[0].starts_with("metadata.name: this is used in Pod names and hostnames, "),
            "{kind}"
        );
    }
    assert!(named("", "Pod")[0].ends_with("a DNS label is recommended: [must not contain dots]"));
    for (group, kind) in [("apps", "DaemonSet"), ("apps", "StatefulSet"), ("", "ConfigMap")] {
        assert_eq!(named(group, kind), [""; 0], "{kind}");
    }
}

#[test]
fn variables_ports_and_volumes_of_pods() {
    let env = json!([
        {"name": "A", "value": "1"}, {"name": "A", "value": "2"},
        {"name": "B", "value": "1"}, {"name": "B", "value": "$(B)2"},
    ]);
    assert_eq!(
        of_pod(json!({"containers": [{"name": "c", "env": env}]})),
        [
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply"
        ]
    );
    let ports = json!([
        {"containerPort": 80, "protocol": "TCP", "name": "web"},
        {"containerPort": 80, "protocol": "UDP", "name": "web"},
        {"containerPort": 80, "protocol": "TCP", "hostPort": 8080},
        {"containerPort": 81, "protocol": "TCP", "hostIP": "1.2.3.4"},
    ]);
    assert_eq!(
        of_pod(json!({"containers": [{"name": "c", "ports": ports}]})),
        [
            "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
            "spec.containers[0].ports[3]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 Protocol:TCP \
             HostIP:1.2.3.4}",
            "spec.containers[0].ports[1]: duplicate port name \"web\" with spec.containers[0].ports[0], services and \
             probes that select ports by name will use spec.containers[0].ports[0]",
        ]
    );
    let items = json!([{"key": "a", "path": "a"}, {"key": "b", "path": "a/b"}]);
    let volumes = json!([
        {"name": "v", "configMap": {"name": "c", "items": items}},
        {"name": "old", "storageos": {"volumeName": "x"}},
    ]);
    assert_eq!(
        of_pod(json!({"volumes": volumes})),
        [
            "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
            "volume \"v\" (ConfigMap \"c\"): overlapping paths: \"a/b\" with \"a\"",
        ]
    );
    let memory = json!({"limits": {"memory": "100m"}});
    assert_eq!(
        of_pod(json!({"containers": [{"name": "c", "resources": memory}]})),
        [
            "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer"
        ]
    );
}

#[test]
fn old_labels_of_nodes() {
    let spec = json!({"nodeSelector": {"beta.kubernetes.io/os": "linux"}});
    let text = "deprecated since v1.14; use \"kubernetes.io/os\" instead";
    assert_eq!(of_pod(spec.clone()), [format!("spec.nodeSelector[beta.kubernetes.io/os]: {text}")]);
    let deployment = |generation: i64| json!({"metadata": {"generation": generation}, "spec": {"template": {"spec": spec.clone()}}});
    let changed = of_change("apps", "Deployment", Part::Main, deployment(2), deployment(1));
    assert_eq!(changed, [format!("spec.template.spec.nodeSelector[beta.kubernetes.io/os]: {text}")]);
    assert_eq!(of_change("apps", "Deployment", Part::Main, deployment(1), deployment(1)), [""; 0]);
    assert_eq!(of_change("apps", "Deployment", Part::Status, deployment(2), deployment(1)), [""; 0]);
}

#[test]
fn addresses_in_other_forms() {
    let service = |spec: Value| of_new("", "Service", json!({"spec": spec}));
    assert_eq!(
        service(
            json!({"type": "LoadBalancer", "loadBalancerIP": "1:0::2", "loadBalancerSourceRanges": ["010.0.0.1/8", "1:0::/16"]})
        ),
        [
            "spec.loadBalancerIP: IPv6 address \"1:0::2\" should be in RFC 5952 canonical format (\"1::2\")",
            "spec.loadBalancerSourceRanges[0]: CIDR value \"010.0.0.1/8\" is ambiguous in this context (should be \
             \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
            "spec.loadBalancerSourceRanges[0]: non-standard CIDR value \"010.0.0.1/8\" is invalid: use \"10.0.0.0/8\"",
            "spec.loadBalancerSourceRanges[1]: IPv6 CIDR value \"1:0::/16\" should be in RFC 5952 canonical format \
             (\"1::/16\")",
        ]
    );
    assert_eq!(
        service(json!({"type": "LoadBalancer", "loadBalancerIP": "::ffff:1.2.3.4"})),
        ["spec.loadBalancerIP: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""]
    );
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "01.2.3.4"}]}}});
    assert_eq!(
        of_change("networking.k8s.io", "Ingress", Part::Status, status, json!({})),
        ["status.loadBalancer.ingress[0]: non-standard IP address \"01.2.3.4\" is invalid: use \"1.2.3.4\""]
    );
}

#[test]
fn pairs_of_certificates_and_keys() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["a".to_owned()])
        .expect("names")
        .self_signed(&key)
        .expect("signed");
    let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let said = |certificate: &str, key: &str| {
        use base64::Engine;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let data = json!({"tls.crt": encode(certificate), "tls.key": encode(key)});
        of_new("", "Secret", json!({"type": "kubernetes.io/tls", "data": data})).concat()
    };
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    assert_eq!(said(&certificate, &key), "");
    assert_eq!(said(&certificate, &other), "tls: private key does not match public key");
    assert_eq!(said("x", &key), "tls: failed to find any PEM data in certificate input");
    assert_eq!(said(&certificate, ""), "tls: failed to find any PEM data in key input");
    assert!(said(&key, &key).ends_with("but did find a private key; PEM inputs may have been switched"));
    assert!(said(&certificate, &certificate).starts_with("tls: found a certificate rather than a key"));
    let nonsense = "-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n";
    assert_eq!(said(&certificate, nonsense), "tls: failed to parse private key");
}

#[test]
fn profiles_in_annotations_become_fields() {
    let annotated = |annotation: &str, context: Value| {
        let mut pod = object(json!({
            "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": annotation}},
            "spec": {"containers": [{"name": "c", "securityContext": context}]},
        }));
        let warnings = Warnings::default();
        app_armor::sync(&mut pod, &warnings);
        (pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"].clone(), warnings.take().len())
    };
    assert_eq!(annotated("unconfined", json!({})), (json!({"type": "Unconfined"}), 1));
    let local = json!({"type": "Localhost", "localhostProfile": "p"});
    assert_eq!(annotated("localhost/p", json!({})), (local.clone(), 1));
    assert_eq!(annotated("unconfined", json!({"appArmorProfile": local.clone()})), (local, 0));
    assert_eq!(annotated("localhost/ p", json!({})), (Value::Null, 1));
}
