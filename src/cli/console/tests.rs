use axum::http::Uri;

use super::*;

const SECRET: &str = "/0123456789abcdef0123456789abcdef";

fn proxy() -> Proxy {
    let dir = tempfile::tempdir().expect("a directory");
    let kubeconfig = dir.path().join("config");
    let text = "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1/clusters/a'}}]\n\
                users: [{name: u, user: {token: t}}]\n";
    std::fs::write(&kubeconfig, text).expect("writes");
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 21499);
    let kubeconfig = Kubeconfig::load(Some(&kubeconfig), None).expect("a kubeconfig");
    let upstream = Upstream::of_kubeconfig(&kubeconfig).expect("an upstream");
    Proxy { address, path: SECRET.to_owned(), upstream }
}

async fn status(method: Method, path: &str, headers: &[(&str, &str)]) -> StatusCode {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answered = proxy().pass(request.body(Body::empty()).expect("a request")).await;
    answered.map_or_else(|(status, _)| status, |response| response.status())
}

/// Assertion 67 of `docs/spec/time-and-sql.md`. Nothing listens at the server's address: requests that are passed on
/// are answered by 502.
#[tokio::test]
async fn time_and_sql_67_only_the_page_is_answered_and_only_reads_are_passed_on() {
    let host = [("host", "127.0.0.1:21499")];
    let page = format!("{SECRET}/console/");
    assert_eq!(status(Method::GET, &page, &host).await, StatusCode::OK);
    assert_eq!(status(Method::GET, &page, &[("host", "localhost:21499")]).await, StatusCode::OK);
    for headers in [
        &[][..],
        &[("host", "evil.example:21499")],
        &[("host", "127.0.0.1:1")],
        &[("host", "127.0.0.1:21499"), ("origin", "http://evil.example")],
        &[("host", "127.0.0.1:21499"), ("origin", "null")],
    ] {
        assert_eq!(status(Method::GET, &page, headers).await, StatusCode::FORBIDDEN, "{headers:?}");
    }
    for path in ["/console/", "/0123456789abcdef0123456789abcdee/console/", "/", &format!("{SECRET}x/")] {
        assert_eq!(status(Method::GET, path, &host).await, StatusCode::FORBIDDEN, "{path}");
    }
    let pods = format!("{SECRET}/api/v1/pods");
    assert_eq!(status(Method::GET, &pods, &host).await, StatusCode::BAD_GATEWAY);
    for method in [Method::PUT, Method::POST, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        assert_eq!(status(method.clone(), &pods, &host).await, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let sql = format!("{SECRET}/rowplane/sql");
    assert_eq!(status(Method::POST, &sql, &host).await, StatusCode::BAD_GATEWAY);
}

#[test]
fn the_secret_is_taken_off() {
    let uri: Uri = format!("{SECRET}/api/v1/pods?limit=1").parse().expect("a URI");
    assert_eq!(proxy().without_secret(&uri).expect("known").to_string(), "/api/v1/pods?limit=1");
    let secrets: Vec<String> = (0..2).map(|_| secret().expect("random")).collect();
    assert_ne!(secrets[0], secrets[1]);
    assert_eq!(secrets[0].len(), SECRET.len());
}
