//! What `/metrics` says.

use super::*;
use crate::tree::json;

fn metrics() -> Arc<Metrics> {
    let metrics = Metrics::default();
    metrics.set_build_info(&json!({ "major": "1", "minor": "37", "gitVersion": "v1.37.0" }));
    Arc::new(metrics)
}

fn list_pods() -> RequestLabels {
    RequestLabels {
        verb: "LIST",
        resource: Gvr::fixed("v1", "pods"),
        subresource: "".into(),
        scope: Scope::Namespace,
    }
}

const LABELS: &str = r#"verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",component="apiserver""#;

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
}

#[test]
fn requests() {
    let metrics = metrics();
    metrics.request(&list_pods()).finished(200, Duration::from_millis(10));
    metrics.request(&list_pods()).finished(200, Duration::from_millis(30));
    metrics.request(&list_pods()).finished(410, Duration::from_secs(70));
    let text = metrics.render();
    assert_line(&text, &format!("apiserver_request_total{{{LABELS},code=\"200\"}} 2"));
    assert_line(&text, &format!("apiserver_request_total{{{LABELS},code=\"410\"}} 1"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_bucket{{{LABELS},le=\"0.025\"}} 1"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_bucket{{{LABELS},le=\"60\"}} 2"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_count{{{LABELS}}} 3"));
    assert_line(&text, "# TYPE apiserver_request_total counter");
    assert_line(&text, "# TYPE apiserver_request_duration_seconds histogram");
}

#[test]
fn guards_count_while_they_live() {
    let metrics = metrics();
    let watch = metrics.request(&list_pods()).long_running();
    let writing = metrics.in_flight(RequestKind::Mutating);
    let text = metrics.render();
    assert_line(&text, &format!("apiserver_longrunning_requests{{{LABELS}}} 1"));
    assert_line(&text, r#"apiserver_current_inflight_requests{request_kind="mutating"} 1"#);
    drop((watch, writing));
    let text = metrics.render();
    assert_line(&text, &format!("apiserver_longrunning_requests{{{LABELS}}} 0"));
    assert_line(&text, r#"apiserver_current_inflight_requests{request_kind="mutating"} 0"#);
}

#[test]
fn the_store_the_cache_and_the_process() {
    let metrics = metrics();
    metrics.watch_events(&Gvr::fixed("apps/v1", "deployments")).increment(16);
    metrics.commits().committed(7, Duration::from_millis(3));
    metrics.cache_lag().set(2.0);
    metrics.compaction_lag().set(5.0);
    let text = metrics.render();
    assert_line(
        &text,
        r#"apiserver_watch_events_total{group="apps",version="v1",resource="deployments"} 16"#,
    );
    assert_line(&text, r#"rowplane_commit_batch_size_bucket{le="4"} 0"#);
    assert_line(&text, r#"rowplane_commit_batch_size_bucket{le="8"} 1"#);
    assert_line(&text, r#"rowplane_commit_duration_seconds_bucket{le="0.004"} 1"#);
    assert_line(&text, "rowplane_cache_lag_revisions 2");
    assert_line(&text, "rowplane_compaction_lag_revisions 5");
    assert!(text.lines().any(|line| line.starts_with("process_start_time_seconds 1")));
    assert!(text.lines().any(|line| line.starts_with("process_resident_memory_bytes ")));
    assert!(text.contains(r#"git_version="v1.37.0""#));
}

#[test]
fn servers_count_apart() {
    let (one, other) = (metrics(), metrics());
    one.limit_reached("connections").increment(1);
    assert_line(&one.render(), r#"rowplane_limit_reached_total{limit="connections"} 1"#);
    assert!(!other.render().contains("rowplane_limit_reached_total{"));
}
