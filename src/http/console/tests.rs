use std::io::Read as _;

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

use super::*;

fn get(path: &str, headers: &[(&str, &str)]) -> Option<Response> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answer(&request.body(()).expect("a request"))
}

/// Assertion 66 of `docs/spec/time-and-sql.md`, of the files alone.
#[test]
fn time_and_sql_66_files_have_the_policy_of_the_page() {
    for path in ["/console/", "/console/app.js", "/console/vendor/preact.js", "/console/nothing"] {
        let response = get(path, &[]).expect("an answer");
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
        assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], policy, "{path}");
        assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        let found = if path.ends_with("nothing") { StatusCode::NOT_FOUND } else { StatusCode::OK };
        assert_eq!(response.status(), found, "{path}");
    }
    for path in ["/consoles", "/api/console/", "/"] {
        assert!(get(path, &[]).is_none(), "{path}");
    }
    assert_eq!(get("/console", &[]).expect("an answer").headers()[header::LOCATION], "console/");
    let post = Request::post("/console/").body(()).expect("a request");
    assert_eq!(answer(&post).expect("an answer").status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[test]
fn known_files_are_not_sent_again() {
    let tag = get("/console/", &[]).expect("an answer").headers()[header::ETAG].clone();
    let tag = tag.to_str().expect("text");
    for known in [tag.to_owned(), format!("W/\"0\", {tag}")] {
        let again = get("/console/", &[("if-none-match", &known)]).expect("an answer");
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
    }
    let other = get("/console/", &[("if-none-match", "W/\"0\"")]).expect("an answer");
    assert_eq!(other.status(), StatusCode::OK);
}

#[test]
fn packed_files_are_the_plain_ones() {
    for asset in ASSETS {
        let mut plain = Vec::new();
        GzDecoder::new(asset.packed).read_to_end(&mut plain).expect("gzip");
        assert_eq!(plain, asset.plain, "{}", asset.name);
    }
    let packed = get("/console/app.js", &[("accept-encoding", "br, gzip")]).expect("an answer");
    assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
}

/// Assertion 72 of `docs/spec/time-and-sql.md`.
#[test]
fn time_and_sql_72_vendored_files_are_those_of_the_list_and_all_are_small() {
    let list = include_str!("vendor/LIST");
    let listed: Vec<Vec<&str>> = list.lines().map(|line| line.split("  ").collect()).collect();
    let vendored = ASSETS.iter().filter_map(|asset| Some((asset.name.strip_prefix("vendor/")?, asset)));
    let vendored: Vec<_> = vendored.collect();
    assert_eq!(vendored.len(), listed.len());
    for (name, asset) in vendored {
        let line = listed.iter().find(|line| line.get(1) == Some(&name)).expect(name);
        let sum: String = Sha256::digest(asset.plain).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(line.first(), Some(&sum.as_str()), "{name}");
        assert!(matches!(line.get(4), Some(&("MIT" | "Apache-2.0"))), "{name}");
    }
    let bytes: usize = ASSETS.iter().map(|asset| asset.plain.len()).sum();
    assert!(bytes < 200_000, "{bytes}");
}

#[test]
fn only_loopback_offers_the_page_by_itself() {
    let offered = [(Console::Auto, true, true), (Console::Auto, false, false), (Console::On, false, true)];
    for (console, is_loopback, is_offered) in offered {
        assert_eq!(console.is_offered(is_loopback), is_offered, "{console:?}");
    }
    assert!(!Console::Off.is_offered(true));
}
