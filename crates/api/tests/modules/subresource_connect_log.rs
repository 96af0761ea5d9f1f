//! Tests of `subresource::connect::log`.

use rowplane_api::error::Error;
use rowplane_api::options::query::Query;
use rowplane_api::subresource::connect::log::LogOptions;

fn parsed(query: &str) -> Result<LogOptions, Error> {
    LogOptions::parse(&Query::parse(query), "p")
}

#[test]
fn what_the_kubelet_is_asked() {
    let query =
        "tailLines=2&timestamps=true&sinceTime=2026-01-02T03:04:05.6%2B01:00&limitBytes=5&follow=1&x=y";
    let options = parsed(query).expect("options");
    let want = "follow=true&limitBytes=5&sinceTime=2026-01-02T02%3A04%3A05Z&tailLines=2&timestamps=true";
    assert_eq!(options.for_kubelet(), want);
    let options = parsed("previous&sinceSeconds=9&sinceTime=null&follow=0&container=c").expect("options");
    assert_eq!(options.for_kubelet(), "previous=true&sinceSeconds=9");
    assert_eq!(options.container, "c");
}

#[test]
fn what_is_wrong() {
    for (query, want) in [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=0&sinceTime=2026-01-02T03:04:05Z",
            ": Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("stream=Stdout", "stream: Forbidden: may not be specified"),
    ] {
        let error = parsed(query).expect_err("an error").to_string();
        assert_eq!(error, format!("PodLogOptions \"p\" is invalid: {want}"));
    }
    let error = parsed("tailLines=x").expect_err("an error");
    assert_eq!(error, Error::bad_request("strconv.ParseInt: parsing \"x\": invalid syntax"));
    assert!(matches!(parsed("sinceTime=now"), Err(Error::BadRequest(_))));
}
