//! Tests of `options::watch`.

use std::time::Duration;

use rowplane_api::error::Error;
use rowplane_api::options::ReadAt;
use rowplane_api::options::list::Collection;
use rowplane_api::options::query::Query;
use rowplane_api::options::watch::StateEnd;
use rowplane_api::options::watch::WatchOptions;
use rowplane_api::options::watch::WatchPath;
use rowplane_api::options::watch::WatchStart;
use rowplane_objects::kinds::behavior::selectable::SelectableFields;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::names::GroupResource;

fn parse(query: &str, path: WatchPath) -> Result<WatchOptions, Error> {
    let resource = GroupResource::new("", "configmaps");
    let fields = SelectableFields::metadata();
    let collection = Collection {
        resource: &resource,
        namespaced: true,
        namespace: Some("t"),
        name: None,
        fields: &fields,
        door: None,
        ask: None,
    };
    WatchOptions::parse(&Query::parse(query), collection, path)
}

const STREAM: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

#[test]
fn decision_table() {
    let state = |at| WatchStart::State { at, end: StateEnd::Silent };
    let told = |at| WatchStart::State { at, end: StateEnd::Bookmark };
    let n = Revision(7);
    let none = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let cases = [
        (String::new(), state(ReadAt::Latest)),
        ("allowWatchBookmarks=true".into(), told(ReadAt::Latest)),
        ("resourceVersion=0".into(), state(ReadAt::Any)),
        ("resourceVersion=7&allowWatchBookmarks=1&limit=3&continue=x".into(), WatchStart::After(n)),
        (STREAM.into(), state(ReadAt::Latest)),
        (format!("{STREAM}&resourceVersion=0&allowWatchBookmarks="), told(ReadAt::Any)),
        (format!("{STREAM}&resourceVersion=7"), state(ReadAt::AtLeast(n))),
        (none.into(), WatchStart::Now),
        (format!("{none}&resourceVersion=0"), WatchStart::Now),
        (format!("{none}&resourceVersion=7"), WatchStart::After(n)),
    ];
    for (query, want) in cases {
        assert_eq!(parse(&query, WatchPath::Collection).unwrap().start, want, "{query}");
    }
    let deprecated = [
        ("allowWatchBookmarks=true", state(ReadAt::Any)),
        ("resourceVersion=0", state(ReadAt::Any)),
        ("resourceVersion=7", WatchStart::After(n)),
        ("watch=true&allowWatchBookmarks=true", told(ReadAt::Latest)),
    ];
    for (query, want) in deprecated {
        assert_eq!(parse(query, WatchPath::Deprecated).unwrap().start, want, "{query}");
    }
}

#[test]
fn validation() {
    let requires = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    let unsupported = r#"resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan""#;
    let unless = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    let cases = [
        ("sendInitialEvents=true", requires.to_owned()),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", format!("[{requires}, {unsupported}]")),
        ("resourceVersion=5&resourceVersionMatch=NotOlderThan", unless.to_owned()),
    ];
    for (query, want) in cases {
        let error = parse(query, WatchPath::Collection).unwrap_err();
        assert_eq!(error.to_string(), format!("ListOptions.meta.k8s.io \"\" is invalid: {want}"));
    }
    assert!(parse(STREAM, WatchPath::Deprecated).is_err());
}

#[test]
fn revisions_and_timeouts() {
    let text = r#"invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#;
    let error = parse("resourceVersion=abc", WatchPath::Collection).unwrap_err();
    assert_eq!(error, Error::bad_request(text));
    let timeout = |query| parse(query, WatchPath::Collection).unwrap().timeout;
    assert_eq!(timeout(""), None);
    assert_eq!(timeout("timeoutSeconds=0"), None);
    assert_eq!(timeout("timeoutSeconds=5"), Some(Duration::from_secs(5)));
    assert_eq!(timeout("timeoutSeconds=-5"), Some(Duration::ZERO));
}
