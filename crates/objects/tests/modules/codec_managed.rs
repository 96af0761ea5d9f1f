//! Tests of `codec::managed`.

use rowplane_objects::codec::depth;
use rowplane_objects::codec::managed::{close, depth, opened, read};
use rowplane_values::tree::{Map, json};

#[test]
fn only_the_sets_of_the_object_itself_are_text() {
    let text = r#"{"metadata":{"name":"a","managedFields":[
        {"manager":"m","fieldsV1":{"f:data":{"k:{\"a\":1}":{}}}},{"manager":"n"}]},
        "fieldsV1":{},"spec":{"metadata":{"managedFields":[{"fieldsV1":{"f:x":{}}}]}}}"#;
    let closed = read(text.as_bytes()).unwrap();
    let set = r#"{"f:data":{"k:{\"a\":1}":{}}}"#;
    assert_eq!(closed["metadata"]["managedFields"], json!([{"manager":"m","fieldsV1":set},{"manager":"n"}]));
    let open: Map = serde_json::from_str(text).unwrap();
    assert_eq!(closed["spec"], open["spec"]);
    assert_eq!(opened(&closed), open);
    let mut again = open.clone();
    close(&mut again);
    assert_eq!(again, closed);
    assert_eq!(depth(&closed), depth::of_object(&open));
}

#[test]
fn managers_that_are_none_are_read_too() {
    for managers in ["null", "3", "{}", r#"[{"fieldsV1":null}]"#, "[null,3]", r#"[{"fieldsV1":"{}"}]"#] {
        let text = format!(r#"{{"metadata":{{"managedFields":{managers}}}}}"#);
        let open: Map = serde_json::from_str(&text).unwrap();
        let closed = read(text.as_bytes()).unwrap();
        assert_eq!(opened(&closed), open, "{text}");
    }
    assert!(read(b"{").is_err());
    assert!(read(br#"{"metadata":{}} x"#).is_err());
}
