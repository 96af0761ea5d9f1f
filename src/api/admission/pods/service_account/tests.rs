//! What upstream's plugin makes of random Pods (`tests/upstream/plugins`).

use super::{check_mirror, complete_by, is_binding, is_mirror, secrets};
use crate::api::compared::cases;
use crate::api::{ObjectMap, fields};
use crate::tree::Value;

fn member<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut ObjectMap> {
    value.as_object_mut()?.get_mut(name)?.as_object_mut()
}

/// What upstream prints, without the zeros that its internal types add.
fn as_sent(printed: &Value) -> ObjectMap {
    let mut spec = printed.as_object().expect("a spec").clone();
    spec.shift_remove("securityContext");
    let Some(Value::Array(volumes)) = spec.get_mut("volumes") else { return spec };
    for volume in volumes {
        let Some(sources) = member(volume, "projected").and_then(|own| own.get_mut("sources")) else {
            continue;
        };
        let sources = sources.as_array_mut().expect("a list").iter_mut();
        for token in sources.filter_map(|source| member(source, "serviceAccountToken")) {
            if token.get("expirationSeconds").is_some_and(|seconds| *seconds == 0) {
                token.shift_remove("expirationSeconds");
            }
        }
    }
    spec
}

#[test]
fn pods_of_accounts_are_upstream_s() {
    let mut compared = 0;
    for case in cases("accounted pods") {
        let account = case["account"].as_object().expect("an account");
        let mut pod = case["object"].as_object().expect("a Pod").clone();
        let judged = if is_mirror(&pod) {
            check_mirror(&pod)
        } else {
            let spec = fields::object_mut(&mut pod, "spec");
            complete_by(account, spec, |prefix| format!("{prefix}made"));
            if is_binding(account) { secrets::check_pod(account, &pod) } else { Ok(()) }
        };
        match judged {
            Ok(()) => {
                let spec = fields::object(&pod, "spec").expect("a spec");
                assert_eq!(as_sent(&case["result"]), *spec, "{case}");
            }
            Err(why) => {
                let expected = format!("pods \"p\" is forbidden: {why}");
                assert_eq!(case["problems"][0], Value::from(expected), "{case}");
            }
        }
        compared += 1;
    }
    assert_eq!(compared, 1000);
}
