//! A server that starts: what it answers before its objects are in memory.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use http::Method;
use rowplane::server::application::build_on;
use rowplane::server::environment::Application;
use rowplane::server::error::BuildError;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::client::{Client, Protocol};
use crate::support::raced::{Blocks, Raced};
use crate::support::server::{CONFIGMAPS, Setup, config_map};

/// More than two blocks of rows, and too few for a second reader.
const OBJECTS: usize = 600;
const BLOCK: &str = "256";

on_both_databases! {
    health_is_answered_and_nothing_else_while_objects_are_loaded,
    a_start_that_fails_serves_no_longer,
}

fn text(body: &[u8]) -> &str {
    std::str::from_utf8(body).expect("UTF-8")
}

async fn health_is_answered_and_nothing_else_while_objects_are_loaded(setup: Setup) {
    let server = setup.start().await;
    // A server takes so many writes at once and no more.
    for round in (0..OBJECTS).step_by(150) {
        let create = async |n| server.create(&format!("c-{n:03}"), json!({})).await;
        join_all((round..round + 150).map(create)).await;
    }
    server.stop().await;

    let blocks = Arc::new(Blocks::new(1));
    let (tell, told) = oneshot::channel();
    let gate = blocks.clone();
    let starting = setup.builder().start_with(async move |environment| {
        tell.send(environment.address.expect("it listens")).expect("waited for");
        let inner = environment.commons.open(&environment.config, environment.runtime.clock.clone()).await?;
        let race = Box::new(|_, _| async {}.boxed());
        build_on(Arc::new(Raced { inner, race, blocks: Some(gate) }), environment).await
    });
    let asking = async {
        let mut kubeconfig = setup.kubeconfig();
        let address = told.await.expect("an address");
        kubeconfig.clusters[0].cluster.as_mut().expect("a cluster").server =
            Some(format!("https://{address}"));
        blocks.stalled.notified().await;
        let admin = Client::of_certificate(&kubeconfig, Protocol::Any);
        let anonymous = Client::of_token(&kubeconfig, None);
        while_loading(&admin, &anonymous).await;
        blocks.permits.add_permits(1_000_000);
        admin
    };
    let (server, admin) = tokio::join!(starting, asking);
    let server = server.unwrap_or_else(|error| panic!("start: {}", error.one_line()));
    // The connection has seen both.
    assert_eq!(admin.get("/readyz/startup").await.status, 200);
    let list = admin.get(CONFIGMAPS).await.ok();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(OBJECTS));
    server.stop().await;
}

async fn while_loading(admin: &Client, anonymous: &Client) {
    for alive in ["/livez", "/livez/ping", "/readyz/ping", "/readyz/shutdown"] {
        assert_eq!(admin.get(alive).await.status, 200, "{alive}");
    }
    for open in ["/livez", "/readyz"] {
        assert_eq!(anonymous.get(open).await.status, admin.get(open).await.status, "{open}");
    }
    let ready = admin.get("/readyz").await;
    assert_eq!(ready.status, 500);
    assert!(text(&ready.body).contains("[-]startup failed: reason withheld\n"), "{}", text(&ready.body));
    let startup = admin.get("/readyz/startup").await;
    let expected = format!("internal server error: loading: {BLOCK} of ");
    assert!(text(&startup.body).starts_with(&expected), "{}", text(&startup.body));
    assert!(text(&startup.body).ends_with(" objects\n"), "{}", text(&startup.body));

    for path in [CONFIGMAPS, "/api", "/version", "/openapi/v2", "/metrics", "/nothing"] {
        let refused = admin.get(path).await;
        assert_eq!(refused.headers["retry-after"], "1", "{path}");
        assert_eq!(refused.failure(), starting(), "{path}");
    }
    let body = config_map("early", json!({}));
    assert_eq!(admin.request(Method::POST, CONFIGMAPS).json(&body).await.failure(), starting());
    // Nobody is told more than that it is too early, except about health.
    for (path, code) in [(CONFIGMAPS, 503), ("/readyz/startup", 403)] {
        assert_eq!(anonymous.get(path).await.failure()["code"], code, "{path}");
    }
}

fn starting() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the request has been made before all known HTTP paths have been installed, please try again",
        "reason": "ServiceUnavailable", "details": {"retryAfterSeconds": 1}, "code": 503})
}

async fn a_start_that_fails_serves_no_longer(setup: Setup) {
    let (tell, told) = oneshot::channel();
    let failed = setup.builder().start_with(async move |environment| {
        tell.send(environment.address.expect("it listens")).expect("waited for");
        Err::<Application, BuildError>("no way".into())
    });
    let error = failed.await.err().expect("it fails");
    assert_eq!(error.one_line(), "cannot start: no way");
    let address = told.await.expect("an address");
    // The port is free as soon as the task that listens has ended; until then a bind is refused.
    while tokio::net::TcpListener::bind(address).await.is_err() {
        tokio::task::yield_now().await;
    }
}
