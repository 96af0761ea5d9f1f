//! `/metrics`: what dashboards and rules read of kube-apiserver is there.

use std::collections::HashMap;

use http::Method;
use serde_json::{Value, json};

use crate::custom_resources::{WIDGETS, widget, widgets, with};
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};

on_every_store! {
    what_rules_and_dashboards_read_is_there,
    metrics_are_in_order_and_tell_of_the_database,
    requests_are_told_apart_as_upstream_does,
    requests_are_counted_under_their_verbs,
    watches_count_when_they_end,
    documents_are_requests_too,
    the_way_of_a_request_is_measured,
    bodies_and_updates_are_measured,
    rules_of_definitions_are_measured,
    ranges_of_services_are_counted,
    features_are_named,
    flow_control_and_the_database_are_measured,
}

/// The value of a series, which is written as `/metrics` has it; `None` if it is not there.
async fn value(server: &TestServer, series: &str) -> Option<f64> {
    let text = server.get("/metrics").await.text();
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.map(|value| value.parse().expect("a number"))
}

/// A name, its type, and what its lines have between the braces.
type Families<'t> = HashMap<&'t str, (&'t str, Vec<&'t str>)>;

fn families(text: &str) -> Families<'_> {
    let mut families = Families::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let is_first = families.insert(name, (kind, Vec::new())).is_none();
            assert!(is_first, "{name} comes twice");
        }
    }
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let family = ["", "_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end).filter(|name| families.contains_key(name)));
        let (_, lines) =
            families.get_mut(family.unwrap_or(name)).unwrap_or_else(|| panic!("{line} has no type"));
        lines.push(labels.strip_suffix('}').expect("braces"));
    }
    families
}

/// The order in which Go's client library prints metrics, and the size of the database if it is outside of memory.
async fn metrics_are_in_order_and_tell_of_the_database(setup: Setup) {
    let server = setup.start().await;
    let text = server.get("/metrics").await.text();
    let names = || text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    assert!(names().is_sorted(), "{:?}", names().collect::<Vec<_>>());
    let mut size = text.lines().filter(|line| line.starts_with("apiserver_storage_size_bytes{"));
    match size.next() {
        None => assert!(matches!(setup.database, Database::Memory(_))),
        Some(line) => {
            let bytes = line.strip_prefix("apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} ");
            assert!(bytes.expect("one label").parse::<u64>().expect("bytes") > 10_000, "{line}");
        }
    }
    assert_eq!(size.next(), None);
    server.stop().await;
}

/// Seats of flow control under kube-apiserver's names, and the size of the database where there is one.
async fn flow_control_and_the_database_are_measured(setup: Setup) {
    let has_disk = !matches!(setup.database, Database::Memory(_));
    let server = setup.start().await;
    let alice = server.token("alice-token");
    assert_eq!(alice.post(CONFIGMAPS, &config_map("a", json!({}))).await.status, 403);
    server.create("a", json!({})).await;
    let text = server.get("/metrics").await.text();
    let found = families(&text);
    let series = |name: &str| found.get(name).map_or(0, |(_, series)| series.len());
    for name in [
        "lower_limit_seats",
        "upper_limit_seats",
        "target_seats",
        "demand_seats_high_watermark",
        "demand_seats_average",
        "demand_seats_stdev",
        "demand_seats_smoothed",
        "seat_fair_frac",
        "work_estimated_seats",
        "request_execution_seconds",
        "watch_count_samples",
    ] {
        assert!(series(&format!("apiserver_flowcontrol_{name}")) > 0, "{name}");
    }
    let waits = "apiserver_flowcontrol_request_wait_duration_seconds_bucket{";
    assert!(text.lines().any(|line| line.starts_with(waits) && line.contains("le=\"30\"")));
    let size = text
        .lines()
        .find_map(|line| line.strip_prefix("apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} "));
    assert_eq!(size.is_some(), has_disk);
    assert!(size.is_none_or(|size| size.parse::<u64>().expect("a number") > 10_000));
    for direction in ["receive", "transmit"] {
        assert_eq!(series(&format!("process_network_{direction}_bytes_total")), 1);
    }
    server.stop().await;
}

/// `testdata/metrics/read.txt` after a mixed load.
async fn what_rules_and_dashboards_read_is_there(setup: Setup) {
    let server = setup.start().await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=true")).await;
    server.create("a", json!({"k": "v"})).await;
    watch.expect_named("ADDED", "a").await;
    server.set("a", json!({"k": "w"})).await;
    server.get(CONFIGMAPS).await.ok();
    server.get("/api/v1/namespaces/default/endpoints").await.ok();
    server.remove("a").await;
    let text = server.get("/metrics").await.text();
    let found = families(&text);
    let list = include_str!("../../testdata/metrics/read.txt");
    let mut read = 0;
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.split(' ');
        let (kind, name) = (parts.next().expect("a type"), parts.next().expect("a name"));
        let labels: Vec<&str> = parts.next().map_or(Vec::new(), |labels| labels.split(',').collect());
        let Some((of, series)) = found.get(name) else { panic!("{name} is not there") };
        assert_eq!(*of, kind, "{name}");
        assert!(!series.is_empty(), "{name} has no data");
        for label in labels {
            let has = |series: &&str| format!(",{series}").contains(&format!(",{label}=\""));
            assert!(series.iter().all(has), "{name} without {label}: {series:?}");
        }
        read += 1;
    }
    assert!(read >= 20, "{read}");
}

async fn requests_are_told_apart_as_upstream_does(setup: Setup) {
    let server = setup.start().await;
    server.post(CONFIGMAPS, &config_map("a", json!({"k": "v"}))).await.expect(201);
    server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("b", json!({}))).await.expect(201);
    server.post(format!("{CONFIGMAPS}?dryRun=Some"), &config_map("c", json!({}))).await.failure();
    server.get(CONFIGMAPS).await.ok();
    server.get("/api/v1/namespaces/default/endpoints").await.ok();
    let text = server.get("/metrics").await.text();
    let create = labels("POST", "resource");
    for line in [
        format!(r#"apiserver_request_total{{{create},dry_run="",code="201"}} 1"#),
        format!(r#"apiserver_request_total{{{create},dry_run="All",code="201"}} 1"#),
        format!(r#"apiserver_request_sli_duration_seconds_count{{{create}}} 1"#),
        format!(r#"apiserver_response_sizes_count{{{}}} 1"#, labels("LIST", "namespace")),
        r#"apiserver_requested_deprecated_apis{group="",version="v1",resource="endpoints",subresource="",removed_release=""} 1"#.to_owned(),
        r#"apiserver_storage_objects{resource="configmaps"} "#.to_owned(),
        r#"apiserver_resource_objects{group="apps",resource="deployments"} 0"#.to_owned(),
    ] {
        assert!(text.lines().any(|found| found.starts_with(&line)), "{line} is not in\n{text}");
    }
    assert!(text.contains(r#"dry_run="invalid""#), "{text}");
}

/// The labels of requests for ConfigMaps, without those of the code and of dry runs.
fn labels(verb: &str, scope: &str) -> String {
    format!(
        r#"verb="{verb}",group="",version="v1",resource="configmaps",subresource="",scope="{scope}",component="apiserver""#
    )
}

async fn requests_are_counted_under_their_verbs(setup: Setup) {
    let server = setup.start().await;
    let mut config = config_map("a", json!({"k": "v"}));
    config["apiVersion"] = "v1".into();
    config["kind"] = "ConfigMap".into();
    let path = format!("{CONFIGMAPS}/a?fieldManager=m");
    let apply = server.request(Method::PATCH, path).body("application/apply-patch+yaml", config.to_string());
    apply.await.expect(201);
    server.patch(format!("{CONFIGMAPS}/a"), &json!({"data": {"k": "w"}})).await.ok();
    server.delete(CONFIGMAPS).await.ok();
    for (labels, code) in [
        (labels("APPLY", "resource"), 201),
        (labels("PATCH", "resource"), 200),
        (labels("DELETE", "namespace"), 200),
    ] {
        let series = format!(r#"apiserver_request_total{{{labels},dry_run="",code="{code}"}}"#);
        assert_eq!(value(&server, &series).await, Some(1.0), "{series}");
    }
    server.stop().await;
}

/// A watch is an answered request when it has ended, with its whole time, and none of the objectives' requests.
async fn watches_count_when_they_end(setup: Setup) {
    let server = setup.start().await;
    let labels = labels("WATCH", "namespace");
    let counted = format!(r#"apiserver_request_total{{{labels},dry_run="",code="200"}}"#);
    let active = format!("apiserver_longrunning_requests{{{labels}}}");
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=true&timeoutSeconds=1")).await;
    assert_eq!((value(&server, &counted).await, value(&server, &active).await), (None, Some(1.0)));
    watch.expect_end().await;
    while value(&server, &active).await != Some(0.0) {}
    assert_eq!(value(&server, &counted).await, Some(1.0));
    let seconds = format!(r#"apiserver_request_duration_seconds_sum{{{labels},dry_run=""}}"#);
    assert!(value(&server, &seconds).await > Some(0.5));
    assert_eq!(value(&server, &format!("apiserver_response_sizes_count{{{labels}}}")).await, Some(1.0));
    assert_eq!(
        value(&server, &format!("apiserver_request_sli_duration_seconds_count{{{labels}}}")).await,
        None
    );
    server.stop().await;
}

/// Documents that upstream counts as requests: health, OpenAPI v3 and aggregated discovery.
async fn documents_are_requests_too(setup: Setup) {
    let server = setup.start().await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    server.get("/livez").await.text();
    server.get("/openapi/v3/api/v1").await.text();
    server.get("/apis").header("accept", aggregated).await.ok();
    server.get("/apis").await.ok();
    server.get("/version").await.ok();
    for (path, component) in [("/livez", ""), ("openapi/v3/", ""), ("apis", "apiserver")] {
        let series = format!(
            r#"apiserver_request_total{{verb="GET",group="",version="",resource="",subresource="{path}",scope="",component="{component}",dry_run="",code="200"}}"#
        );
        assert_eq!(value(&server, &series).await, Some(1.0), "{series}");
    }
    assert!(!server.get("/metrics").await.text().contains("subresource=\"/version\""));
    server.stop().await;
}

/// The steps of each request before its handler, upstream's filters: each that is passed, and not the one that refuses.
async fn the_way_of_a_request_is_measured(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    let passed = async |filter: &str| {
        let series = format!("apiserver_request_filter_duration_seconds_count{{filter=\"{filter}\"}}");
        value(&server, &series).await.unwrap_or_default()
    };
    let filters =
        ["authentication", "audit", "constrainedimpersonation", "priorityandfairness", "authorization"];
    let mut before = [0.0; 5];
    for (filter, before) in filters.iter().zip(&mut before) {
        *before = passed(filter).await;
    }
    alice.get(CONFIGMAPS).await.failure();
    for (at, (filter, before)) in filters.iter().zip(before).enumerate() {
        // Those that ask are requests, too: five before for each filter, and as many as have asked since.
        let asked = passed(filter).await - before - filters.len() as f64;
        assert_eq!(asked, if *filter == "authorization" { 0.0 } else { 1.0 }, "{at} {filter}");
    }
    server.stop().await;
}

async fn bodies_and_updates_are_measured(setup: Setup) {
    let server = setup.start().await;
    let body = config_map("a", json!({"k": "v"}));
    server.post(CONFIGMAPS, &body).await.expect(201);
    let object = server.get(format!("{CONFIGMAPS}/a")).await.ok();
    server.put(format!("{CONFIGMAPS}/a"), &object).await.ok();
    server.patch(format!("{CONFIGMAPS}/a"), &json!({"data": {"k": "w"}})).await.ok();
    server.delete(format!("{CONFIGMAPS}/a")).await.ok();
    server.delete(CONFIGMAPS).await.ok();
    let size = |what: &str, verb: &str| {
        format!(r#"apiserver_request_body_size_bytes_{what}{{group="",resource="configmaps",verb="{verb}"}}"#)
    };
    for verb in ["create", "update", "patch", "delete", "delete_collection"] {
        assert_eq!(value(&server, &size("count", verb)).await, Some(1.0), "{verb}");
    }
    assert_eq!(value(&server, &size("sum", "create")).await, Some(body.to_string().len() as f64));
    let compared =
        |path: &str| format!("apiserver_request_timestamp_comparison_time_count{{code_path=\"{path}\"}}");
    assert!(value(&server, &compared("unequal_objects_fast")).await >= Some(2.0));
    server.stop().await;
}

async fn rules_of_definitions_are_measured(setup: Setup) {
    let server = setup.start().await;
    let count = |what: &str| format!("apiserver_cel_{what}_duration_seconds_count");
    assert_eq!(value(&server, &count("compilation")).await, Some(0.0));
    let mut definition = widgets();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "!has(self.replicas) || self.replicas < 5"}]);
    with(&server, &definition).await;
    while server.get(WIDGETS).await.status != 200 {}
    server.post(WIDGETS, &widget("a", json!({"replicas": 1}))).await.expect(201);
    server.post(WIDGETS, &widget("b", json!({"replicas": 9}))).await.expect(422);
    assert_eq!(value(&server, &count("compilation")).await, Some(1.0));
    assert_eq!(value(&server, &count("evaluation")).await, Some(2.0));
    server.stop().await;
}

/// Addresses and node ports that were given or refused, and the rest of their ranges.
async fn ranges_of_services_are_counted(setup: Setup) {
    let server = setup.start().await;
    let services = "/api/v1/namespaces/default/services";
    let post = async |path: &str, name: &str, spec: Value| {
        let mut service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
        service["spec"].as_object_mut().expect("a spec").extend(spec.as_object().expect("fields").clone());
        server.post(format!("{services}{path}"), &service).await.status
    };
    let scope = |name: &str, scope: &str| {
        let cidr = if name.starts_with("clusterip") { r#"cidr="10.0.0.0/24","# } else { "" };
        format!(r#"kube_apiserver_{name}{{{cidr}scope="{scope}"}}"#)
    };
    let of_range = |name: &str| format!(r#"kube_apiserver_clusterip_allocator_{name}{{cidr="10.0.0.0/24"}}"#);
    let free = async || value(&server, &of_range("available_ips")).await.expect("a number");
    let ports = "kube_apiserver_nodeport_allocator_available_ports";
    let (addresses_before, ports_before) = (free().await, value(&server, ports).await.expect("a number"));
    assert_eq!(post("", "a", json!({"type": "NodePort"})).await, 201);
    assert_eq!(post("?dryRun=All", "dry", json!({"type": "NodePort"})).await, 201);
    assert_eq!(post("", "b", json!({"clusterIP": "10.0.0.7"})).await, 201);
    assert_eq!(post("", "c", json!({"clusterIP": "10.0.0.7"})).await, 422);
    assert_eq!(free().await, addresses_before - 2.0);
    assert_eq!(value(&server, ports).await, Some(ports_before - 1.0));
    let used = value(&server, &of_range("allocated_ips")).await.expect("a number");
    assert_eq!(used + free().await, 254.0);
    for (series, count) in [
        (scope("clusterip_allocator_allocation_total", "dynamic"), 1.0),
        (scope("clusterip_allocator_allocation_total", "static"), 1.0),
        (scope("clusterip_allocator_allocation_errors_total", "static"), 1.0),
        (of_range("allocation_duration_seconds_count"), 2.0),
        (scope("nodeport_allocator_allocation_total", "dynamic"), 1.0),
    ] {
        // The Service `kubernetes` takes its own address by name.
        let own = f64::from(u8::from(series.contains("allocation_total") && series.contains("static")))
            + f64::from(u8::from(series.contains("duration")));
        assert_eq!(value(&server, &series).await, Some(count + own), "{series}");
    }
    server.delete(format!("{services}/a")).await.ok();
    assert_eq!(free().await, addresses_before - 1.0);
    server.stop().await;
}

/// Features that are on, features that are missing here, and one that this server has switched off.
async fn features_are_named(setup: Setup) {
    let server = setup.start().await;
    for (name, stage, is_on) in [
        ("APIServerIdentity", "BETA", 0.0),
        ("APIResponseCompression", "BETA", 1.0),
        ("DRAAdminAccess", "", 1.0),
    ] {
        let series = format!(r#"kubernetes_feature_enabled{{name="{name}",stage="{stage}"}}"#);
        assert!(value(&server, &series).await == Some(is_on), "{series}");
    }
    server.stop().await;
}
