//! Tests of `kinds::behavior::format`.

use rowplane_objects::kinds::behavior::format::{
    dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value, long_name, path_segment,
};

const KEY_TEXT: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn label_keys() {
    for good in ["a", "A.b_c-9", "example.com/a", "a/b"] {
        assert_eq!(label_key(good), Vec::<String>::new(), "{good}");
    }
    assert_eq!(label_key("-a"), [KEY_TEXT]);
    assert_eq!(label_key(""), ["name part must be non-empty", KEY_TEXT]);
    assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
    assert_eq!(label_key(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
    assert!(label_key("A/a")[0].starts_with("prefix part a lowercase RFC 1123 subdomain must"));
    assert!(label_key("a/b/c")[0].starts_with("a valid label key must consist of"));
}

#[test]
fn names() {
    assert!(dns1123_subdomain("a.b-c.0").is_empty());
    for bad in ["", "A", "a..b", "-a", "a-", "a.", "é"] {
        assert_eq!(
            dns1123_subdomain(bad),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
            "{bad}"
        );
    }
    assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
    assert_eq!(long_name(&"a".repeat(254)), ["must be no more than 253 bytes"]);
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    assert!(dns1035_label("0a")[0].ends_with(
        "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    ));
    assert!(dns1035_label("a0").is_empty());
    assert_eq!(path_segment(".."), ["may not be '..'"]);
    assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
    assert!(path_segment("System:Node").is_empty());
    assert!(label_value("").is_empty());
    assert!(label_value("a b")[0].starts_with("a valid label must be an empty string or consist of"));
}
