//! Tests of `behavior::declared`.

use rowplane_objects::kinds::behavior::declared::Declared;
use rowplane_objects::tree::{Value, json};

#[test]
fn deprecated_versions_name_the_best_one() {
    let version = |name: &str, served: bool, deprecated: bool| json!({"name": name, "served": served, "deprecated": deprecated});
    let said = |versions: Vec<Value>| {
        let spec = json!({"group": "ex.io", "names": {"kind": "Widget"}, "versions": versions});
        let spec = spec.as_object().expect("a spec");
        let version = spec["versions"][0].as_object().expect("a version");
        Declared::read(spec, version).deprecation
    };
    let old = version("v1alpha1", true, true);
    let others =
        [version("v1beta2", true, false), version("v1beta3", true, false), version("v1", false, false)];
    let all = [old.clone()].into_iter().chain(others).collect();
    assert_eq!(said(all).as_deref(), Some("ex.io/v1alpha1 Widget is deprecated; use ex.io/v1beta3 Widget"));
    let lower = vec![old.clone(), version("foo", true, false), version("v2", true, true)];
    assert_eq!(said(lower).as_deref(), Some("ex.io/v1alpha1 Widget is deprecated"));
    let mut own = old;
    own["deprecationWarning"] = "gone soon".into();
    assert_eq!(said(vec![own]).as_deref(), Some("gone soon"));
    assert_eq!(said(vec![version("v1", true, false)]), None);
}
