use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use rowplane_objects::codec::at_rest::StorageMediaType;
use rowplane_objects::codec::object::Draft;
use rowplane_objects::codec::protobuf::{Envelope, Error, decode, encode, print, with_version};
use rowplane_objects::kinds::built_in;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::resource::Storage;
use rowplane_values::json::text::write_json;
use rowplane_values::tree::{Map, Value, json};

/// The most values of a message.
const MAX_VALUES: usize = 1_000_000;
const GOLDEN: &str = include_str!("../../src/codec/protobuf/golden.tsv");

fn golden() -> impl Iterator<Item = (Vec<u8>, Value)> {
    GOLDEN.lines().map(|line| {
        let (encoded, text) = line.split_once('\t').expect("two columns");
        (STANDARD.decode(encoded).expect("base64"), serde_json::from_str(text).expect("JSON"))
    })
}

fn open(bytes: &[u8]) -> Result<Value, Error> {
    let envelope = Envelope::parse(bytes)?;
    let mut members = decode(&kind_of(&envelope)?, envelope.raw)?;
    members.insert("kind", envelope.kind.into());
    members.insert("apiVersion", envelope.api_version.into());
    Ok(Value::Object(members))
}

fn known(gvk: Gvk) -> Kind {
    builtin::kind(&gvk).expect("a kind")
}

fn kind_of(envelope: &Envelope<'_>) -> Result<Kind, Error> {
    let gvk = envelope.gvk()?;
    builtin::kind(&gvk).ok_or(Error::UnknownKind(gvk))
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
    digits.chunks(2).map(pair).collect()
}

fn members(gvk: Gvk, raw: &str) -> Result<Value, String> {
    decode(&known(gvk), &hex(raw)).map(Value::Object).map_err(|error| error.to_string())
}

#[test]
fn objects_of_upstream_print_as_upstream_prints_them() {
    for (bytes, want) in golden() {
        let got = open(&bytes).unwrap_or_else(|error| panic!("{}: {error}", want["kind"]));
        assert_eq!(got, want, "\ngot  {got}\nwant {want}");
    }
}

#[test]
fn printed_objects_become_the_bytes_of_upstream() {
    for (bytes, printed) in golden() {
        let envelope = Envelope::parse(&bytes).expect("parses");
        let printed = printed.as_object().expect("object");
        let kind = kind_of(&envelope).expect("a kind");
        let mut conformed = printed.clone();
        let fit = kind.conform(&mut conformed);
        assert_eq!(fit.map(|fit| fit.unknown), Ok(false), "{}", envelope.kind);
        assert_eq!(Value::Object(conformed).to_string(), Value::Object(printed.clone()).to_string());
        let raw = encode(&kind, printed).expect("encodes");
        if raw != envelope.raw {
            let again = decode(&kind, &raw).map(Value::Object);
            panic!("{}\ngot  {raw:02x?}\nwant {:02x?}\n{again:?}", envelope.kind, envelope.raw);
        }
        assert_eq!(Envelope::wrap(&kind.gvk, &raw), bytes);
    }
}

/// Text printed directly from the bytes equals text printed from a decoded tree.
#[test]
fn printing_is_decoding_and_writing() {
    for (bytes, _) in golden() {
        let envelope = Envelope::parse(&bytes).expect("parses");
        assert_eq!(printed(&envelope), written(&envelope), "{}", envelope.kind);
    }
}

/// Encoding the printed object of every kind yields the original bytes.
#[test]
fn there_and_back_is_identity() {
    let mut kinds = std::collections::BTreeSet::new();
    for (bytes, _) in golden() {
        let envelope = Envelope::parse(&bytes).expect("parses");
        let text = printed(&envelope).expect("prints");
        let object = serde_json::from_str(&text).expect("JSON");
        let again = encode(&kind_of(&envelope).expect("a kind"), &object).expect("encodes");
        assert_eq!(again, envelope.raw, "{text}");
        kinds.insert(envelope.gvk().expect("a name"));
    }
    for definition in built_in::definitions() {
        let Storage::Table { version, .. } = &definition.storage else { continue };
        let kind = version.with_kind(definition.kind_name().clone());
        assert!(kinds.contains(&kind), "no vector of {kind}");
    }
}

/// A value stored in one encoding reads the same as one stored in another: the same text and the same message.
#[test]
fn every_kind_is_the_same_out_of_every_form_at_rest() {
    const MEDIA: [StorageMediaType; 3] =
        [StorageMediaType::Protobuf, StorageMediaType::Json, StorageMediaType::Yaml];
    let definitions = built_in::definitions();
    let is_stored = |object: &Value| {
        let mut definitions = definitions.iter();
        definitions.any(|each| {
            matches!(each.storage, Storage::Table { .. }) && object["kind"] == each.kind_name().as_str()
        })
    };
    for printed in golden().map(|(_, printed)| printed).filter(is_stored) {
        let object = printed.as_object().expect("an object").clone();
        let kind = known(Gvk::of(&object).expect("a name"));
        let object = kind.complete(object).expect("of its kind");
        let read = MEDIA.map(|media| {
            let draft = Draft::encode("n", "a", object.clone(), media);
            assert_eq!(StorageMediaType::of(draft.value()), media, "{}", printed["kind"]);
            let read = Draft::parse("n", "a", draft.value().clone()).into_object(Revision(7));
            (read.json().expect("decodable").to_vec(), read.protobuf().ok().map(|message| message.to_vec()))
        });
        assert!(read[0].1.is_some(), "{}", printed["kind"]);
        assert_eq!(read[1], read[0], "{}", printed["kind"]);
        // YAML keeps the content of raw JSON, but not its order.
        if read[2] != read[0] {
            let [of_protobuf, _, of_yaml] =
                read.map(|(json, _)| serde_json::from_slice::<Value>(&json).expect("JSON"));
            assert_eq!(of_yaml, of_protobuf);
            assert_eq!(printed["kind"], "CustomResourceDefinition");
        }
    }
}

fn printed(envelope: &Envelope<'_>) -> Result<String, String> {
    let text =
        kind_of(envelope).and_then(|kind| print(&kind, envelope.raw)).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(text).expect("UTF-8"))
}

fn written(envelope: &Envelope<'_>) -> Result<String, String> {
    let members = kind_of(envelope).and_then(|kind| decode(&kind, envelope.raw));
    let members = members.map_err(|error| error.to_string())?;
    let claims = [("kind", &envelope.kind), ("apiVersion", &envelope.api_version)]
        .map(|(name, claim)| (name.into(), Value::from(claim.as_str())));
    let object: Map = claims.into_iter().chain(members).collect();
    let mut text = Vec::new();
    write_json(&mut text, &object);
    Ok(String::from_utf8(text).expect("UTF-8"))
}

#[test]
fn members_stand_in_upstream_order() {
    for (line, (bytes, want)) in GOLDEN.lines().zip(golden()) {
        let envelope = Envelope::parse(&bytes).expect("parses");
        let got = decode(&kind_of(&envelope).expect("a kind"), envelope.raw).expect("decodes");
        let names: Vec<_> = got.keys().collect();
        let wanted: Vec<_> = want.as_object().expect("object").keys().skip(2).collect();
        assert_eq!(names, wanted, "{line}");
    }
}

#[test]
fn wire_38_vectors_of_the_specification() {
    let made = |gvk: Gvk, members: Value| {
        let Value::Object(members) = members else { unreachable!("an object each") };
        Envelope::wrap(&gvk, &encode(&known(gvk.clone()), &members).expect("encodes"))
    };
    let namespace = "6b387300 0a0f 0a027631 12094e616d657370616365 1219 0a11 0a0161 1200 1a00 2200 2a00 3200 3800 \
                     4200 1200 1a02 0a00 1a00 2200";
    assert_eq!(
        open(&hex(namespace)).expect("decodes"),
        json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}, "status": {}})
    );
    assert_eq!(made(Gvk::fixed("v1", "Namespace"), json!({"metadata": {"name": "a"}})), hex(namespace));
    let pods = "6b387300 0a0d 0a027631 1207506f644c697374 1209 0a07 0a00 120131 1a00 1a00 2200";
    assert_eq!(
        open(&hex(pods)).expect("decodes"),
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": null})
    );
    assert_eq!(
        made(Gvk::fixed("v1", "PodList"), json!({"metadata": {"resourceVersion": "1"}, "items": []})),
        hex(pods)
    );
}

#[test]
fn wire_40_numbers_may_be_packed_and_messages_may_come_in_pieces() {
    let pod = Gvk::fixed("v1", "Pod");
    // spec (2) .securityContext (14) .supplementalGroups (4): packed 1, 2, then 3; spec.nodeName (10) apart.
    let packed = members(pod, "1208 7206 2202 0102 2003 1205 5203 6e6f64").expect("decodes");
    assert_eq!(packed["spec"]["securityContext"]["supplementalGroups"], json!([1, 2, 3]));
    assert_eq!(packed["spec"]["nodeName"], "nod");
}

#[test]
fn wire_41_times_and_integers_at_their_edges() {
    let created =
        |raw: &str| members(Gvk::fixed("v1", "ConfigMap"), raw).expect("decodes")["metadata"].clone();
    assert_eq!(created("0a02 4200"), json!({}));
    assert_eq!(created("0a06 4204 0800 1000"), json!({"creationTimestamp": "1970-01-01T00:00:00Z"}));
    let renewed = "1207 2205 0801 10e807";
    let lease = members(Gvk::fixed("coordination.k8s.io/v1", "Lease"), renewed).expect("decodes");
    assert_eq!(lease["spec"], json!({"renewTime": "1970-01-01T00:00:01.000001Z"}));
    let transitions = "120b 28 ffffffffffffffffff01";
    let lease = members(Gvk::fixed("coordination.k8s.io/v1", "Lease"), transitions).expect("decodes");
    assert_eq!(lease["spec"]["leaseTransitions"], -1);
}

#[test]
fn errors_are_those_of_upstream() {
    let cases = [
        ("08", "proto: wrong wireType = 0 for field Metadata"),
        ("02", "proto: Pod: illegal tag 0 (wire type 2)"),
        ("0c", "proto: Pod: wiretype end group for non-group"),
        ("0a05", "unexpected EOF"),
        ("0affffffffffffffffffff01", "proto: integer overflow"),
        ("0affffffffffffffffff01", "proto: negative length found during unmarshaling"),
    ];
    for (raw, want) in cases {
        assert_eq!(members(Gvk::fixed("v1", "Pod"), raw).expect_err(raw), want);
    }
    assert!(matches!(Envelope::parse(b""), Err(Error::Empty)));
    assert!(matches!(Envelope::parse(b"k8s\0"), Err(Error::EmptyBody)));
    assert!(matches!(Envelope::parse(b"{}"), Err(Error::Prefix)));
    // Clients may not even send the encoding of stored values.
    for encoding in ["gzip", "lz4"] {
        let sent = [&b"k8s\0\x1a"[..], &[encoding.len() as u8], encoding.as_bytes()].concat();
        let error = Envelope::parse(&sent).expect_err("unknown encoding").to_string();
        assert_eq!(error, format!("unknown content encoding {encoding:?}"));
    }
}

#[test]
fn depth_and_size_are_bounded() {
    let wrap = |number: u8, message: &[u8]| {
        let mut wrapped = vec![number << 3 | 2];
        let mut length = message.len();
        while length >= 0x80 {
            wrapped.push(length as u8 | 0x80);
            length >>= 7;
        }
        wrapped.push(length as u8);
        wrapped.extend_from_slice(message);
        wrapped
    };
    // JSONSchemaProps.not, whose tag (23) takes two bytes, would nest less cheaply than raw JSON does.
    let nested = format!("{}{}", "[".repeat(127), "]".repeat(127));
    let item = wrap(2, &wrap(1, nested.as_bytes()));
    assert!(matches!(decode(&known(Gvk::fixed("v1", "List")), &item), Err(Error::TooDeep)));
    let containers = wrap(2, &wrap(2, &[]).repeat(MAX_VALUES));
    assert!(matches!(decode(&known(Gvk::fixed("v1", "Pod")), &containers), Err(Error::TooLarge)));
}

/// Damaged messages never cause a panic: they are errors or objects.
#[test]
fn survives_noise() {
    let mut random = SmallRng::seed_from_u64(37);
    let objects: Vec<Vec<u8>> = golden().map(|(bytes, _)| bytes).collect();
    for round in 0..20_000 {
        let mut bytes = objects[round % objects.len()].clone();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = random.random(),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, random.random()),
            }
        }
        // If there are two errors, the one that is found first decides.
        if let Ok(envelope) = Envelope::parse(&bytes) {
            let (printed, written) = (printed(&envelope), written(&envelope));
            assert_eq!(printed.is_err(), written.is_err(), "{printed:?} {written:?} {bytes:02x?}");
            if printed.is_ok() {
                assert_eq!(printed, written, "{bytes:02x?}");
            }
        }
        let noise: Vec<u8> = (0..random.random_range(0..64)).map(|_| random.random()).collect();
        drop(decode(&known(Gvk::fixed("v1", "Pod")), &noise));
        drop(print(&known(Gvk::fixed("v1", "Pod")), &noise));
        drop(with_version(&noise, Revision(7)));
        drop(decode(&known(Gvk::fixed("apiextensions.k8s.io/v1", "CustomResourceDefinition")), &noise));
    }
}

/// The kind of an embedded object is printed, as kube-apiserver's conversions add it; that of list items is not.
#[test]
fn a_kind_in_a_part_of_another_says_what_it_is() {
    let text = |gvk: Gvk, object: Value| {
        let kind = known(gvk);
        let raw = encode(&kind, object.as_object().expect("an object")).expect("of its types");
        String::from_utf8(print(&kind, &raw).expect("readable")).expect("UTF-8")
    };
    let claim = json!({"metadata": {"name": "a"}, "spec": {"volumeName": "b"}});
    let set =
        text(Gvk::fixed("apps/v1", "StatefulSet"), json!({"spec": {"volumeClaimTemplates": [claim, claim]}}));
    let said = r#"{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"a"},"spec":{"#;
    assert_eq!(set.matches(said).count(), 2, "{set}");
    let list = text(Gvk::fixed("v1", "PersistentVolumeClaimList"), json!({"items": [claim]}));
    assert_eq!(list.matches(r#""kind""#).count(), 1, "{list}");
}
