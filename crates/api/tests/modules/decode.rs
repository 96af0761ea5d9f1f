//! Tests of `decode`.

use bytes::Bytes;
use rowplane_api::ObjectMap;
use rowplane_api::decode::Encoded;
use rowplane_api::decode::typed_object;
use rowplane_api::options::strictness::Strictness;
use rowplane_api::options::write::FieldValidation;
use rowplane_objects::codec::media_type::MediaType;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::warnings::Warnings;
use rowplane_values::tree::Value;

fn decode(body: &str) -> Result<ObjectMap, String> {
    decode_as(MediaType::Json, body.as_bytes())
}

fn decode_as(media: MediaType, bytes: &[u8]) -> Result<ObjectMap, String> {
    let body = Encoded { media, bytes: Bytes::copy_from_slice(bytes) };
    let strictness = Strictness { validation: FieldValidation::Strict, warnings: &Warnings::default() };
    let kind = builtin::kind(&Gvk::fixed("v1", "ConfigMap")).expect("a kind");
    typed_object(&kind, &body, strictness).map_err(|error| error.to_string())
}

#[test]
fn kind_and_version_are_filled_in() {
    let object = decode("{\"data\":{}}").expect("decodes");
    assert_eq!((&object["kind"], &object["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
}

#[test]
fn bad_bodies_say_why() {
    let cases = [
        (
            "",
            "(must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
        ),
        ("{", "couldn't get version/kind; json parse error: "),
        ("[]", "cannot unmarshal array into Go value"),
        (r#"{"kind":1}"#, "cannot unmarshal number into Go struct field .kind of type string"),
        (
            r#"{"kind":"Pod"}"#,
            "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): \
             unknown conversion",
        ),
        (
            r#"{"apiVersion":"v1beta1"}"#,
            "the API version in the data (v1beta1) does not match the expected API version (v1)",
        ),
        (
            r#"{"apiVersion":"v2"}"#,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for \
             version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            r#"{"apiVersion":"a/b/c"}"#,
            "(must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({",
        ),
    ];
    for (body, want) in cases {
        let error = decode(body).expect_err(body);
        assert!(error.contains(want), "{body}: {error}");
    }
}

#[test]
fn protobuf_says_what_json_says() {
    let decode = |bytes: &[u8]| decode_as(MediaType::Protobuf, bytes);
    let object = decode(b"k8s\0\x12\x05\x0a\x03\x0a\x01a").expect("decodes");
    assert_eq!(
        Value::Object(object),
        rowplane_values::tree::json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}})
    );
    let cases: [(&[u8], &str); 5] = [
        (b"", "(must be of type ConfigMap): empty data (<empty>)"),
        (b"k8t", "expected prefix [107 56 115 0] (6b3874)"),
        (b"k8s\0\x0a\x05\x12\x03Pod", "Pod in version \"v1\" cannot be handled as a ConfigMap"),
        (b"k8s\0\x0a\x04\x0a\x02v2", "no kind \"ConfigMap\" is registered for version \"v2\""),
        (
            b"k8s\0\x12\x02\x0a\x09",
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF",
        ),
    ];
    for (body, want) in cases {
        let error = decode(body).expect_err(want);
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn what_is_unknown_or_repeated_is_told() {
    let refused = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: ";
    let cases = [
        (MediaType::Json, r#"{"data":{},"x":1,"data":{}}"#, r#"unknown field "x", duplicate field "data""#),
        (
            MediaType::Yaml,
            "x: 1\ndata:\n  b: c\n  b: d\nmetadata:\n  a: b\n",
            "yaml: unmarshal errors:\n  line 4: key \"b\" already set in map, unknown field \"metadata.a\", \
             unknown field \"x\"",
        ),
    ];
    for (media, body, want) in cases {
        let error = decode_as(media, body.as_bytes()).expect_err(body);
        assert_eq!(error, format!("{refused}{want}"));
    }
}
