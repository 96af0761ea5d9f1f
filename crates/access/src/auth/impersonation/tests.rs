use http::HeaderMap;

use super::*;

#[test]
fn headers_name_a_user_and_are_taken_away() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("impersonate-user", "bob"),
        ("impersonate-user", "second"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-extra-example.com%2fx", "1"),
        ("impersonate-extra-example.com%2fx", "2"),
        ("accept", "*/*"),
    ] {
        headers.append(name, value.parse().unwrap());
    }
    let bob = requested(&mut headers).unwrap().unwrap();
    assert_eq!((&*bob.name, bob.groups), ("bob", vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(bob.extra["example.com/x"], ["1", "2"]);
    assert_eq!(headers.len(), 1);
    assert_eq!(requested(&mut headers), Ok(None));
}
