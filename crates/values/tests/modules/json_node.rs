//! Tests of `json::node`.

use rowplane_values::json::Node;

#[test]
fn numbers_keep_their_spelling() {
    let text = br#"{"1e1":[-1,1E3,"2e2\"3e3",{"a":-0,"a":1.50}],"b":18446744073709551615,"c":-1e-2,
        "d":99999999999999999999,"e":null,"f":0.0}"#;
    let node = Node::parse(text).expect("JSON");
    let spelled = |node: Option<&Node>| match node {
        Some(Node::Number(spelling)) => spelling.to_string(),
        other => format!("{other:?}"),
    };
    let list = node.member("1e1").expect("a list");
    assert_eq!(list.item(0), Some(&Node::Scalar));
    assert_eq!(spelled(list.item(1)), "1E3");
    assert_eq!(list.item(2), Some(&Node::Scalar));
    assert_eq!(spelled(list.item(3).and_then(|object| object.member("a"))), "1.50");
    assert_eq!(node.member("b"), Some(&Node::Scalar));
    for (name, want) in [("c", "-1e-2"), ("d", "99999999999999999999"), ("f", "0.0")] {
        assert_eq!(spelled(node.member(name)), want);
    }
    assert_eq!(spelled(Node::parse(b"-0").ok().as_ref()), "-0");
    let escaped = Node::parse(br#"{"\u0061\ud800":[{}]}"#).expect("JSON");
    assert_eq!(escaped.member("a\u{fffd}"), Some(&Node::Array(vec![Node::Object(Vec::new())])));
    for nested in [127, 128] {
        let text = "[".repeat(nested) + &"]".repeat(nested);
        assert_eq!(
            Node::parse(text.as_bytes()).is_ok(),
            rowplane_values::json::parse(text.as_bytes()).is_ok()
        );
    }
}
