//! Tests of `authorizer::mode`.

use rowplane_access::auth::authorizer::mode::{DEFAULT, Mode, parse};

#[test]
fn auth_71_modes_are_known_and_none_comes_twice() {
    assert_eq!(parse(&["Node", "RBAC"]), Ok(DEFAULT.into()));
    assert!(Mode::ALL.iter().is_sorted_by_key(|mode| mode.as_str()));
    assert_eq!(parse(&["RABC"]), Err(vec![r#"authorization-mode "RABC" is not a valid mode"#.to_owned()]));
    assert_eq!(
        parse(&["RBAC", "RBAC"]),
        Err(vec![r#"authorization-mode ["RBAC" "RBAC"] has mode specified more than once"#.to_owned()])
    );
}
