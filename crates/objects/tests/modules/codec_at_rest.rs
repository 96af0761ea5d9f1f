//! Tests of `codec::at_rest`.

use rowplane_objects::codec::at_rest::{
    StorageMediaType, ValueFormat, in_format, is_complete, of_json, of_message, open, packed, packed_length,
};
use rowplane_objects::codec::protobuf::Envelope;
use rowplane_objects::schema::names::Gvk;

const POD: Gvk = Gvk::fixed("v1", "Pod");

#[test]
fn values_tell_what_they_are() {
    assert_eq!(StorageMediaType::of(b"k8s\0\x0a"), StorageMediaType::Protobuf);
    assert_eq!(StorageMediaType::of(b" {\"kind\":\"K\"}"), StorageMediaType::Json);
    assert_eq!(StorageMediaType::of(b"kind: K\n"), StorageMediaType::Yaml);
}

#[test]
fn a_value_in_an_older_format_is_what_it_would_have_been() {
    let message = [b"\x12\x82\x10".as_slice(), &[7; 2050]].concat();
    let value = of_message(&POD, &message);
    assert!(value.len() < 100, "packed");
    let plain = in_format(&value, ValueFormat::Plain).expect("our own");
    assert_eq!(plain, Envelope::wrap_at_rest(&POD, "", &message));
    assert!(is_complete(&plain));
    for same in [plain, of_message(&POD, b"\x12\x02ab"), of_json(b"{}"), "kind: K".into()] {
        assert_eq!(in_format(&same, ValueFormat::Plain).expect("our own"), same);
    }
    assert_eq!(in_format(&value, ValueFormat::NEWEST).expect("our own"), value);
}

#[test]
fn formats_are_numbers_in_the_database() {
    for format in [ValueFormat::Plain, ValueFormat::Packed] {
        assert_eq!(ValueFormat::up_to(format.number()), format);
    }
    assert_eq!(ValueFormat::up_to(-1), ValueFormat::Plain);
    assert_eq!(ValueFormat::up_to(i32::MAX), ValueFormat::NEWEST, "a later release reads all of ours");
}

#[test]
fn only_known_encodings_are_opened() {
    let message = [b"\x12\x82\x10".as_slice(), &[7; 2050]].concat();
    let value = packed(&POD, &message).expect("it repeats itself");
    assert!(value.len() < 100 && is_complete(&value), "{value:?}");
    let tail = &value[value.len() - 32..];
    assert_eq!(packed_length(&value[..value.len().min(60)], tail), Some(message.len()));
    assert_eq!(packed_length(&value[..20], tail), None);
    assert_eq!(packed_length(&of_json(b"{}"), b"{}\n"), None);
    let opened = open(&value).expect("packed");
    assert_eq!(opened.gvk, POD);
    assert_eq!(*opened.message, message);
    for (encoding, want) in
        [("lz5", "unknown content encoding \"lz5\""), ("lz4", "lz4: 2049 bytes cannot hold 118522386")]
    {
        let value = Envelope::wrap_at_rest(&POD, encoding, &message);
        assert_eq!(open(&value).expect_err(encoding).to_string(), want);
    }
}
