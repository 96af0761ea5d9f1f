//! Tests of `schema::structural::format`.

use rowplane_objects::schema::structural::{Format, ValueType};

/// `tests/upstream/structural formats` asks kube-openapi: a format, a text, and whether it has the format.
const UPSTREAM: &[u8] = include_bytes!("../../../../testdata/structural/formats.tsv.gz");

#[test]
fn texts_have_the_formats_that_upstream_says_they_have() {
    let mut compared = 0;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(UPSTREAM), &mut text).expect("gzip");
    for line in text.lines() {
        let mut columns = line.splitn(3, '\t');
        let (Some(name), Some(want), Some(text)) = (columns.next(), columns.next(), columns.next()) else {
            panic!("{line}")
        };
        let text: String = serde_json::from_str(text).expect("JSON");
        let format = Format::of(ValueType::String, name).expect(name);
        assert_eq!(format.takes(&text).to_string(), want, "{name} {text:?}");
        compared += 1;
    }
    assert!(compared > 4000, "{compared}");
}

#[test]
fn hyphens_in_names_of_formats_do_not_count() {
    assert_eq!(Format::of(ValueType::String, "date-time"), Some(Format::DateTime));
    assert_eq!(Format::of(ValueType::Any, "ip-v4"), Some(Format::Ipv4));
    assert_eq!(Format::of(ValueType::Integer, "int-32"), None);
    assert_eq!(Format::of(ValueType::String, "int32"), None);
    assert_eq!(Format::of(ValueType::Object, "date"), None);
}
