//! Allocations of Services: addresses, node ports, families. The expectations are kube-apiserver's answers.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{Setup, TestServer};

const SERVICES: &str = "/api/v1/namespaces/t/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

on_every_store! {
    every_kind_of_service,
    addresses_are_claimed_once,
    ports_are_claimed_once,
    updates_keep_what_was_given,
    types_change,
    a_service_that_stands_for_a_name,
    ports_are_given_back,
    many_at_once,
    replicas_and_restarts,
    refused_writes_take_nothing,
    mistakes_in_addresses_hide_all_others,
}

fn service(name: &str, spec: Value) -> Value {
    let mut service =
        json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    for (field, value) in spec.as_object().expect("fields") {
        service["spec"][field] = value.clone();
    }
    service
}

async fn create(server: &TestServer, name: &str, spec: Value) -> Value {
    server.post(SERVICES, &service(name, spec)).await.expect(201)["spec"].clone()
}

async fn put(server: &TestServer, name: &str, spec: Value) -> Value {
    server.put(format!("{SERVICES}/{name}"), &service(name, spec)).await.ok()["spec"].clone()
}

async fn refuse(server: &TestServer, spec: Value) -> String {
    let refused = server.post(SERVICES, &service("refused", spec)).await.failure();
    assert_eq!(refused["code"], 422, "{refused}");
    let message = refused["message"].as_str().expect("text");
    message.strip_prefix("Service \"refused\" is invalid: ").expect(message).to_owned()
}

/// All but that of the Service `kubernetes`.
async fn addresses(server: &TestServer) -> Vec<String> {
    let list = server.get(ADDRESSES).await.ok();
    let items = list["items"].as_array().expect("items").iter();
    let names = items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned());
    names.filter(|name| name != "10.0.0.1").collect()
}

fn without(mut spec: Value, fields: &[&str]) -> Value {
    for field in fields {
        spec.as_object_mut().expect("an object").shift_remove(*field);
    }
    spec
}

async fn every_kind_of_service(setup: Setup) {
    let server = setup.start().await;
    let plain = create(&server, "plain", json!({})).await;
    let address = plain["clusterIP"].as_str().expect("an address").to_owned();
    assert!(address.starts_with("10.0.0."), "{address}");
    let expected = json!({
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "selector": {"a": "b"},
        "clusterIP": address,
        "clusterIPs": [address],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    });
    assert_eq!(plain, expected);
    let allocated = ["clusterIP", "clusterIPs"];
    let headless = create(&server, "headless", json!({"clusterIP": "None"})).await;
    assert_eq!(headless["clusterIPs"], json!(["None"]));
    assert_eq!(without(headless, &allocated), without(expected.clone(), &allocated));
    let unselective =
        json!({"metadata": {"name": "n"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let unselective = server.post(SERVICES, &unselective).await.expect(201);
    assert_eq!(unselective["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(unselective["spec"]["ipFamilyPolicy"], "RequireDualStack");
    let external = create(&server, "external", json!({"type": "ExternalName", "externalName": "x.y"})).await;
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
        assert_eq!(external.get(field), None, "{field}");
    }
    let ports = json!([{"port": 80, "name": "a"}, {"port": 80, "protocol": "UDP", "name": "b"},
        {"port": 81, "name": "c", "nodePort": 30081}]);
    let nodes = create(&server, "nodes", json!({"type": "NodePort", "ports": ports})).await;
    let number = |index: usize| nodes["ports"][index]["nodePort"].as_i64().expect("a node port");
    assert!((30000..=32767).contains(&number(0)), "{nodes}");
    assert_eq!(
        (number(0), number(2), &nodes["externalTrafficPolicy"]),
        (number(1), 30081, &json!("Cluster"))
    );
    let balanced =
        create(&server, "lb", json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"})).await;
    assert!(
        balanced["ports"][0]["nodePort"].is_i64() && balanced["healthCheckNodePort"].is_i64(),
        "{balanced}"
    );
    assert_eq!(balanced["allocateLoadBalancerNodePorts"], true);
    let unbalanced = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let unbalanced = create(&server, "lb2", unbalanced).await;
    assert_eq!(unbalanced["ports"][0].get("nodePort"), None);
    let preferring = create(&server, "preferring", json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    assert_eq!(
        (&preferring["ipFamilies"], &preferring["ipFamilyPolicy"]),
        (&json!(["IPv4"]), &json!("PreferDualStack"))
    );
}

async fn addresses_are_claimed_once(setup: Setup) {
    let server = setup.start().await;
    let taken = create(&server, "a", json!({"clusterIP": "10.0.0.10"})).await;
    assert_eq!(taken["clusterIPs"], json!(["10.0.0.10"]));
    let claim = server.get(format!("{ADDRESSES}/10.0.0.10")).await.ok();
    assert_eq!(claim["spec"], json!({"parentRef": {"resource": "services", "namespace": "t", "name": "a"}}));
    let labels = json!({"ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    assert_eq!(claim["metadata"]["labels"], labels);
    let managers = |object: &Value| object["metadata"]["managedFields"].to_string();
    assert!(managers(&claim).contains("kube-apiserver"));
    let cases = [
        (
            json!({"clusterIP": "10.0.0.10"}),
            r#"spec.clusterIPs: Invalid value: ["10.0.0.10"]: failed to allocate IP 10.0.0.10: provided IP is already allocated"#,
        ),
        (
            json!({"clusterIP": "1.2.3.4"}),
            r#"spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range"#,
        ),
        (
            json!({"clusterIP": "fd00::1"}),
            r#"spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster"#,
        ),
        (
            json!({"clusterIP": "x"}),
            r#"spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
        ),
        (
            json!({"clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.78"]}),
            r#"spec.clusterIPs: Invalid value: ["10.0.0.78"]: first value must match `clusterIP`"#,
        ),
        (
            json!({"clusterIPs": ["10.0.0.78"]}),
            r#"spec.clusterIPs: Invalid value: ["10.0.0.78"]: must be empty when `clusterIP` is not specified"#,
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services"#,
        ),
    ];
    for (spec, want) in cases {
        assert_eq!(refuse(&server, spec).await, want);
    }
    // What was allocated belongs to nobody.
    let stored = server.get(format!("{SERVICES}/a")).await.ok();
    assert!(
        managers(&stored).contains("f:internalTrafficPolicy") && !managers(&stored).contains("f:ipFamil")
    );
    server.delete(format!("{SERVICES}/a")).await.ok();
    assert!(addresses(&server).await.is_empty());
    create(&server, "b", json!({"clusterIP": "10.0.0.10"})).await;
}

async fn ports_are_claimed_once(setup: Setup) {
    let server = setup.start().await;
    let with = |port: u32| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    create(&server, "a", with(30081)).await;
    assert_eq!(
        refuse(&server, with(30081)).await,
        "spec.ports[0].nodePort: Invalid value: 30081: provided port is already allocated"
    );
    assert_eq!(
        refuse(&server, with(80)).await,
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid \
         ports is 30000-32767"
    );
    // The refused ones gave their addresses back.
    assert_eq!(addresses(&server).await.len(), 1);
    server.delete(format!("{SERVICES}/a")).await.ok();
    create(&server, "b", with(30081)).await;
}

async fn updates_keep_what_was_given(setup: Setup) {
    let server = setup.start().await;
    let created = create(&server, "a", json!({"type": "NodePort"})).await;
    assert_eq!(put(&server, "a", json!({"type": "NodePort"})).await, created);
    assert_eq!(
        server.put(format!("{SERVICES}/a"), &service("a", json!({"type": "NodePort"}))).await.ok()["spec"],
        created
    );
    let other: Answer =
        server.put(format!("{SERVICES}/a"), &service("a", json!({"clusterIP": "10.0.0.9"}))).await;
    let want =
        r#"Service "a" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.9"]: may not change once set"#;
    assert_eq!(other.failure()["message"], want);
    let moved = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30050}]});
    let moved = put(&server, "a", moved).await;
    assert_eq!((&moved["ports"][0]["nodePort"], &moved["clusterIP"]), (&json!(30050), &created["clusterIP"]));
    // The old one is free again.
    let freed =
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": created["ports"][0]["nodePort"]}]});
    create(&server, "b", freed).await;
}

async fn types_change(setup: Setup) {
    let server = setup.start().await;
    let created = create(&server, "a", json!({"type": "NodePort", "clusterIP": "10.0.0.20"})).await;
    let path = format!("{SERVICES}/a");
    let patch = |spec: Value| server.patch(path.clone(), &json!({"spec": spec}));
    let plain = patch(json!({"type": "ClusterIP"})).await.ok();
    assert_eq!(plain["spec"]["clusterIP"], created["clusterIP"]);
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(plain["spec"].get("externalTrafficPolicy"), None);
    let external = patch(json!({"type": "ExternalName", "externalName": "a.b"})).await.ok();
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(external["spec"].get(field), None, "{field}");
    }
    assert!(addresses(&server).await.is_empty());
    let back = put(&server, "a", json!({})).await;
    assert_eq!(addresses(&server).await, [back["clusterIP"].as_str().expect("an address")]);
}

async fn a_service_that_stands_for_a_name(setup: Setup) {
    let server = setup.start().await;
    create(&server, "a", json!({"type": "LoadBalancer", "internalTrafficPolicy": "Local"})).await;
    let path = format!("{SERVICES}/a");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    server.patch(format!("{path}/status"), &status).await.ok();
    let spec = json!({"type": "ExternalName", "externalName": "a.b"});
    let external = server.patch(&*path, &json!({"spec": spec})).await.ok();
    assert_eq!(external["spec"].get("internalTrafficPolicy"), None);
    assert_eq!(external["status"], json!({"loadBalancer": {}}));
    let spec = json!({"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "Cluster"});
    assert_eq!(create(&server, "b", spec).await.get("internalTrafficPolicy"), None);
    let wrong = json!({"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "x"});
    assert!(refuse(&server, wrong).await.starts_with("spec.internalTrafficPolicy: "));
}

/// A balanced Service that does not want node ports any more keeps only those that are still named.
async fn ports_are_given_back(setup: Setup) {
    let server = setup.start().await;
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let mut spec = create(&server, "a", json!({"type": "LoadBalancer", "ports": ports})).await;
    let kept = spec["ports"][1]["nodePort"].clone();
    spec["allocateLoadBalancerNodePorts"] = false.into();
    spec["ports"][0].as_object_mut().expect("a port").shift_remove("nodePort");
    let put = put(&server, "a", spec).await;
    assert_eq!((put["ports"][0].get("nodePort"), &put["ports"][1]["nodePort"]), (None, &kept));
}

async fn many_at_once(setup: Setup) {
    let server = setup.start().await;
    let names: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let one = |name: &String| {
        let (server, name) = (&server, name.clone());
        async move { create(server, &name, json!({"type": "NodePort"})).await }
    };
    let specs = join_all(names.iter().map(one)).await;
    let distinct =
        |pick: fn(&Value) -> String| specs.iter().map(pick).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(distinct(|spec| spec["clusterIP"].to_string()), 60);
    assert_eq!(distinct(|spec| spec["ports"][0]["nodePort"].to_string()), 60);
    // All want the same.
    let same = json!({"clusterIP": "10.0.0.5"});
    let racing = names
        .iter()
        .map(|name| server.post(SERVICES, &service(&format!("x{name}"), same.clone())).into_future());
    let created = join_all(racing).await.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 1);
}

async fn replicas_and_restarts(setup: Setup) {
    let first = setup.start().await;
    create(
        &first,
        "a",
        json!({"type": "NodePort", "clusterIP": "10.0.0.30", "ports": [{"port": 80, "nodePort": 30030}]}),
    )
    .await;
    // SQLite has one server at a time.
    let first = if setup.is_sqlite() {
        first.stop().await;
        None
    } else {
        Some(first)
    };
    let second = setup.start().await;
    for spec in [
        json!({"clusterIP": "10.0.0.30"}),
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30030}]}),
    ] {
        assert!(refuse(&second, spec).await.ends_with("already allocated"));
    }
    second.delete(format!("{SERVICES}/a")).await.ok();
    let again = first.as_ref().unwrap_or(&second);
    create(
        again,
        "b",
        json!({"type": "NodePort", "clusterIP": "10.0.0.30", "ports": [{"port": 80, "nodePort": 30030}]}),
    )
    .await;
}

async fn refused_writes_take_nothing(setup: Setup) {
    let server = setup.start().await;
    create(&server, "a", json!({})).await;
    assert_eq!(
        server.post(SERVICES, &service("a", json!({"type": "NodePort"}))).await.failure()["code"],
        409
    );
    assert_eq!(addresses(&server).await.len(), 1);
    let dry = server
        .post(format!("{SERVICES}?dryRun=All"), &service("b", json!({"type": "NodePort"})))
        .await
        .expect(201);
    assert_eq!(dry["spec"]["clusterIP"], "10.0.0.0");
    assert!(dry["spec"]["ports"][0]["nodePort"].is_i64());
    assert_eq!(addresses(&server).await.len(), 1);
}

/// The answers of kube-apiserver 1.37.2, which allocates before it validates: a refused allocation is all that it tells.
async fn mistakes_in_addresses_hide_all_others(setup: Setup) {
    let server = setup.start().await;
    let bad = json!([{"port": 0}]);
    let range = "failed to allocate IP 10.9.9.9: ";
    for (spec, told) in [
        (
            json!({"clusterIP": "junk", "ports": []}),
            "spec.clusterIPs[0]: Invalid value: \"junk\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
        ),
        (
            json!({"ipFamilies": ["junk"], "ports": bad}),
            "spec.ipFamilies[0]: Unsupported value: \"junk\": supported values: \"IPv4\", \"IPv6\"".to_owned(),
        ),
        (
            json!({"ipFamilies": ["IPv6"], "ports": bad}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster".to_owned(),
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack", "type": "Odd"}),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services".to_owned(),
        ),
        (json!({"clusterIP": "10.9.9.9", "ports": bad}), format!("spec.clusterIPs: Invalid value: [\"10.9.9.9\"]: {range}")),
    ] {
        let found = refuse(&server, spec).await;
        assert!(found.starts_with(&told), "{found}");
    }
    let nameless = json!({"spec": {"ports": [], "clusterIP": "10.9.9.9"}});
    let refused = server.post(SERVICES, &nameless).await.failure();
    let told = refused["message"].as_str().expect("a message");
    let start = "Service \"\" is invalid: spec.clusterIPs: Invalid value: ";
    assert!(told.starts_with(start) && told.contains(range), "{told}");
    // What can be allocated hides nothing, and what is refused holds nothing.
    let told = refuse(&server, json!({"clusterIP": "10.0.0.77", "ports": bad})).await;
    assert!(told.starts_with("[spec.ports[0].port: Invalid value: 0: "), "{told}");
    create(&server, "a", json!({"clusterIP": "10.0.0.77"})).await;
}
