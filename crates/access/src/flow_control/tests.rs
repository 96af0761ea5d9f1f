use super::*;
use crate::tree::{Value, json};
use crate::user::User;

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other:?}"),
    }
}

fn standard() -> FlowControl {
    let control = FlowControl::new(600, &Default::default());
    let levels: Vec<Map> = bootstrap::levels().map(|level| level.object).collect();
    let flows: Vec<Map> = bootstrap::flows().map(|flow| flow.object).collect();
    control.configure(&levels, &flows);
    control
}

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

fn classified(control: &FlowControl, attributes: &Attributes<'_>) -> Arc<FlowOfLevel> {
    control.classify(attributes).expect("a flow")
}

fn limit(control: &FlowControl, level: &str) -> usize {
    control.levels()[level].limits.nominal
}

#[test]
fn a_fresh_server_has_upstreams_levels() {
    let control = standard();
    for (level, nominal) in [
        ("exempt", 0),
        ("catch-all", 13),
        ("node-high", 98),
        ("system", 74),
        ("leader-election", 25),
        ("workload-high", 98),
        ("workload-low", 245),
        ("global-default", 49),
    ] {
        assert_eq!(limit(&control, level), nominal, "{level}");
    }
}

#[test]
fn requests_are_classified_as_upstream_classifies_them() {
    let control = standard();
    let of = |user: &User, verb: &str, resource: &str, namespace: &str, path: &str| {
        let attributes = Attributes { resource, namespace, ..Attributes::of_path(user, verb, path) };
        let flow = control.classify(&attributes).expect("a flow");
        format!("{} {}", flow.flow_name(), flow.level_name())
    };
    let authenticated = "system:authenticated";
    let alice = user("alice", &[authenticated]);
    let master = user("root", &["system:masters", authenticated]);
    let node = user("system:node:n", &["system:nodes", authenticated]);
    let account = user(
        "system:serviceaccount:default:a",
        &["system:serviceaccounts", "system:serviceaccounts:default", authenticated],
    );
    let system = user("system:serviceaccount:kube-system:a", &["system:serviceaccounts", authenticated]);
    assert_eq!(of(&master, "list", "pods", "", ""), "exempt exempt");
    assert_eq!(of(&alice, "get", "", "", "/healthz"), "probes exempt");
    assert_eq!(of(&alice, "get", "pods", "n", ""), "global-default global-default");
    assert_eq!(of(&node, "update", "nodes", "", ""), "system-node-high node-high");
    assert_eq!(of(&node, "get", "secrets", "n", ""), "system-nodes system");
    assert_eq!(of(&account, "get", "pods", "n", ""), "service-accounts workload-low");
    assert_eq!(of(&system, "get", "pods", "n", ""), "kube-system-service-accounts workload-high");
    let manager = user("system:kube-controller-manager", &[authenticated]);
    assert_eq!(of(&manager, "get", "pods", "n", ""), "kube-controller-manager workload-high");
    assert_eq!(of(&user("nobody", &[]), "get", "pods", "n", ""), "catch-all catch-all");
}

#[test]
fn mandatory_objects_are_imagined_and_dangling_flows_skipped() {
    let control = FlowControl::new(600, &Default::default());
    let alice = user("alice", &["system:authenticated"]);
    let attributes = Attributes::of_path(&alice, "get", "/x");
    assert_eq!(classified(&control, &attributes).flow_name(), "catch-all");
    let subject = json!({"kind": "User", "user": {"name": "alice"}});
    let rule =
        json!({"subjects": [subject], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]});
    let flow = map(json!({"metadata": {"name": "mine", "uid": "f"}, "spec": {"matchingPrecedence": 500,
        "priorityLevelConfiguration": {"name": "small"}, "rules": [rule]}}));
    control.configure(&[], std::slice::from_ref(&flow));
    assert_eq!(classified(&control, &attributes).flow_name(), "catch-all");
    let level =
        map(json!({"metadata": {"name": "small", "uid": "l"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}}));
    control.configure(&[level], &[flow]);
    let found = classified(&control, &attributes);
    assert_eq!((found.flow_name(), found.uids()), ("mine", &["f".into(), "l".into()]));
    assert_eq!(limit(&control, "small"), 100);
}

#[tokio::test]
async fn a_level_without_an_object_stays_while_it_has_requests() {
    let control = FlowControl::new(600, &Default::default());
    let level = map(json!({"metadata": {"name": "small"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}}));
    control.configure(&[level], &[]);
    let level = control.levels()["small"].level.clone();
    let now = Instant::now();
    let seat = level
        .enter(&Arc::default(), Width::ONE, 0, now, Duration::ZERO, || unreachable!("it does not wait"))
        .await;
    control.configure(&[], &[]);
    assert!(control.levels().contains_key("small"));
    drop(seat);
    control.configure(&[], &[]);
    assert!(!control.levels().contains_key("small"));
}

/// `tests/upstream/fairness` has asked upstream about these requests and hands.
#[test]
fn thousands_of_requests_are_classified_as_upstream_classifies_them() {
    let packed = include_bytes!("../../../../testdata/flowcontrol/classified.json.gz");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed[..]), &mut text).expect("gzip");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut asked, mut of_none) = (0, 0);
    for set in list(&recorded["sets"]) {
        let maps = |name: &str| list(&set[name]).into_iter().map(map).collect::<Vec<Map>>();
        let control = FlowControl::new(600, &Default::default());
        control.configure(&maps("levels"), &maps("flows"));
        for request in list(&set["requests"]) {
            let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
            let groups = list(&request["groups"]);
            let groups = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let user = User { name: text("user"), groups, ..User::default() };
            let fields = ["verb", "path", "group", "resource", "subresource", "namespace"].map(text);
            let [verb, path, group, resource, subresource, namespace] = &fields;
            let path = Attributes::of_path(&user, verb, path);
            let attributes = Attributes { group, resource, subresource, namespace, ..path };
            let found = classified(&control, &attributes);
            assert_eq!(found.flow_name(), text("flow"), "{request:?}");
            if found.level_name() == "l" {
                assert_eq!(found.flow.distinguished_by(&attributes), text("distinguisher"), "{request:?}");
            }
            asked += 1;
            of_none += usize::from(found.flow_name() == "catch-all");
        }
    }
    assert!(asked == 6000 && of_none < asked / 2, "{of_none} of {asked} in no flow");
    for hand in list(&recorded["hands"]) {
        let number = |name: &str| hand[name].as_u64().expect("a number") as usize;
        let hash = hand["hash"].as_str().and_then(|hash| hash.parse().ok()).expect("a hash");
        let cards: Vec<usize> =
            list(&hand["cards"]).iter().filter_map(Value::as_u64).map(|card| card as usize).collect();
        assert_eq!(dealer::Hand::dealt(number("queues"), number("size"), hash).cards(), cards);
    }
}
