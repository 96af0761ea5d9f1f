//! Tests of `http::health`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use http_body_util::BodyExt as _;
use rowplane::http::health::{Endpoint, HealthChecks, routes};
use tower::ServiceExt as _;

fn checks(database: Result<(), &'static str>) -> HealthChecks {
    let mut checks = HealthChecks::default();
    checks.add("database", &[Endpoint::Healthz, Endpoint::Readyz], move || async move {
        database.map_err(str::to_owned)
    });
    checks.add("poststarthook/crd", &[Endpoint::Readyz], || async { Ok(()) });
    checks
}

async fn answer(checks: &HealthChecks, path: &str, query: &str) -> (u16, String) {
    let answer = checks.answer(path, query).await.unwrap();
    (answer.status.as_u16(), answer.body)
}

#[tokio::test]
async fn healthy() {
    let checks = checks(Ok(()));
    assert_eq!(answer(&checks, "/livez", "").await, (200, "ok".into()));
    let verbose = "[+]ping ok\n[+]database ok\n[+]poststarthook/crd ok\nreadyz check passed\n";
    assert_eq!(answer(&checks, "/readyz", "verbose").await, (200, verbose.into()));
    assert_eq!(answer(&checks, "/livez", "verbose=1").await.1, "[+]ping ok\nlivez check passed\n");
    assert_eq!(answer(&checks, "/readyz/poststarthook/crd", "").await, (200, "ok".into()));
}

#[tokio::test]
async fn warnings_are_for_those_who_read_and_change_no_status() {
    let mut checks = checks(Ok(()));
    checks.warn("the state is in memory");
    let verbose = "[+]ping ok\n[+]database ok\n[+]poststarthook/crd ok\nwarn: the state is in memory\nreadyz check passed\n";
    assert_eq!(answer(&checks, "/readyz", "verbose").await, (200, verbose.into()));
    assert_eq!(answer(&checks, "/readyz", "").await, (200, "ok".into()));
    assert_eq!(answer(&checks, "/livez", "verbose").await.1, "[+]ping ok\nlivez check passed\n");
}

#[tokio::test]
async fn failing_is_always_verbose_and_withholds_the_reason() {
    let checks = checks(Err("secret"));
    let text = "[+]ping ok\n[-]database failed: reason withheld\nhealthz check failed\n";
    assert_eq!(answer(&checks, "/healthz", "").await, (500, text.into()));
    assert_eq!(answer(&checks, "/livez", "").await, (200, "ok".into()));
    let single = (500, "internal server error: secret\n".into());
    assert_eq!(answer(&checks, "/healthz/database", "").await, single);
}

#[tokio::test]
async fn a_post_start_hook_fails_until_it_is_finished() {
    let mut checks = HealthChecks::default();
    let hook = checks.add_post_start_hook("warm-up");
    let text = "[+]ping ok\n[-]poststarthook/warm-up failed: reason withheld\nlivez check failed\n";
    assert_eq!(answer(&checks, "/livez", "").await, (500, text.into()));
    let single = (500, "internal server error: not finished\n".into());
    assert_eq!(answer(&checks, "/healthz/poststarthook/warm-up", "").await, single);
    hook.finish();
    assert_eq!(answer(&checks, "/readyz", "").await, (200, "ok".into()));
}

#[tokio::test]
async fn all_who_ask_within_a_period_cost_one_question() {
    use std::sync::atomic::AtomicUsize;

    for (period, questions) in [(Duration::from_secs(3600), 1), (Duration::ZERO, 1000)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let (mut checks, counter) = (HealthChecks::default(), asked.clone());
        checks.add_shared("database", &[Endpoint::Readyz], period, move || {
            counter.fetch_add(1, Ordering::Relaxed);
            async {
                tokio::task::yield_now().await;
                Err("away".to_owned())
            }
        });
        let ask = || async { checks.answer("/readyz", "").await.unwrap().status.as_u16() };
        let answers = futures_util::future::join_all((0..1000).map(|_| ask())).await;
        assert_eq!((answers, asked.load(Ordering::Relaxed)), (vec![500; 1000], questions));
    }
}

#[tokio::test]
async fn excluding() {
    let checks = checks(Err("down"));
    let query = "verbose&exclude=database&exclude=b&exclude=a";
    let text = "[+]ping ok\n[+]database excluded: ok\n\
        warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nhealthz check passed\n";
    assert_eq!(answer(&checks, "/healthz", query).await, (200, text.into()));
    let escaped = "exclude=database&exclude=poststarthook%2Fcrd";
    assert_eq!(answer(&checks, "/readyz", escaped).await, (200, "ok".into()));
}

/// 57 of `docs/spec/cluster.md`, of names that kube-apiserver has.
#[tokio::test]
async fn cluster_57_checks_that_are_elsewhere() {
    let mut checks = HealthChecks::default();
    checks.add("datastore", &[Endpoint::Readyz], || async { Err("down".to_owned()) });
    assert_eq!(answer(&checks, "/readyz/etcd", "").await.0, 500);
    let query = "verbose&exclude=etcd&exclude=etcd-readiness&exclude=informer-sync&exclude=poststarthook/crd-informer-synced";
    let text = "[+]ping ok\n[+]datastore excluded: ok\nreadyz check passed\n";
    assert_eq!(answer(&checks, "/readyz", query).await, (200, text.into()));
    let (_, text) = answer(&checks, "/livez", "verbose&exclude=etcd").await;
    assert!(text.contains("no matches for"), "it is no check of this endpoint: {text}");
}

#[tokio::test]
async fn unknown_paths() {
    let checks = checks(Ok(()));
    for path in ["/other", "/livez/database", "/readyz/", "readyz", "/"] {
        assert_eq!(checks.answer(path, "").await, None, "{path}");
    }
}

#[tokio::test]
async fn over_http() {
    let router: Router = routes(Arc::new(checks(Err("down"))));
    for (uri, status, body) in [
        ("/livez", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/readyz/database", 500, "internal server error: down\n"),
        ("/readyz/none", 404, "404 page not found\n"),
        ("/readyz/", 404, "404 page not found\n"),
    ] {
        let request = axum::http::Request::get(uri).body(axum::body::Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body);
    }
}
