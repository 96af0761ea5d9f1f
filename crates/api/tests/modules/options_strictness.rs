//! Tests of `strictness`.

use rowplane_api::options::strictness::{Strictness, yaml_error};
use rowplane_api::options::write::FieldValidation;
use rowplane_objects::warnings::Warnings;

#[test]
fn problems_are_refused_told_or_passed_over() {
    let problems = [yaml_error(&["line 2: a".into(), "line 3: b".into()]), "unknown field \"c\"".into()];
    let warnings = Warnings::default();
    let judge = |validation| Strictness { validation, warnings: &warnings }.judge(&problems);
    assert_eq!(judge(FieldValidation::Ignore), Ok(()));
    assert_eq!(
        judge(FieldValidation::Strict),
        Err("strict decoding error: yaml: unmarshal errors:\n  line 2: a\n  line 3: b, unknown field \"c\""
            .into())
    );
    assert!(warnings.take().is_empty());
    assert_eq!((judge(FieldValidation::Warn), judge(FieldValidation::Warn)), (Ok(()), Ok(())));
    assert_eq!(warnings.take(), ["line 2: a", "line 3: b", "unknown field \"c\""]);
}
