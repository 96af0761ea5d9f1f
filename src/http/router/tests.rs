use axum::body::Body;
use http_body_util::BodyExt as _;

use super::*;

/// Tells its name, and the URL that it was asked.
struct Named(&'static str);

impl Responder for Named {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        let text = format!("{} {}", self.0, request.uri().path_and_query().expect("a path"));
        Box::pin(std::future::ready(Response::new(Body::from(text))))
    }
}

fn named(name: &'static str) -> Arc<dyn Responder> {
    Arc::new(Named(name))
}

fn prefix(path: &str) -> Place {
    Place::Prefix(path.to_owned())
}

fn host(name: &str) -> Place {
    Place::Host(name.to_owned())
}

/// The answer to a request for a URL, by HTTP/2 if that has a host and by HTTP/1.1 otherwise.
async fn told(router: &Router, host: &str, url: &str) -> String {
    let mut request =
        Request::builder().uri(url).header(header::HOST, host).body(Body::empty()).expect("one");
    let cluster = router.find(&mut request);
    let body = cluster.respond(request).await.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn a_host_comes_before_a_path_and_a_longer_path_before_a_shorter_one() {
    let router = Router::default();
    for (place, name) in [
        (prefix("/clusters/a"), "a"),
        (prefix("/clusters/a/b"), "b"),
        (host("c.example"), "c"),
        (host("[::1]"), "six"),
        (Place::Rest, "rest"),
    ] {
        router.add(&place, &named(name)).expect("a place");
    }
    for (host, url, want) in [
        ("x", "/api", "rest /api"),
        ("x", "/clusters/a", "a /"),
        ("x", "/clusters/a?watch=1", "a /?watch=1"),
        ("x", "/clusters/a/", "a /"),
        ("x", "/clusters/a/api/v1?limit=1", "a /api/v1?limit=1"),
        ("x", "/clusters/a/b/api", "b /api"),
        ("x", "/clusters/ab/api", "rest /clusters/ab/api"),
        ("x", "/clusters", "rest /clusters"),
        ("x", "/clusters/%61/api", "rest /clusters/%61/api"),
        ("x", "/clusters/b/../a/api", "rest /clusters/b/../a/api"),
        ("x", "/clusters/a/../../api", "a /../../api"),
        ("c.example", "/clusters/a/api", "c /clusters/a/api"),
        ("C.Example:6443", "/api", "c /api"),
        ("[::1]:6443", "/api", "six /api"),
        ("[::1", "/api", "rest /api"),
        ("x", "https://c.example:6443/api", "c /api"),
        ("c.example", "https://x/clusters/a/api", "a /api"),
    ] {
        assert_eq!(told(&router, host, url).await, want, "{host} {url}");
    }
}

#[tokio::test]
async fn places_come_and_go() {
    let router = Router::alone(Named("first"));
    assert_eq!(told(&router, "x", "/clusters/a").await, "first /clusters/a");
    router.add(&prefix("/clusters/a"), &named("a")).expect("free");
    assert_eq!(
        router.add(&prefix("/clusters/a"), &named("b")).unwrap_err(),
        PlaceError::Taken(prefix("/clusters/a"))
    );
    assert_eq!(told(&router, "x", "/clusters/a").await, "a /");
    router.remove(&Place::Rest);
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no cluster is served at this host and path","reason":"NotFound","details":{},"code":404}"#;
    assert_eq!(told(&router, "x", "/api").await.trim_end(), status);
    router.remove(&prefix("/clusters/a"));
    assert_eq!(told(&router, "x", "/clusters/a").await.trim_end(), status);
}

#[test]
fn a_place_that_no_request_could_mean_is_refused() {
    for path in ["", "/", "a", "/a/", "//a", "/a//b", "/a/..", "/./a", "/a b", "/%61", "/a?b"] {
        assert_eq!(prefix(path).check(), Err(PlaceError::Path(path.to_owned())));
    }
    for name in ["", "A.example", "a:6443", "a/b", "[a]", "::1", "[::1]:1"] {
        assert_eq!(host(name).check(), Err(PlaceError::Host(name.to_owned())));
    }
}
