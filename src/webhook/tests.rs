use super::*;

#[test]
fn endpoints_are_read_from_urls_and_services() {
    let endpoint = Endpoint::parse("https://hook.example:8443/convert").expect("a URL");
    assert_eq!((&*endpoint.authority, &*endpoint.path), ("hook.example:8443", "/convert"));
    assert_eq!(
        (&*endpoint.server_name, endpoint.address()),
        ("hook.example", "hook.example:8443".to_owned())
    );
    let endpoint = Endpoint::parse("https://[::1]/").expect("a URL");
    assert_eq!((&*endpoint.server_name, endpoint.address()), ("::1", "[::1]:443".to_owned()));
    let endpoint = Endpoint::of_service("default", "hook", 443, "convert");
    assert_eq!((&*endpoint.authority, &*endpoint.path), ("hook.default.svc:443", "/convert"));
}

#[tokio::test]
async fn a_hook_that_does_not_listen() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let endpoint = Endpoint::parse(&format!("https://{address}/convert")).expect("a URL");
    let hook = Webhook::new(endpoint, b"", Duration::from_secs(30));
    let error = hook.post(&address, Bytes::new()).await.expect_err("nobody listens");
    assert_eq!(
        error.to_string(),
        format!(
            "Post \"https://{address}/convert?timeout=30s\": dial tcp {address}: connect: connection refused"
        )
    );
}

#[test]
fn other_statuses_are_told_as_client_go_does() {
    let judged = |status, body: &'static str| {
        words::judge(status, Bytes::from_static(body.as_bytes())).map_err(|error| error.to_string())
    };
    assert_eq!(judged(200, "{}"), Ok(Bytes::from_static(b"{}")));
    assert_eq!(
        judged(404, "404 page not found"),
        Err("the server could not find the requested resource".into())
    );
    assert_eq!(
        judged(500, "boom\n"),
        Err("an error on the server (\"boom\") has prevented the request from succeeding".into())
    );
    assert_eq!(judged(403, r#"{"kind":"Status","message":"no"}"#), Err("no".into()));
}
