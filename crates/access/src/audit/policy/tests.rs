use super::*;
use crate::user::User;

fn read(rules: &str) -> Policy {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    read::policy(text.as_bytes()).expect("a policy").0
}

fn problem(rules: &str) -> String {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    read::policy(text.as_bytes()).expect_err("a wrong policy")
}

fn user() -> User {
    User { name: "u".to_owned(), groups: vec!["g".to_owned(), "h".to_owned()], ..User::default() }
}

fn level(policy: &Policy, attributes: &Attributes<'_>) -> Level {
    policy.evaluate(attributes).map_or(Level::None, |verdict| verdict.level)
}

#[test]
fn the_first_rule_that_matches_counts() {
    let policy = read(
        "rules:\n\
         - {level: None, users: [other]}\n\
         - {level: Request, userGroups: [x, h], verbs: [get]}\n\
         - {level: None, userGroups: [g], verbs: [watch]}\n\
         - {level: Metadata}\n",
    );
    let user = user();
    let of = |verb| level(&policy, &Attributes::of_path(&user, verb, "/x"));
    assert_eq!((of("get"), of("watch"), of("post")), (Level::Request, Level::None, Level::Metadata));
}

#[test]
fn what_matches_no_rule_is_not_recorded() {
    let policy = read("rules: [{level: Metadata, users: [v]}]");
    assert_eq!(policy.evaluate(&Attributes::of_path(&user(), "get", "/x")), None);
}

#[test]
fn resources_and_their_subresources() {
    let user = user();
    let cases = [
        ("[pods]", "pods", "", true),
        ("[pods]", "pods", "log", false),
        ("[pods/log]", "pods", "log", true),
        ("[pods/log]", "pods", "", false),
        ("[pods/*]", "pods", "log", true),
        ("[pods/*]", "pods", "", true),
        ("['*/log']", "pods", "log", true),
        ("['*/log']", "pods", "status", false),
        ("['*/log']", "pods", "", false),
        ("['*']", "pods", "log", true),
        ("[services, pods]", "pods", "", true),
        ("[]", "pods", "log", true),
    ];
    for (rule, resource, subresource, want) in cases {
        let policy = read(&format!("rules: [{{level: Metadata, resources: [{{resources: {rule}}}]}}]"));
        let request = Attributes { resource, subresource, ..Attributes::of_path(&user, "get", "") };
        assert_eq!(policy.evaluate(&request).is_some(), want, "{rule} {resource}/{subresource}");
    }
}

#[test]
fn groups_names_and_namespaces() {
    let user = user();
    let pod = Attributes {
        group: "g",
        resource: "pods",
        namespace: "ns",
        name: "p",
        ..Attributes::of_path(&user, "get", "")
    };
    for (rule, want) in [
        ("resources: [{group: g, resources: [pods], resourceNames: [q, p]}]", true),
        ("resources: [{group: g, resources: [pods], resourceNames: [q]}]", false),
        ("resources: [{group: '*', resources: [pods]}]", true),
        ("resources: [{resources: [pods]}]", false),
        ("namespaces: [m, ns]", true),
        ("namespaces: ['']", false),
        ("namespaces: [ns], resources: [{group: x}]", false),
        ("nonResourceURLs: ['*']", false),
    ] {
        let policy = read(&format!("rules: [{{level: Metadata, {rule}}}]"));
        assert_eq!(policy.evaluate(&pod).is_some(), want, "{rule}");
    }
    let cluster = read("rules: [{level: Metadata, namespaces: ['']}]");
    assert!(cluster.evaluate(&Attributes { namespace: "", ..pod }).is_some());
    assert!(cluster.evaluate(&Attributes::of_path(&user, "get", "/x")).is_none());
}

#[test]
fn paths() {
    let user = user();
    for (rule, path, want) in [
        ("*", "/x", true),
        ("/x", "/x", true),
        ("/x", "/x/y", false),
        ("/x*", "/x/y", true),
        ("/x/*", "/x", false),
    ] {
        let policy = read(&format!("rules: [{{level: Metadata, nonResourceURLs: ['{rule}']}}]"));
        assert_eq!(
            policy.evaluate(&Attributes::of_path(&user, "get", path)).is_some(),
            want,
            "{rule} {path}"
        );
    }
}

#[test]
fn stages_and_managed_fields_of_policy_and_rule() {
    let policy = read(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
         - {level: Metadata, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n\
         - {level: Metadata}\n",
    );
    let user = user();
    let of = |verb| policy.evaluate(&Attributes::of_path(&user, verb, "/x")).expect("recorded");
    let (get, put) = (of("get"), of("put"));
    assert!(get.omitted.contains(Stage::RequestReceived) && get.omitted.contains(Stage::Panic));
    assert!(put.omitted.contains(Stage::RequestReceived) && !put.omitted.contains(Stage::Panic));
    assert!(!get.omitted.contains(Stage::ResponseComplete));
    assert_eq!((get.omits_managed_fields, put.omits_managed_fields), (false, true));
}

#[test]
fn wrong_policies_in_upstreams_words() {
    for (rules, want) in [
        ("", "loaded illegal policy with 0 rules"),
        ("rules: []", "loaded illegal policy with 0 rules"),
        ("rules: [{}]", "rules[0].level: Required value"),
        (
            "rules: [{level: X}]",
            "rules[0].level: Unsupported value: \"X\": supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"",
        ),
        (
            "rules: [{level: None, nonResourceURLs: [x, '/*/y']}]",
            "[rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character, \
             rules[0].nonResourceURLs[1]: Invalid value: \"/*/y\": non-resource URL wildcards '*' must be the final character of the rule]",
        ),
        (
            "rules: [{level: None, namespaces: [a], nonResourceURLs: ['/x']}]",
            "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one resource",
        ),
        (
            "omitStages: [X]\nrules: [{level: None}]",
            "omitStages[0]: Invalid value: \"X\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
    ] {
        assert_eq!(problem(rules), want, "{rules}");
    }
    let other = read::policy(b"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]");
    assert!(other.expect_err("another version").contains("v1beta1"));
}

#[test]
fn unknown_fields_are_told_and_do_not_count() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nmetadata: {name: x}\nmore: 1\n\
                rules: [{level: None, less: 2, resources: [{group: '', no: 3}]}]";
    let (policy, unknown) = read::policy(text.as_bytes()).expect("a policy");
    assert_eq!(unknown, ["more", "rules[0].less", "rules[0].resources[0].false"]);
    assert_eq!(policy.rules.len(), 1);
}
