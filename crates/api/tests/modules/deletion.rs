//! Tests of `deletion`.

use rowplane_api::deletion::Plan;
use rowplane_api::deletion::Rules;
use rowplane_api::deletion::check;
use rowplane_api::deletion::plan;
use rowplane_api::options::delete::DeleteOptions;
use rowplane_api::options::delete::Preconditions;
use rowplane_objects::kinds::behavior::deletion::Dependents;
use rowplane_objects::kinds::behavior::deletion::Propagation;
use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::resource::ResourceDefinition;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

const NOW: &str = "2026-07-01T10:00:00Z";

fn definition(kind: &str) -> ResourceDefinition {
    built_in::definitions().into_iter().find(|definition| definition.kind_name().as_str() == kind).unwrap()
}

fn options(dependents: Dependents) -> DeleteOptions {
    DeleteOptions { dependents, ..DeleteOptions::default() }
}

fn grace_of(seconds: Option<i64>) -> DeleteOptions {
    DeleteOptions { grace_period: seconds, ..DeleteOptions::default() }
}

fn planned(kind: &str, object: &Value, options: &DeleteOptions) -> Plan {
    let definition = definition(kind);
    let strategy = built_in::behavior(&definition).strategy;
    let rules = Rules { strategy: &strategy, behavior: definition.behavior, garbage_collection: true };
    plan(object.as_object().unwrap(), options, rules, NOW.parse().unwrap())
}

/// The metadata of the object if it stays, and whether they change.
fn kept(kind: &str, object: &Value, options: &DeleteOptions) -> Option<(Value, bool)> {
    match planned(kind, object, options) {
        Plan::Remove(_) => None,
        Plan::Keep { object, changed } => Some((object["metadata"].clone(), changed)),
        Plan::Pending => Some((object["metadata"].clone(), false)),
    }
}

fn pod(metadata: Value) -> Value {
    json!({"metadata": metadata, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}})
}

#[test]
fn finalizers_of_the_collector() {
    use Dependents::{Orphan, Policy, Unspecified};
    use Propagation::{Background, Foreground};
    let orphan = || Some(json!(["orphan"]));
    let foreground = || Some(json!(["foregroundDeletion"]));
    let cases = [
        ("ConfigMap", json!([]), Unspecified, None),
        ("ConfigMap", json!([]), Policy(Background), None),
        ("ConfigMap", json!([]), Policy(Foreground), foreground()),
        ("ConfigMap", json!([]), Policy(Propagation::Orphan), orphan()),
        ("ConfigMap", json!([]), Orphan(true), orphan()),
        ("ConfigMap", json!([]), Orphan(false), None),
        ("ConfigMap", json!(["foregroundDeletion"]), Unspecified, foreground()),
        ("ConfigMap", json!(["orphan"]), Unspecified, orphan()),
        ("ConfigMap", json!(["orphan"]), Policy(Background), None),
        ("ConfigMap", json!(["orphan"]), Policy(Foreground), foreground()),
        ("ConfigMap", json!(["orphan"]), Orphan(false), None),
        ("ConfigMap", json!(["orphan", "x"]), Unspecified, Some(json!(["orphan", "x"]))),
        ("ConfigMap", json!(["orphan", "x"]), Policy(Foreground), Some(json!(["x", "foregroundDeletion"]))),
        ("ConfigMap", json!(["x"]), Unspecified, Some(json!(["x"]))),
        ("Job", json!([]), Unspecified, orphan()),
        ("Job", json!([]), Policy(Background), None),
        ("Job", json!(["foregroundDeletion"]), Unspecified, foreground()),
        ("Event", json!([]), Policy(Foreground), None),
        ("Event", json!(["orphan"]), Unspecified, None),
    ];
    for (kind, finalizers, dependents, want) in cases {
        let object = json!({"metadata": {"finalizers": finalizers}});
        let got =
            kept(kind, &object, &options(dependents)).map(|(metadata, _)| metadata["finalizers"].clone());
        assert_eq!(got, want, "{kind} {finalizers} {dependents:?}");
    }
}

#[test]
fn finalizers_keep_the_object() {
    let cases = [
        (
            json!({"finalizers": ["x"]}),
            json!({"finalizers": ["x"], "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}),
            true,
        ),
        (
            json!({"finalizers": ["x"], "generation": 3}),
            json!({"finalizers": ["x"], "generation": 4, "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}),
            true,
        ),
        (
            json!({"finalizers": ["x"], "generation": 4, "deletionTimestamp": "2026-07-01T09:00:00Z", "deletionGracePeriodSeconds": 0}),
            json!({"finalizers": ["x"], "generation": 4, "deletionTimestamp": "2026-07-01T09:00:00Z", "deletionGracePeriodSeconds": 0}),
            false,
        ),
        (
            json!({"finalizers": ["x"], "generation": 4, "deletionTimestamp": "2026-07-01T11:00:00Z"}),
            json!({"finalizers": ["x"], "generation": 4, "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}),
            true,
        ),
    ];
    for (metadata, want, changed) in cases {
        let object = json!({"metadata": metadata});
        assert_eq!(kept("ConfigMap", &object, &grace_of(Some(9))), Some((want, changed)), "{object}");
    }
}

#[test]
fn without_finalizers_it_is_removed() {
    for object in
        [json!({}), json!({"metadata": 3}), json!({"metadata": {"finalizers": [], "deletionTimestamp": NOW}})]
    {
        assert_eq!(planned("ConfigMap", &object, &DeleteOptions::default()), Plan::Remove(None));
    }
}

#[test]
fn the_first_graceful_deletion() {
    let cases = [
        (None, "2026-07-01T10:00:30Z", 30),
        (Some(5), "2026-07-01T10:00:05Z", 5),
        (Some(60), "2026-07-01T10:01:00Z", 60),
        (Some(-5), "2026-07-01T10:00:01Z", 1),
    ];
    for (requested, deadline, seconds) in cases {
        let want =
            json!({"generation": 2, "deletionTimestamp": deadline, "deletionGracePeriodSeconds": seconds});
        let got = kept("Pod", &pod(json!({"generation": 1})), &grace_of(requested));
        assert_eq!(got, Some((want, true)));
    }
    let gone = |plan: Plan| match plan {
        Plan::Remove(Some(shown)) => shown["metadata"].clone(),
        other => panic!("{other:?}"),
    };
    let over = json!({"generation": 2, "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0});
    assert_eq!(gone(planned("Pod", &pod(json!({"generation": 1})), &grace_of(Some(0)))), over);
    let over = json!({"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0});
    assert_eq!(gone(planned("Pod", &json!({"metadata": {}}), &DeleteOptions::default())), over);
    let got = kept("Pod", &pod(json!({"generation": 1, "finalizers": ["x"]})), &grace_of(Some(0)));
    let want = json!({"generation": 2, "finalizers": ["x"], "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0});
    assert_eq!(got, Some((want, true)));
    assert!(kept("Pod", &pod(json!({})), &grace_of(Some(i64::MAX))).is_some());
}

#[test]
fn later_graceful_deletions() {
    // Stored (deadline, grace); requested grace; the (deadline, grace) afterwards, if the object stays.
    let later = "2026-07-01T10:00:20Z";
    let cases = [
        ((later, json!(30)), None, Some((later, 30, false))),
        ((later, json!(30)), Some(30), Some((later, 30, false))),
        ((later, json!(30)), Some(31), Some((later, 30, false))),
        ((later, json!(30)), Some(15), Some(("2026-07-01T10:00:05Z", 15, true))),
        ((later, json!(30)), Some(5), Some((NOW, 1, true))),
        ((later, json!(30)), Some(-1), Some((NOW, 1, true))),
        ((later, json!(30)), Some(0), None),
        ((later, json!(-3)), None, Some((later, -3, false))),
        ((later, json!(0)), Some(5), None),
        ((later, json!(null)), None, None),
        (("nonsense", json!(30)), Some(5), Some(("2026-07-01T10:00:05Z", 5, true))),
    ];
    for ((deadline, grace), requested, want) in cases {
        let metadata = |deadline: &str, grace: Value| json!({"generation": 2, "deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace});
        let object = pod(metadata(deadline, grace.clone()));
        let want = want.map(|(deadline, grace, changed)| (metadata(deadline, json!(grace)), changed));
        assert_eq!(kept("Pod", &object, &grace_of(requested)), want, "{grace} {requested:?}");
    }
}

#[test]
fn a_running_grace_period_freezes_the_finalizers() {
    let foreground = options(Dependents::Policy(Propagation::Foreground));
    let running = pod(json!({"deletionTimestamp": "2026-07-01T10:00:20Z", "deletionGracePeriodSeconds": 30}));
    assert_eq!(kept("Pod", &running, &foreground), Some((running["metadata"].clone(), false)));
    let over = pod(json!({"deletionTimestamp": "2026-07-01T09:00:00Z", "deletionGracePeriodSeconds": 0}));
    let mut want = over["metadata"].clone();
    want["finalizers"] = json!(["foregroundDeletion"]);
    assert_eq!(kept("Pod", &over, &foreground), Some((want, true)));
}

#[test]
fn namespaces_end_in_two_steps() {
    let plain = DeleteOptions::default();
    let active = json!({"metadata": {"generation": 1}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    let Plan::Keep { object: marked, changed } = planned("Namespace", &active, &plain) else { panic!() };
    assert!(changed);
    let marked = Value::Object(marked);
    assert_eq!(marked["metadata"], json!({"generation": 1, "deletionTimestamp": NOW}));
    assert_eq!(marked["status"], json!({"phase": "Terminating"}));
    assert_eq!(kept("Namespace", &marked, &plain), Some((marked["metadata"].clone(), false)));

    let mut finalized = marked;
    finalized["spec"] = json!({});
    assert_eq!(planned("Namespace", &finalized, &plain), Plan::Remove(None));
    assert!(
        kept("Namespace", &json!({"metadata": {}, "spec": {}}), &plain).is_some_and(|(_, changed)| changed)
    );

    let finalizers = |dependents| {
        let (metadata, _) = kept("Namespace", &active, &options(dependents)).unwrap();
        metadata["finalizers"].clone()
    };
    assert_eq!(finalizers(Dependents::Orphan(false)), json!(["foregroundDeletion"]));
    assert_eq!(finalizers(Dependents::Policy(Propagation::Orphan)), json!(["orphan"]));
    assert_eq!(finalizers(Dependents::Policy(Propagation::Background)), json!(null));
}

#[test]
fn preconditions() {
    let refusal = |kind: &str, uid: &str, version: &str| {
        let definition = definition(kind);
        let object = json!({"metadata": {"name": "n", "uid": "B", "resourceVersion": "2"}});
        let wanted = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let preconditions = Preconditions { uid: wanted(uid), resource_version: wanted(version) };
        check(
            object.as_object().unwrap(),
            &preconditions,
            &definition,
            &built_in::behavior(&definition).strategy,
        )
        .err()
        .map(|error| error.to_string())
    };
    assert_eq!(refusal("Pod", "B", "2"), None);
    assert_eq!(refusal("Pod", "", ""), None);
    let cases = [
        (
            "Pod",
            "A",
            "1",
            r#"Operation cannot be fulfilled on Pod "n": the UID in the precondition (A) does not match the UID in record (B). The object might have been deleted and then recreated"#,
        ),
        (
            "Deployment",
            "B",
            "1",
            r#"Operation cannot be fulfilled on Deployment.apps "n": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). The object might have been modified"#,
        ),
        (
            "Namespace",
            "A",
            "",
            r#"Operation cannot be fulfilled on namespaces "n": Precondition failed: UID in precondition: A, UID in object meta: B"#,
        ),
        (
            "Namespace",
            "",
            "1",
            r#"Operation cannot be fulfilled on namespaces "n": Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: 2"#,
        ),
    ];
    for (kind, uid, version, want) in cases {
        assert_eq!(refusal(kind, uid, version).as_deref(), Some(want));
    }
}
