//! Tests of `options::list`.

use rowplane_api::error::Error;
use rowplane_api::options::continue_token::ContinueToken;
use rowplane_api::options::continue_token::LastKey;
use rowplane_api::options::continue_token::PageAt;
use rowplane_api::options::continue_token::Scope;
use rowplane_api::options::continue_token::TokenKey;
use rowplane_api::options::continue_token::TokenKeys;
use rowplane_api::options::list::Collection;
use rowplane_api::options::list::ListAt;
use rowplane_api::options::list::ListOptions;
use rowplane_api::options::query::Query;
use rowplane_objects::kinds::behavior::selectable::SelectableFields;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::names::GroupResource;

fn keys() -> TokenKeys {
    TokenKeys::new(TokenKey { id: 1, secret: vec![1; 32] }, vec![])
}

fn parse(query: &str) -> Result<ListOptions, Error> {
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
    ListOptions::parse(&Query::parse(query), collection, &keys())
}

fn token() -> (ContinueToken, String) {
    let after = LastKey { namespace: "t".into(), name: "a".into() };
    let token = ContinueToken { at: PageAt::Revision(Revision(5)), after, remaining: None };
    let resource = GroupResource::new("", "configmaps");
    let text = keys()
        .encode(&token, Scope { resource: &resource, namespace: Some("t"), door: None, order: "" })
        .unwrap();
    (token, text)
}

#[test]
fn decision_table() {
    let n = Revision(7);
    let cases = [
        ("", ListAt::Latest),
        ("limit=5", ListAt::Latest),
        ("resourceVersion=0", ListAt::Any),
        ("resourceVersion=0&limit=1", ListAt::Any),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan", ListAt::Any),
        ("resourceVersion=7", ListAt::AtLeast(n)),
        ("resourceVersion=7&limit=-1", ListAt::AtLeast(n)),
        ("resourceVersion=7&limit=1", ListAt::Exactly(n)),
        ("resourceVersion=7&limit=1&fieldSelector=metadata.name=x", ListAt::AtLeast(n)),
        ("resourceVersion=7&limit=1&resourceVersionMatch=NotOlderThan", ListAt::AtLeast(n)),
        ("resourceVersion=7&resourceVersionMatch=Exact", ListAt::Exactly(n)),
        ("watch=0&allowWatchBookmarks=1&timeoutSeconds=5", ListAt::Latest),
    ];
    for (query, want) in cases {
        assert_eq!(parse(query).unwrap().at, want, "{query}");
    }
    let (token, text) = token();
    for query in [format!("continue={text}"), format!("continue={text}&resourceVersion=0&limit=2")] {
        assert_eq!(parse(&query).unwrap().at, ListAt::Token(token.clone()));
    }
}

#[test]
fn bad_requests() {
    let (_, text) = token();
    let cases = [
        ("limit=abc".to_owned(), r#"strconv.ParseInt: parsing "abc": invalid syntax"#),
        ("timeoutSeconds=".to_owned(), r#"strconv.ParseInt: parsing "": invalid syntax"#),
        (
            "labelSelector=a%20b".to_owned(),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("fieldSelector=x".to_owned(), "invalid selector: 'x'; can't understand 'x'"),
        (
            "fieldSelector=spec.x=1".to_owned(),
            r#""spec.x" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (
            "resourceVersion=abc".to_owned(),
            r#"invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#,
        ),
        (
            "continue=YQ&resourceVersion=x".to_owned(),
            "invalid continue token: continue key is not valid: server does not recognize this encoded version 97",
        ),
        (
            format!("continue={text}&resourceVersion=x"),
            "specifying resource version is not allowed when using continue",
        ),
    ];
    for (query, want) in cases {
        assert_eq!(parse(&query).unwrap_err(), Error::bad_request(want), "{query}");
    }
}

#[test]
fn validation() {
    let no_version = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
    let with_continue =
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided";
    let cases = [
        ("resourceVersionMatch=Exact", no_version.to_owned()),
        (
            "resourceVersionMatch=NotOlderThan&continue=x",
            format!("[{no_version}, {with_continue}]"),
        ),
        (
            "resourceVersionMatch=foo&resourceVersion=1",
            r#"resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", """#
                .to_owned(),
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            r#"resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#
                .to_owned(),
        ),
        (
            "sendInitialEvents=false",
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list".to_owned(),
        ),
    ];
    for (query, want) in cases {
        let error = parse(query).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }));
        assert_eq!(error.to_string(), format!("ListOptions.meta.k8s.io \"\" is invalid: {want}"), "{query}");
    }
}

#[test]
fn selectors_narrow_the_range() {
    let resource = GroupResource::new("", "configmaps");
    let fields = SelectableFields::metadata();
    let all = Collection {
        resource: &resource,
        namespaced: true,
        namespace: None,
        name: None,
        fields: &fields,
        door: None,
        ask: None,
    };
    let parse = |query: &str, collection| ListOptions::parse(&Query::parse(query), collection, &keys());
    let options = parse("fieldSelector=metadata.name=x,metadata.namespace=y", all).unwrap();
    assert_eq!(options.selection.name.as_deref(), Some("x"));
    assert_eq!(options.selection.namespace.as_deref(), Some("y"));
    let exact = parse("fieldSelector=metadata.name=x&resourceVersion=7&limit=1", all).unwrap();
    assert_eq!(exact.at, ListAt::Exactly(Revision(7)));
    let named = Collection { name: Some("x"), ..all };
    assert!(parse("fieldSelector=metadata.name=x", named).is_ok());
    let text = "fieldSelector metadata.name doesn't match requested name";
    assert_eq!(parse("fieldSelector=metadata.name=z", named).unwrap_err(), Error::bad_request(text));
}
