//! What `/metrics` says.

use std::sync::Arc;
use std::time::Duration;

use rowplane_objects::schema::names::Gvr;
use rowplane_objects::tree::json;
use rowplane_store::metrics::{AllowedLabels, Metrics, RequestKind, RequestLabels, Scope, WebhookTime};

fn metrics() -> Arc<Metrics> {
    let metrics = Metrics::default();
    metrics.set_build_info(&json!({ "major": "1", "minor": "37", "gitVersion": "v1.37.0" }));
    Arc::new(metrics)
}

fn list_pods() -> RequestLabels {
    RequestLabels {
        verb: "LIST",
        dry_run: "",
        resource: Gvr::fixed("v1", "pods"),
        subresource: "".into(),
        scope: Scope::Namespace,
    }
}

const LABELS: &str = r#"verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",component="apiserver""#;
const COUNTED: &str = r#"verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",component="apiserver",dry_run="""#;

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
}

#[test]
fn values_of_labels_that_are_not_allowed_are_one() {
    let metrics = metrics();
    let mut allowed = AllowedLabels::default();
    allowed.allow("apiserver_request_total,code", "201,500").unwrap();
    allowed.allow("apiserver_request_duration_seconds,verb", "POST").unwrap();
    assert!(allowed.allow("apiserver_request_total", "200").is_err());
    metrics.allow_labels(allowed);
    for code in [200, 201, 404] {
        metrics.request(&list_pods()).finished(code, Duration::from_millis(10), Duration::ZERO);
    }
    let text = metrics.render();
    assert_line(&text, &format!("apiserver_request_total{{{COUNTED},code=\"201\"}} 1"));
    assert_line(&text, &format!("apiserver_request_total{{{COUNTED},code=\"unexpected\"}} 2"));
    let constrained = COUNTED.replace("LIST", "unexpected");
    assert_line(&text, &format!("apiserver_request_duration_seconds_count{{{constrained}}} 3"));
    assert_line(&text, "cardinality_enforcement_unexpected_categorizations_total 3");
}

#[test]
fn requests() {
    let metrics = metrics();
    let finished = |code, took| metrics.request(&list_pods()).finished(code, took, Duration::ZERO);
    finished(200, Duration::from_millis(10));
    finished(200, Duration::from_millis(30));
    finished(410, Duration::from_secs(70));
    metrics.request(&list_pods()).answered(5000);
    let text = metrics.render();
    assert_line(&text, &format!("apiserver_request_total{{{COUNTED},code=\"200\"}} 2"));
    assert_line(&text, &format!("apiserver_request_total{{{COUNTED},code=\"410\"}} 1"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_bucket{{{COUNTED},le=\"0.025\"}} 1"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_bucket{{{COUNTED},le=\"60\"}} 2"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_count{{{COUNTED}}} 3"));
    assert_line(&text, &format!("apiserver_request_sli_duration_seconds_count{{{LABELS}}} 3"));
    assert_line(&text, &format!("apiserver_response_sizes_bucket{{{LABELS},le=\"1000\"}} 0"));
    assert_line(&text, &format!("apiserver_response_sizes_bucket{{{LABELS},le=\"10000\"}} 1"));
    assert_line(&text, "# TYPE apiserver_request_total counter");
    assert_line(&text, "# TYPE apiserver_request_duration_seconds histogram");
}

/// Objectives are about what the server itself does: without webhooks, and without dry runs.
#[test]
fn objectives_leave_out_webhooks_and_dry_runs() {
    let metrics = metrics();
    let create = |dry_run| RequestLabels { verb: "POST", dry_run, ..list_pods() };
    let time = WebhookTime::default();
    time.mutated(Duration::from_secs(1));
    time.mutated(Duration::from_secs(2));
    time.validated(Duration::from_secs(3));
    time.validated(Duration::from_secs(1));
    metrics.request(&create("")).finished(201, Duration::from_secs(7), time.total());
    metrics.request(&create("All")).finished(201, Duration::from_secs(7), time.total());
    let text = metrics.render();
    let labels = LABELS.replace("LIST", "POST");
    assert_line(&text, &format!("apiserver_request_sli_duration_seconds_sum{{{labels}}} 1"));
    assert_line(&text, &format!("apiserver_request_duration_seconds_sum{{{labels},dry_run=\"\"}} 7"));
    assert_line(&text, &format!("apiserver_request_total{{{labels},dry_run=\"All\",code=\"201\"}} 1"));
    assert_eq!(text.matches("apiserver_request_sli_duration_seconds_count{").count(), 1);
    assert!(!text.contains("apiserver_response_sizes_count{"));
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
    let events = metrics.watch_events(&Gvr::fixed("apps/v1", "deployments"));
    events.sent(700);
    events.sent(3000);
    metrics.certificate_shown(3601);
    metrics.commits().committed(7, Duration::from_millis(3));
    metrics.cache_lag().set(2.0);
    metrics.compaction_lag().set(5.0);
    let text = metrics.render();
    assert_line(&text, r#"apiserver_watch_events_total{group="apps",version="v1",resource="deployments"} 2"#);
    let sizes = r#"apiserver_watch_events_sizes_bucket{group="apps",version="v1",resource="deployments""#;
    assert_line(&text, &format!("{sizes},le=\"1024\"}} 1"));
    assert_line(&text, &format!("{sizes},le=\"4096\"}} 2"));
    assert_line(&text, r#"apiserver_client_certificate_expiration_seconds_bucket{le="3600"} 0"#);
    assert_line(&text, r#"apiserver_client_certificate_expiration_seconds_bucket{le="7200"} 1"#);
    assert_line(&text, r#"rowplane_commit_batch_size_bucket{le="4"} 0"#);
    assert_line(&text, r#"rowplane_commit_batch_size_bucket{le="8"} 1"#);
    assert_line(&text, r#"rowplane_commit_duration_seconds_bucket{le="0.004"} 1"#);
    assert_line(&text, "rowplane_cache_lag_revisions 2");
    assert_line(&text, "rowplane_compaction_lag_revisions 5");
    for start in
        ["start_time_seconds 1", "resident_memory_bytes ", "cpu_seconds_total ", "open_fds ", "max_fds "]
    {
        assert!(text.lines().any(|line| line.starts_with(&format!("process_{start}"))), "{start}");
    }
    assert!(text.contains(r#"git_version="v1.37.0""#));
}

/// A watch, or a connection, is an answered request at its end; an objective has none of it.
#[test]
fn long_running_requests_are_counted_at_their_end() {
    let metrics = metrics();
    let watch = RequestLabels { verb: "WATCH", ..list_pods() };
    let (running, never_answered) = {
        let of_watch = metrics.request(&watch);
        (of_watch.long_running(), of_watch.long_running())
    };
    let held = running.clone();
    running.answered(200);
    drop((running, never_answered));
    assert!(!metrics.render().contains("apiserver_request_total{"));
    drop(held);
    let text = metrics.render();
    let labels = COUNTED.replace("LIST", "WATCH");
    assert_line(&text, &format!("apiserver_request_total{{{labels},code=\"200\"}} 1"));
    assert!(!text.contains("apiserver_request_sli_duration_seconds_count{"));
}

#[test]
fn features_are_what_was_switched() {
    let metrics = metrics();
    metrics.know_features(vec![("StorageVersionAPI", true), ("APIServerIdentity", false)]);
    let text = metrics.render();
    assert_line(&text, r#"kubernetes_feature_enabled{name="StorageVersionAPI",stage="ALPHA"} 1"#);
    assert_line(&text, r#"kubernetes_feature_enabled{name="APIServerIdentity",stage="BETA"} 0"#);
    assert_line(&text, r#"kubernetes_feature_enabled{name="APIResponseCompression",stage="BETA"} 1"#);
    assert_eq!(text.matches("kubernetes_feature_enabled{").count(), 254);
}

#[test]
fn servers_count_apart() {
    let (one, other) = (metrics(), metrics());
    one.limit_reached("connections").increment(1);
    assert_line(&one.render(), r#"rowplane_limit_reached_total{limit="connections"} 1"#);
    assert!(!other.render().contains("rowplane_limit_reached_total{"));
}
