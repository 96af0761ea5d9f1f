//! `/metrics`: what dashboards and rules read of kube-apiserver is there.

use std::collections::HashMap;

use serde_json::json;

use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, config_map};

on_every_store! {
    what_rules_and_dashboards_read_is_there,
    metrics_are_in_order_and_tell_of_the_database,
    requests_are_told_apart_as_upstream_does,
    flow_control_and_the_database_are_measured,
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
    let labels = |verb: &str, scope: &str| {
        format!(
            r#"verb="{verb}",group="",version="v1",resource="configmaps",subresource="",scope="{scope}",component="apiserver""#
        )
    };
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
