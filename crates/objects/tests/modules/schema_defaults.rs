//! Tests of `schema::types::defaults`.

use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::types::defaults::LEVEL;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

fn defaulted(gvk: &Gvk, object: Value) -> Value {
    let Value::Object(object) = object else { panic!("no object") };
    let kind = builtin::kind(gvk).unwrap_or_else(|| Kind::opaque(gvk.clone()));
    kind.complete(object).expect("of its kind").into()
}

#[test]
fn a_deployment_and_its_template() {
    let sent = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}}}});
    let want = r#"{"metadata":{},"spec":{"replicas":1,"selector":null,"template":{"metadata":{},"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600},"status":{}}"#;
    assert_eq!(defaulted(&Gvk::fixed("apps/v1", "Deployment"), sent).to_string(), want);
}

#[test]
fn defaults_change_nothing_a_second_time() {
    let pod = json!({"spec": {
        "hostNetwork": true,
        "serviceAccount": "robot",
        "containers": [{
            "name": "a",
            "image": "nginx",
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"memory": "1Gi", "cpu": "0.0001"}},
            "livenessProbe": {"httpGet": {"port": 80}},
        }],
        "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}],
    }});
    let once = defaulted(&Gvk::fixed("v1", "Pod"), pod);
    let container = &once["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], json!({"cpu": "1m", "memory": "1Gi"}));
    assert_eq!(
        (&container["imagePullPolicy"], &container["ports"][0]["hostPort"]),
        (&json!("Always"), &json!(80))
    );
    assert_eq!(container["livenessProbe"]["periodSeconds"], 10);
    assert_eq!(once["spec"]["serviceAccountName"], "robot");
    assert_eq!(once["spec"]["volumes"][0], json!({"name": "v", "emptyDir": {}}));
    assert_eq!(once["spec"]["volumes"][1]["secret"]["defaultMode"], 420);
    assert_eq!(defaulted(&Gvk::fixed("v1", "Pod"), once.clone()).to_string(), once.to_string());
}

#[test]
fn texts_of_a_secret_become_data() {
    let secret = json!({"stringData": {"b": "new", "a": "x"}, "data": {"b": "b2xk"}});
    let want = r#"{"metadata":{},"data":{"a":"eA==","b":"bmV3"},"type":"Opaque"}"#;
    assert_eq!(defaulted(&Gvk::fixed("v1", "Secret"), secret).to_string(), want);
}

#[test]
fn kinds_that_nobody_knows_stay_as_they_are() {
    let widget = json!({"spec": {"replicas": null}});
    assert_eq!(defaulted(&Gvk::fixed("example.com/v1", "Widget"), widget.clone()), widget);
}

/// Pairs of an object and its defaulted form, made by upstream's code (`tests/upstream/defaults`).
const UPSTREAM: &[u8] = include_bytes!("../../src/schema/types/defaults/upstream.jsonl.gz");

/// The digest covers upstream's defaults: if it changes, the level must be raised.
#[test]
fn the_level_tells_defaults_apart() {
    use sha2::Digest as _;
    let digest: String =
        sha2::Sha256::digest(UPSTREAM)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((LEVEL, &*digest), (3, "24f4af0e25981790"));
}

#[test]
fn objects_of_every_kind_become_what_upstream_makes_of_them() {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(UPSTREAM), &mut text).expect("gzip");
    let mut failures = Vec::new();
    for line in text.lines() {
        let [sent, want]: [Value; 2] = serde_json::from_str(line).expect("a pair");
        let claim = |name: &str| sent[name].as_str().expect(name).to_owned();
        let gvk = Gvk::parse(&claim("apiVersion"), &claim("kind")).expect("an apiVersion");
        let (got, want) = (defaulted(&gvk, sent.clone()).to_string(), want.to_string());
        if got != want {
            failures.push(format!("{}\nsent {sent}\ngot  {got}\nwant {want}", claim("kind")));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        text.lines().count(),
        failures.join("\n\n")
    );
}
