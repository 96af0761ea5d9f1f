use super::*;
use crate::http::response::status::Failure;
use crate::patch::PatchKind;

const ALL: &[Offer] = &[
    Offer::resource(MediaType::Json),
    Offer::resource(MediaType::Yaml),
    Offer::resource(MediaType::Protobuf),
];

/// Protobuf is only available for metadata.
const CUSTOM: &[Offer] = &[
    Offer::resource(MediaType::Json),
    Offer::resource(MediaType::Yaml),
    Offer { plain: false, ..Offer::resource(MediaType::Protobuf) },
];

fn media(accept: &str, offers: &[Offer]) -> Option<MediaType> {
    negotiate(Some(accept), offers).ok().map(|chosen| chosen.media)
}

#[test]
fn media_types() {
    let (json, yaml) = (Some(MediaType::Json), Some(MediaType::Yaml));
    let cases = [
        ("", json),
        ("application/json;q=0.1, application/yaml", yaml),
        ("*/*, application/yaml;q=0.1", yaml),
        ("application/yaml;q=0.1, */*", json),
        ("application/json;q=0", json),
        ("application/*", json),
        ("APPLICATION/JSON", None),
        ("text/html", None),
        ("application/json;charset=utf-8", json),
        ("application/json;stream=watch", json),
        ("application/json;stream=other", None),
        ("application/yaml;stream=watch,application/json", json),
        ("application/json;sv=v1", json),
        ("application/json;sv=v2", None),
        ("application/vnd.kubernetes.protobuf", None),
        ("application/vnd.kubernetes.protobuf,application/json", json),
    ];
    for (accept, want) in cases {
        assert_eq!(media(accept, CUSTOM), want, "{accept}");
    }
    assert_eq!(negotiate(None, ALL).unwrap().media, MediaType::Json);
    assert!(negotiate(Some("application/json;pretty=1"), RESOURCE).unwrap().pretty);
    let Failure { code, body, .. } = Failure::from(&negotiate(Some("text/html"), ALL).unwrap_err());
    assert_eq!((code, body.get("details")), (406, None));
    assert_eq!(
        body["message"],
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[test]
fn transforms() {
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let metadata = "application/vnd.kubernetes.protobuf;v=v1beta1;g=meta.k8s.io;as=PartialObjectMetadata";
    let chosen = |accept: &str, offers| negotiate(Some(accept), offers).map(|chosen| chosen.transform);
    assert_eq!(chosen(table, ALL), Ok(Some(Transform::Table(MetaVersion::V1))));
    assert_eq!(chosen(metadata, CUSTOM), Ok(Some(Transform::PartialObjectMetadata(MetaVersion::V1Beta1))));
    assert!(chosen(table, PLAIN).is_err());
    assert_eq!(chosen(&format!("{table},application/json"), PLAIN), Ok(None));
    let protobuf_table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    assert!(chosen(protobuf_table, ALL).is_err());
    assert_eq!(
        chosen(&format!("{protobuf_table},{table}"), ALL),
        Ok(Some(Transform::Table(MetaVersion::V1)))
    );
    for bad in ["as=Table", "as=Table;g=meta.k8s.io;v=v2", "as=Other;g=meta.k8s.io;v=v1", "v=v1"] {
        assert!(chosen(&format!("application/json;{bad}"), ALL).is_err(), "{bad}");
    }
}

#[test]
fn discovery() {
    let aggregated = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList";
    let old = "application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList";
    let chosen = |accept: &str, offers| negotiate(Some(accept), offers).map(|chosen| chosen.transform);
    assert_eq!(chosen(aggregated, DISCOVERY), Ok(Some(Transform::ApiGroupDiscoveryList)));
    assert!(chosen(old, DISCOVERY).is_err());
    assert_eq!(chosen(&format!("{old},application/json"), DISCOVERY), Ok(None));
    assert!(chosen(aggregated, RESOURCE).is_err());
    assert!(chosen("application/json;as=Table;g=meta.k8s.io;v=v1", DISCOVERY).is_err());
}

#[test]
fn streams() {
    let stream = |accept| negotiate_stream(Some(accept), ALL);
    assert_eq!(stream("*/*").unwrap().media, MediaType::Json);
    assert_eq!(stream("application/vnd.kubernetes.protobuf").unwrap().media, MediaType::Protobuf);
    assert_eq!(
        stream("application/yaml,application/json").unwrap_err().to_string(),
        "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    );
}

#[test]
fn the_router_checks_first() {
    let types = ["application/json", "application/json;stream=watch"];
    for good in [None, Some(""), Some("*/*;q=0.1"), Some("text/html, application/json;as=Table")] {
        assert_eq!(check_route(good, &types), Ok(()));
    }
    let failure = Failure::from(&check_route(Some("application/*"), &types).unwrap_err());
    assert_eq!(
        failure.body["message"],
        "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch"
    );
    assert_eq!(failure.body["details"], crate::tree::json!({}));
}

#[test]
fn shapes_and_pretty() {
    let chosen = |kind: &str| {
        negotiate(Some(&format!("application/json;as={kind};g=meta.k8s.io;v=v1")), RESOURCE).unwrap()
    };
    let list = chosen("PartialObjectMetadataList");
    assert!(list.check_shape(Shape::List, || "*core.PodList".into()).is_ok());
    assert_eq!(
        list.check_shape(Shape::Single, || "*core.Pod".into()).unwrap_err().to_string(),
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Pod)"
    );
    assert!(chosen("PartialObjectMetadata").check_shape(Shape::List, || "".into()).is_err());
    assert!(chosen("Table").check_shape(Shape::List, || "".into()).is_ok());
    let cases = [
        (Some("1"), None, true),
        (Some("yes"), Some("curl/8"), false),
        (Some(""), Some("curl/8"), true),
        (None, Some("Mozilla/5.0 (X11)"), true),
        (None, Some("kubectl/v1.37"), false),
    ];
    for (query, agent, want) in cases {
        assert_eq!(wants_pretty(query, agent), want);
    }
}

#[test]
fn content_types() {
    let all = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf];
    assert_eq!(body_type(None, &all), Ok(MediaType::Json));
    assert_eq!(body_type(Some("Application/YAML; charset=utf-8"), &all), Ok(MediaType::Yaml));
    assert_eq!(
        body_type(Some("text/plain"), &all).unwrap_err().to_string(),
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    let smp = Some("application/strategic-merge-patch+json;x");
    assert_eq!(patch_kind(smp, PatchTarget::BuiltIn), Ok(PatchKind::StrategicMerge));
    let listed = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    for refused in [smp, None, Some("application/json")] {
        assert_eq!(patch_kind(refused, PatchTarget::Custom).unwrap_err().to_string(), listed);
    }
    let failure = Failure::from(&patch_kind(None, PatchTarget::BuiltIn).unwrap_err());
    assert_eq!(failure.body["message"], "415: Unsupported Media Type");
    assert_eq!(failure.body["details"], crate::tree::json!({}));
}

/// Whatever the header is, the result is an offered form or an error.
#[test]
fn no_header_panics() {
    use rand::{RngExt, SeedableRng};
    let pieces = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/apply-patch+yaml",
        "*/*",
        "*",
        "/",
        ";",
        ",",
        "=",
        " ",
        "q=0.5",
        "as=Table",
        "g=meta.k8s.io",
        "v=v1",
        "stream=watch",
        "sv=v2",
        "pretty=1",
        "\u{e9}",
        "NaN",
    ];
    let mut random = rand::rngs::SmallRng::seed_from_u64(11);
    for _ in 0..20_000 {
        let length = random.random_range(0..16);
        let text: String = (0..length).map(|_| pieces[random.random_range(0..pieces.len())]).collect();
        for offers in [ALL, CUSTOM, PLAIN, DISCOVERY] {
            if let Ok(chosen) = negotiate(Some(&text), offers) {
                let offer = offers.iter().find(|offer| offer.media == chosen.media).expect("offered");
                assert!(offer.allows(chosen.transform), "{text}: {chosen:?}");
            }
            if let Ok(chosen) = negotiate_stream(Some(&text), offers) {
                assert!(chosen.media.stream_content_type().is_some(), "{text}: {chosen:?}");
            }
        }
        drop(check_route(Some(&text), WATCH_ROUTE_TYPES));
        drop(body_type(Some(&text), &[MediaType::Json, MediaType::Protobuf]));
        drop(patch_kind(Some(&text), PatchTarget::Custom));
        preferred(&text, &[("json", 1)]);
        wants_pretty(Some(&text), Some(&text));
    }
}
