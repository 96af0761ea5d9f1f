use super::*;

const POLICIES: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
const HOOKS: [&str; 1] = ["ValidatingWebhookConfiguration"];

fn policy(name: &str, spec: &str) -> String {
    let rule = "{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}";
    format!(
        "apiVersion: {VERSION}\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         matchConstraints: {{resourceRules: [{rule}]}}\n  validations: [{{expression: 'true'}}]\n{spec}"
    )
}

fn binding(name: &str, policy: &str, spec: &str) -> String {
    format!(
        "apiVersion: {VERSION}\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {name}}}\nspec:\n  \
         policyName: {policy}\n  validationActions: [Deny]\n{spec}"
    )
}

fn hook(name: &str, config: &str) -> String {
    format!(
        "apiVersion: {VERSION}\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: {name}}}\nwebhooks:\n\
         - {{name: h.ex.io, clientConfig: {config}, sideEffects: None, admissionReviewVersions: [v1]}}\n"
    )
}

/// What a directory with these files comes to: names in order, or the error after its file's name.
fn read(files: &[(&str, &str)], kinds: &[&str]) -> Result<String, String> {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).expect("written");
    }
    let shown = format!("{}/", dir.path().display());
    let found = Manifests::read(dir.path(), kinds).map_err(|why| why.replace(&shown, ""))?;
    assert!(found.hash.starts_with("sha256:") || found.list.is_empty());
    let names = found.list.iter().map(|one| format!("{}:{}", one.place, one.name.trim_end_matches(END)));
    Ok(names.collect::<Vec<_>>().join(" "))
}

#[test]
fn files_hold_documents_and_lists() {
    let (a, b) = (policy("a.static.k8s.io", ""), policy("b.static.k8s.io", ""));
    let bound = binding("x.static.k8s.io", "a.static.k8s.io", "");
    let both = format!("---\n{b}\n--- # the second\n{bound}\n---\n");
    assert_eq!(
        read(&[("2.yaml", &both), ("1.YML", &a), ("no.txt", "{")], &POLICIES).as_deref(),
        Ok("0:a 0:b 1:x")
    );
    let json = |text: &str| yaml::read(text.as_bytes()).expect("YAML").value;
    let list = json!({"apiVersion": "v1", "kind": "List",
        "items": [{"apiVersion": "v1", "kind": "List", "items": [json(&a)]}, json(&bound)]});
    assert_eq!(read(&[("l.json", &list.to_string())], &POLICIES).as_deref(), Ok("0:a 1:x"));
    let list = json!({"apiVersion": VERSION, "kind": "ValidatingAdmissionPolicyList", "items": [json(&b), json(&a)]});
    assert_eq!(read(&[("l.json", &list.to_string())], &POLICIES).as_deref(), Ok("0:a 0:b"));
    assert_eq!(read(&[("e.yaml", ""), ("f.yaml", "---\n---\n")], &POLICIES).as_deref(), Ok(""));
    assert_eq!(
        read(&[("h.yaml", &hook("h.static.k8s.io", "{url: 'https://h.io/'}"))], &HOOKS).as_deref(),
        Ok("0:h")
    );
}

#[test]
fn what_is_wrong_is_told() {
    let good = policy("a.static.k8s.io", "");
    let of = |text: &str, kinds: &[&str]| read(&[("f.yaml", text)], kinds).expect_err("an error");
    for (text, why) in [
        (policy("a", ""), "\"a\" in file \"f.yaml\" must have a name ending with \".static.k8s.io\""),
        (
            format!("{good}\n---\n{good}"),
            "duplicate name \"a.static.k8s.io\" found in file \"f.yaml\" (previously seen in \"f.yaml\")",
        ),
        (
            policy("a.static.k8s.io", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n"),
            "ValidatingAdmissionPolicy \"a.static.k8s.io\": spec.paramKind is not supported for static manifests",
        ),
        (policy("a.static.k8s.io", "  nope: 1\n"), "strict decoding error: unknown field \"spec.nope\""),
        (
            policy("A.static.k8s.io", ""),
            "ValidatingAdmissionPolicy \"A.static.k8s.io\": metadata.name: Invalid value: \"A.static.k8s.io\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            binding("x.static.k8s.io", "a", ""),
            "binding \"x.static.k8s.io\": spec.policyName \"a\" must end with \".static.k8s.io\"",
        ),
        (
            binding(
                "x.static.k8s.io",
                "a.static.k8s.io",
                "  paramRef: {name: p, parameterNotFoundAction: Deny}\n",
            ),
            "binding \"x.static.k8s.io\": spec.paramRef is not supported for static manifests",
        ),
        ("apiVersion: v1\nkind: Pod\n".to_owned(), "unsupported resource type v1, Kind=Pod"),
        (
            hook("h.static.k8s.io", "{url: 'https://h.io/'}"),
            "unsupported resource type admissionregistration.k8s.io/v1, Kind=ValidatingWebhookConfiguration",
        ),
        ("# nothing\n".to_owned(), "Object 'Kind' is missing"),
    ] {
        assert_eq!(of(&text, &POLICIES), format!("error loading f.yaml: {why}"));
    }
    assert_eq!(
        of(&hook("h.static.k8s.io", "{service: {namespace: a, name: b}}"), &HOOKS),
        "error loading f.yaml: webhook \"h.ex.io\" in \"h.static.k8s.io\" (file \"f.yaml\"): clientConfig.service is not \
         supported for static manifests; use clientConfig.url instead"
    );
    let broken = policy("a.static.k8s.io", "").replace("'true'", "'nope('");
    let start = "error loading f.yaml: ValidatingAdmissionPolicy \"a.static.k8s.io\": spec.validations[0].expression: Invalid value: \"nope(\": compilation failed";
    assert!(of(&broken, &POLICIES).starts_with(start), "{}", of(&broken, &POLICIES));
    assert_eq!(
        of(&binding("x.static.k8s.io", "a.static.k8s.io", ""), &POLICIES),
        "binding \"x.static.k8s.io\" references policy \"a.static.k8s.io\" which does not exist in the manifest directory"
    );
    let separator = "failed to split YAML documents in file \"f.yaml\": invalid Yaml document separator: x";
    assert_eq!(of("a: 1\n--- x\n", &POLICIES), separator);
}
