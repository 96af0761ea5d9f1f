//! The levels and flows that every server has: mandatory ones, which are kept as they are, and suggested ones, which an
//! administrator may take over.

use crate::fields;
use crate::kinds::prelude::*;
use crate::tree::json;

/// Whether the server keeps the object's spec up to date.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// An object that every server has.
pub struct BootstrapObject {
    pub mandatory: bool,
    pub object: Map,
}

impl BootstrapObject {
    pub fn name(&self) -> &str {
        fields::text(&self.object, &["metadata", "name"])
    }

    pub fn spec(&self) -> &Value {
        &self.object["spec"]
    }

    /// Whether an object has the same spec. How exempt the exempt level is, is the administrator's affair.
    pub fn has_spec_of(&self, object: &Map) -> bool {
        let Some(spec) = object.get("spec") else { return false };
        if self.name() == "exempt" && spec.get("exempt").is_some() && self.spec().get("exempt").is_some() {
            return without_exempt(spec) == without_exempt(self.spec());
        }
        spec == self.spec()
    }
}

fn without_exempt(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.shift_remove("exempt");
    }
    spec
}

/// The PriorityLevelConfigurations.
pub fn levels() -> impl Iterator<Item = BootstrapObject> {
    let queues = [
        ("node-high", 40, 25, (64, 6)),
        ("system", 30, 33, (64, 6)),
        ("leader-election", 10, 0, (16, 4)),
        ("workload-high", 40, 50, (128, 6)),
        ("workload-low", 100, 90, (128, 6)),
        ("global-default", 20, 50, (128, 6)),
    ];
    let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    let catch_all = json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}});
    let suggested = queues.into_iter().map(|(name, shares, lendable, (queues, hand))| {
        let spec = json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": {
                "queues": queues, "handSize": hand, "queueLengthLimit": 50}}}});
        object(false, "PriorityLevelConfiguration", name, spec)
    });
    let level = |name, spec| object(true, "PriorityLevelConfiguration", name, spec);
    [level("exempt", exempt), level("catch-all", catch_all)].into_iter().chain(suggested)
}

/// The FlowSchemas.
pub fn flows() -> impl Iterator<Item = BootstrapObject> {
    let masters = groups(&["system:masters"]);
    let everybody = || groups(&["system:unauthenticated", "system:authenticated"]);
    let nodes = || groups(&["system:nodes"]);
    let accounts =
        || json!([{"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}]);
    let (manager, scheduler) =
        (users(&["system:kube-controller-manager"]), users(&["system:kube-scheduler"]));
    let leases = |verbs: Value| resources(verbs, "coordination.k8s.io", json!(["leases"]), false);
    let mut leaders = users(&["system:kube-controller-manager", "system:kube-scheduler"]);
    append(&mut leaders, accounts());
    let election = rule(leaders, json!([leases(json!(["get", "create", "update"]))]), Value::Null);
    let node_objects = resources(json!(["*"]), "", json!(["nodes", "nodes/status"]), true);
    let node_high = rule(nodes(), json!([node_objects, leases(json!(["*"]))]), Value::Null);
    let probes = json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]);
    [
        flow(true, "exempt", "exempt", 1, None, all(masters)),
        flow(true, "catch-all", "catch-all", 10_000, Some("ByUser"), all(everybody())),
        flow(false, "system-nodes", "system", 500, Some("ByUser"), all(nodes())),
        flow(false, "system-node-high", "node-high", 400, Some("ByUser"), node_high),
        flow(false, "probes", "exempt", 2, None, rule(everybody(), Value::Null, probes)),
        flow(false, "system-leader-election", "leader-election", 100, Some("ByUser"), election),
        flow(false, "kube-controller-manager", "workload-high", 800, Some("ByNamespace"), all(manager)),
        flow(false, "kube-scheduler", "workload-high", 800, Some("ByNamespace"), all(scheduler)),
        flow(
            false,
            "kube-system-service-accounts",
            "workload-high",
            900,
            Some("ByNamespace"),
            all(accounts()),
        ),
        flow(
            false,
            "service-accounts",
            "workload-low",
            9000,
            Some("ByUser"),
            all(groups(&["system:serviceaccounts"])),
        ),
        flow(false, "global-default", "global-default", 9900, Some("ByUser"), all(everybody())),
    ]
    .into_iter()
}

fn object(mandatory: bool, kind: &str, name: &str, spec: Value) -> BootstrapObject {
    let object = json!({
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec,
    });
    let object = match object {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    BootstrapObject { mandatory, object }
}

fn flow(
    mandatory: bool,
    name: &str,
    level: &str,
    precedence: i64,
    method: Option<&str>,
    rule: Value,
) -> BootstrapObject {
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
    });
    if let Some(method) = method {
        spec["distinguisherMethod"] = json!({"type": method});
    }
    spec["rules"] = json!([rule]);
    object(mandatory, "FlowSchema", name, spec)
}

/// A rule that covers every request of its subjects.
fn all(subjects: Value) -> Value {
    let paths = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
    rule(subjects, json!([resources(json!(["*"]), "*", json!(["*"]), true)]), paths)
}

fn rule(subjects: Value, resources: Value, paths: Value) -> Value {
    let mut rule = json!({"subjects": subjects});
    for (name, rules) in [("resourceRules", resources), ("nonResourceRules", paths)] {
        if !rules.is_null() {
            rule[name] = rules;
        }
    }
    rule
}

fn resources(verbs: Value, group: &str, resources: Value, cluster_scope: bool) -> Value {
    let mut rule = json!({"verbs": verbs, "apiGroups": [group], "resources": resources});
    if cluster_scope {
        rule["clusterScope"] = true.into();
    }
    rule["namespaces"] = json!(["*"]);
    rule
}

fn groups(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"kind": "Group", "group": {"name": *name}})).collect::<Vec<Value>>().into()
}

fn users(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"kind": "User", "user": {"name": *name}})).collect::<Vec<Value>>().into()
}

fn append(subjects: &mut Value, more: Value) {
    if let (Some(subjects), Value::Array(more)) = (subjects.as_array_mut(), more) {
        subjects.extend(more);
    }
}
