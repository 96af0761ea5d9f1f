//! Tests of `options::write`.

use rowplane_api::options::DryRun;
use rowplane_api::options::query::Query;
use rowplane_api::options::write::FieldValidation;
use rowplane_api::options::write::WriteOptions;
use rowplane_objects::patch::PatchKind;
use rowplane_objects::patch::apply::ownership::Conflicts;

fn text(query: &str, patch: PatchKind) -> String {
    WriteOptions::parse_patch(&Query::parse(query), patch).unwrap_err().to_string()
}

#[test]
fn patch_validation() {
    let long = format!("fieldManager={}", "a".repeat(129));
    let cases = [
        ("", PatchKind::Apply, "fieldManager: Required value: is required for apply patch"),
        ("force=false", PatchKind::Json, "force: Forbidden: may not be specified for non-apply patch"),
        (&long, PatchKind::Merge, "fieldManager: Too long: may not be more than 128 bytes"),
        (
            "fieldManager=a%01",
            PatchKind::Apply,
            r#"fieldManager: Invalid value: "a\x01": invalid character U+0001 (at position 1)"#,
        ),
        ("dryRun=x", PatchKind::Merge, r#"dryRun: Unsupported value: ["x"]: supported values: "All""#),
        ("dryRun=", PatchKind::Merge, r#"dryRun: Unsupported value: [""]: supported values: "All""#),
        (
            "fieldValidation=strict",
            PatchKind::Merge,
            r#"fieldValidation: Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn""#,
        ),
        (
            "force&dryRun=x",
            PatchKind::Merge,
            r#"[force: Forbidden: may not be specified for non-apply patch, dryRun: Unsupported value: ["x"]: supported values: "All"]"#,
        ),
    ];
    for (query, patch, want) in cases {
        assert_eq!(text(query, patch), format!("PatchOptions.meta.k8s.io \"\" is invalid: {want}"));
    }
}

#[test]
fn options() {
    let query = Query::parse("fieldManager=m&force&dryRun=All&dryRun=All&fieldValidation=Strict");
    let options = WriteOptions::parse_patch(&query, PatchKind::Apply).unwrap();
    assert_eq!(options.conflicts, Conflicts::Force);
    assert_eq!(options.field_validation, FieldValidation::Strict);
    assert_eq!(options.dry_run, DryRun::Yes);
    assert_eq!(options.or_agent(Some("kubectl/v1.37")).manager(), "m");
    let create = WriteOptions::parse_create(&Query::parse("force=1")).unwrap();
    assert_eq!(create, WriteOptions::default());
    assert_eq!(create.or_agent(Some("kube\x01ctl/v1.37 (linux)")).manager(), "kubectl");
    let error = WriteOptions::parse_update(&Query::parse("dryRun=x")).unwrap_err();
    assert!(error.to_string().starts_with("UpdateOptions.meta.k8s.io \"\" is invalid: dryRun: "));
}
