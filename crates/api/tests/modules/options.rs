//! Tests of `options`.

use std::time::Duration;

use rowplane_api::error::Error;
use rowplane_api::options::query::Query;
use rowplane_api::options::{GetOptions, ReadAt, request_timeout};
use rowplane_objects::revision::Revision;

#[test]
fn get() {
    let get = |query: &str| GetOptions::parse(&Query::parse(query)).map(|options| options.at);
    assert_eq!(get(""), Ok(ReadAt::Latest));
    assert_eq!(get("resourceVersion=0&watch=true&resourceVersionMatch=x"), Ok(ReadAt::Any));
    assert_eq!(get("resourceVersion=7"), Ok(ReadAt::AtLeast(Revision(7))));
    assert!(get("export=true").is_err() && get("export=false").is_ok());
    let text = r#"invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#;
    assert_eq!(get("resourceVersion=abc"), Err(Error::bad_request(text)));
}

#[test]
fn timeouts_only_shorten() {
    let minute = Duration::from_secs(60);
    let timeout = |query: &str| request_timeout(&Query::parse(query), minute);
    assert_eq!(timeout(""), Ok(minute));
    assert_eq!(timeout("timeout=10s"), Ok(Duration::from_secs(10)));
    assert_eq!(timeout("timeout=0"), Ok(minute));
    assert_eq!(timeout("timeout=2h"), Ok(minute));
    let text = r#"invalid timeout specified in the request URL - time: invalid duration "abc""#;
    assert_eq!(timeout("timeout=abc"), Err(Error::bad_request(text)));
}
