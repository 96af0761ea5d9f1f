//! Services, nodes, events and the other kinds of everyday use.

use rowplane_values::tree::{Value, json};

use super::{HOUR_AGO, assert_cells};

#[test]
fn services() {
    let service = |spec: Value, status: Value| json!({"spec": spec, "status": {"loadBalancer": status}});
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]);
    let ingress = json!({"ingress": [{"ip": "9.9.9.9"}, {"hostname": "lb.example"}, {"ip": "1.1.1.1"}]});
    assert_cells(
        "",
        "Service",
        &[
            (
                service(
                    json!({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b"}}),
                    json!({}),
                ),
                json!(["x", "ClusterIP", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP", "60m", "a=b"]),
            ),
            (
                service(
                    json!({"type": "NodePort", "clusterIP": "10.0.0.2", "externalIPs": ["1.2.3.4", "5.6.7.8"]}),
                    json!({}),
                ),
                json!(["x", "NodePort", "10.0.0.2", "1.2.3.4,5.6.7.8", "<none>", "60m", "<none>"]),
            ),
            (
                service(json!({"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]}), ingress),
                json!([
                    "x",
                    "LoadBalancer",
                    "<none>",
                    "1.1.1.1,9.9.9.9,lb.example,1.2.3.4",
                    "<none>",
                    "60m",
                    "<none>"
                ]),
            ),
            (
                service(json!({"type": "LoadBalancer"}), json!({})),
                json!(["x", "LoadBalancer", "<none>", "<pending>", "<none>", "60m", "<none>"]),
            ),
            (
                service(json!({"type": "ExternalName", "externalName": "example.com"}), json!({})),
                json!(["x", "ExternalName", "<none>", "example.com", "<none>", "60m", "<none>"]),
            ),
            (json!({}), json!(["x", "", "<none>", "<unknown>", "<none>", "60m", "<none>"])),
        ],
    );
}

#[test]
fn endpoints() {
    let many =
        json!([{"addresses": [{"ip": "1.1.1.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 81}]}]);
    assert_cells(
        "",
        "Endpoints",
        &[
            (json!({"subsets": many}), json!(["x", "1.1.1.1:80,[fd00::1]:80,1.1.1.1:81 + 1 more...", "60m"])),
            (json!({"subsets": [{"addresses": [{"ip": "1.1.1.1"}]}]}), json!(["x", "1.1.1.1", "60m"])),
            (json!({"subsets": [{"notReadyAddresses": [{"ip": "1.1.1.1"}]}]}), json!(["x", "", "60m"])),
            (json!({}), json!(["x", "<none>", "60m"])),
        ],
    );
    let slice = json!({"addressType": "IPv4", "ports": [{"name": "web", "port": 80}, {"name": "any"}, {}],
        "endpoints": [{"addresses": ["a", "b"]}, {"addresses": ["c"]}, {"addresses": ["d", "e"]}]});
    assert_cells(
        "discovery.k8s.io",
        "EndpointSlice",
        &[
            (slice, json!(["x", "IPv4", "80,any,*", "a,b,c + 2 more...", "60m"])),
            (json!({}), json!(["x", "", "<unset>", "<unset>", "60m"])),
        ],
    );
}

#[test]
fn ingresses() {
    let rules = |hosts: &[&str]| -> Value { hosts.iter().map(|host| json!({"host": host})).collect() };
    let ingress = |rules: Value| json!({"spec": {"rules": rules}});
    let cells = |hosts: &str| json!(["x", "<none>", hosts, "", "80", "60m"]);
    assert_cells(
        "networking.k8s.io",
        "Ingress",
        &[
            (ingress(rules(&[])), cells("*")),
            (ingress(rules(&["", ""])), cells("*")),
            (ingress(rules(&["a", "b", "c"])), cells("a,b,c")),
            (ingress(rules(&["a", "", "b", "c"])), cells("a,b,c")),
            (ingress(rules(&["a", "b", "c", "d", "e"])), cells("a,b,c + 2 more...")),
            (
                json!({"spec": {"ingressClassName": "nginx", "tls": [{}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "h"}]}}}),
                json!(["x", "nginx", "*", "2.2.2.2,h", "80, 443", "60m"]),
            ),
        ],
    );
    assert_cells(
        "networking.k8s.io",
        "IngressClass",
        &[
            (json!({"spec": {"controller": "c"}}), json!(["x", "c", "<none>", "60m"])),
            (
                json!({"spec": {"parameters": {"apiGroup": "example.com", "kind": "P", "name": "n"}}}),
                json!(["x", "", "P.example.com/n", "60m"]),
            ),
        ],
    );
    assert_cells(
        "networking.k8s.io",
        "IPAddress",
        &[
            (
                json!({"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}}),
                json!(["x", "services/default/kubernetes", "60m"]),
            ),
            (
                json!({"spec": {"parentRef": {"group": "G", "resource": "R", "name": "N"}}}),
                json!(["x", "r.g/N", "60m"]),
            ),
        ],
    );
    let selector = json!({"matchLabels": {"a": "b"}});
    assert_cells(
        "networking.k8s.io",
        "NetworkPolicy",
        &[
            (json!({"spec": {"podSelector": selector}}), json!(["x", "a=b", "60m"])),
            (json!({"spec": {"podSelector": {}}}), json!(["x", "<none>", "60m"])),
        ],
    );
}

#[test]
fn nodes() {
    let labels = json!({"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/": "",
        "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"});
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kubeletVersion": "v1.37.0", "osImage": "Linux"}});
    assert_cells(
        "",
        "Node",
        &[
            (
                json!({"metadata": {"labels": labels}, "spec": {"unschedulable": true}, "status": status}),
                json!([
                    "x",
                    "Ready,SchedulingDisabled",
                    "control-plane,edge,worker",
                    "60m",
                    "v1.37.0",
                    "10.0.0.1",
                    "<none>",
                    "Linux",
                    "<unknown>",
                    "<unknown>"
                ]),
            ),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
                json!([
                    "x",
                    "NotReady",
                    "<none>",
                    "60m",
                    "",
                    "<none>",
                    "<none>",
                    "<unknown>",
                    "<unknown>",
                    "<unknown>"
                ]),
            ),
            (
                json!({}),
                json!([
                    "x",
                    "Unknown",
                    "<none>",
                    "60m",
                    "",
                    "<none>",
                    "<none>",
                    "<unknown>",
                    "<unknown>",
                    "<unknown>"
                ]),
            ),
        ],
    );
}

#[test]
fn events() {
    let about = json!({"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"});
    assert_cells(
        "",
        "Event",
        &[
            (
                json!({"involvedObject": about, "type": "Normal", "reason": "Pulled", "message": " done \n", "count": 4,
                "source": {"component": "kubelet", "host": "n1"}, "firstTimestamp": HOUR_AGO,
                "lastTimestamp": "2026-07-01T11:59:00Z", "reportingComponent": "other"}),
                json!([
                    "60s",
                    "Normal",
                    "Pulled",
                    "pod/p",
                    "spec.containers{c}",
                    "kubelet, n1",
                    "done",
                    "60m",
                    4,
                    "x"
                ]),
            ),
            (
                json!({"involvedObject": {"kind": "Node"}, "firstTimestamp": null, "lastTimestamp": null,
                "eventTime": "2026-07-01T11:59:00.000000Z", "reportingComponent": "sched", "source": {}}),
                json!(["60s", "", "", "node", "", "sched", "", "60s", 1, "x"]),
            ),
        ],
    );
    assert_cells(
        "events.k8s.io",
        "Event",
        &[
            (
                json!({"regarding": about, "note": "hello", "eventTime": HOUR_AGO, "reportingController": "c",
                "reportingInstance": "i", "series": {"count": 7, "lastObservedTime": "2026-07-01T11:59:59.500000Z"}}),
                json!(["0s", "", "", "pod/p", "spec.containers{c}", "c, i", "hello", "60m", 7, "x"]),
            ),
            (
                json!({"deprecatedFirstTimestamp": HOUR_AGO, "deprecatedLastTimestamp": "2026-07-01T11:59:00Z",
                "deprecatedCount": 3, "deprecatedSource": {"component": "old"}}),
                json!(["60s", "", "", "", "", "old", "", "60m", 3, "x"]),
            ),
            (json!({}), json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "x"])),
        ],
    );
}

#[test]
fn counted_and_named() {
    assert_cells("", "Namespace", &[(json!({"status": {"phase": "Active"}}), json!(["x", "Active", "60m"]))]);
    assert_cells("", "ServiceAccount", &[(json!({}), json!(["x", "60m"]))]);
    assert_cells(
        "",
        "Secret",
        &[(json!({"type": "Opaque", "data": {"a": "", "b": ""}}), json!(["x", "Opaque", 2, "60m"]))],
    );
    assert_cells(
        "",
        "ConfigMap",
        &[(json!({"data": {"a": ""}, "binaryData": {"b": ""}}), json!(["x", 2, "60m"]))],
    );
    assert_cells("", "LimitRange", &[(json!({}), json!(["x", HOUR_AGO]))]);
    assert_cells(
        "",
        "ResourceQuota",
        &[(
            json!({"status": {"hard": {"pods": "10", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3"}}}),
            json!(["x", "cpu: 0/1, pods: 3/10", "limits.cpu: 0/2", "60m"]),
        )],
    );
}
