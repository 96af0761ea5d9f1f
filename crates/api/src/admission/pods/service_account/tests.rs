//! What upstream's plugin makes of random Pods (`tests/upstream/plugins`).

use super::{check_mirror, complete_by, is_binding, is_mirror, secrets};
use crate::compared::cases;
use crate::fields;
use crate::tree::Value;

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
                assert_eq!(case["result"].as_object(), Some(spec), "{case}");
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
