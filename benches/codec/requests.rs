//! What a request costs a server in memory that is called in process: no socket, no TLS, no disk.

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use rowplane::Server;
use tower::ServiceExt as _;

use crate::counting;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Requests of each kind. What grows with the number of objects (tables that double) is spread over them.
const REQUESTS: u64 = 2_000;

pub fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("| ConfigMaps of 2 KB, a server in memory | allocations | their bytes |");
    println!("| --- | ---: | ---: |");
    runtime.block_on(async {
        let server = Server::builder().memory().start().await.expect("a server");
        let one = |n: u64| format!("{CONFIG_MAPS}/map-{n}");
        // Once before, for what the first request makes.
        call(&server, Method::POST, CONFIG_MAPS, &config_map("first", "a")).await;
        call(&server, Method::GET, &format!("{CONFIG_MAPS}/first"), "").await;
        counted("create", async |n| {
            call(&server, Method::POST, CONFIG_MAPS, &config_map(&format!("map-{n}"), "a")).await;
        })
        .await;
        counted("get", async |n| call(&server, Method::GET, &one(n), "").await).await;
        counted("update", async |n| {
            call(&server, Method::PUT, &one(n), &config_map(&format!("map-{n}"), "b")).await;
        })
        .await;
        counted("delete", async |n| call(&server, Method::DELETE, &one(n), "").await).await;
        server.stop().await;
    });
    println!();
}

async fn counted(verb: &str, request: impl AsyncFn(u64)) {
    let before = counting::allocations();
    for n in 0..REQUESTS {
        request(n).await;
    }
    let after = counting::allocations();
    println!("| {verb} | {} | {} |", (after.0 - before.0) / REQUESTS, (after.1 - before.1) / REQUESTS);
}

fn config_map(name: &str, mark: &str) -> String {
    let text = "x".repeat(1_800);
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","labels":{{"mark":"{mark}"}}}},"data":{{"text":"{text}"}}}}"#
    )
}

async fn call(server: &Server, method: Method, path: &str, body: &str) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(body.to_owned()))
        .expect("a request");
    let answer = server.service().oneshot(request).await.expect("an answer");
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
    assert!(matches!(status, StatusCode::OK | StatusCode::CREATED), "{status}: {body:?}");
}
