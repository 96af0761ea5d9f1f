//! Which fields of a kind a field selector may name, and where an object keeps them.

use std::borrow::Cow;

use crate::gotext;
use crate::tree::Value;

/// The selectable fields of one kind.
#[derive(Clone, Debug)]
pub struct SelectableFields {
    fields: Vec<Field>,
    /// Other names of fields, as one served version spells them.
    aliases: Vec<(Cow<'static, str>, &'static str)>,
    refusal: Refusal,
}

#[derive(Clone, Debug)]
struct Field {
    label: Cow<'static, str>,
    /// Dotted; the first that is there and not empty counts.
    paths: Vec<Cow<'static, str>>,
    /// The text of a missing value.
    zero: &'static str,
}

/// How upstream words the 400 for an unknown field.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// Kinds without a conversion function of their own.
    OnlyMetadata,
    Label,
    Job,
}

impl SelectableFields {
    /// A compiled-in kind; `group` is empty for core.
    pub fn built_in(group: &str, kind: &str) -> Self {
        let (refusal, metadata, extra) = match (group, kind) {
            ("", "Pod") => (Refusal::Label, NAMESPACED, pod()),
            ("", "Event") | ("events.k8s.io", "Event") => (Refusal::Label, NAMESPACED, event()),
            ("", "Secret") => (Refusal::Label, NAMESPACED, vec![text("type")]),
            ("", "Service") => (Refusal::Label, NAMESPACED, vec![text("spec.clusterIP"), text("spec.type")]),
            ("", "Namespace") => (Refusal::Label, CLUSTER, vec![text("status.phase")]),
            ("", "Node") => (Refusal::Label, CLUSTER, vec![with_zero("spec.unschedulable", "false")]),
            ("", "ReplicationController") | ("apps", "ReplicaSet") => {
                (Refusal::Label, NAMESPACED, vec![with_zero("status.replicas", "0")])
            }
            ("batch", "Job") => (Refusal::Job, NAMESPACED, vec![successful()]),
            ("certificates.k8s.io", "CertificateSigningRequest") => {
                (Refusal::Label, CLUSTER, vec![text("spec.signerName")])
            }
            _ => (Refusal::OnlyMetadata, NAMESPACED, Vec::new()),
        };
        let fields = metadata.iter().map(|label| text(label)).chain(extra).collect();
        Self { fields, aliases: aliases(group, kind), refusal }
    }

    /// A custom resource; `json_paths` are the version's `selectableFields` (`.spec.color`).
    pub fn custom<'a>(namespaced: bool, json_paths: impl IntoIterator<Item = &'a str>) -> Self {
        let metadata = if namespaced { NAMESPACED } else { CLUSTER };
        let declared = json_paths.into_iter().map(|path| {
            let label: Cow<'static, str> = Cow::Owned(path.strip_prefix('.').unwrap_or(path).to_owned());
            Field { paths: vec![label.clone()], label, zero: "" }
        });
        let fields = metadata.iter().map(|label| text(label)).chain(declared).collect();
        Self { fields, aliases: Vec::new(), refusal: Refusal::Label }
    }

    /// The kind's own name of a field; the error is the whole message of a 400.
    pub fn canonical<'a>(&'a self, label: &'a str) -> Result<&'a str, String> {
        if let Some((_, name)) = self.aliases.iter().find(|(alias, _)| alias == label) {
            return Ok(name);
        }
        self.field(label).map(|field| &*field.label).ok_or_else(|| self.refusal.text(label))
    }

    /// The field's text in an object; empty for an unknown or missing one.
    pub fn value<'a>(&self, label: &str, object: &'a Value) -> Cow<'a, str> {
        let Some(field) = self.field(label) else { return Cow::Borrowed("") };
        let mut found = field.paths.iter().filter_map(|path| scalar(walk(object, path)?));
        found.find(|text| !text.is_empty()).unwrap_or(Cow::Borrowed(field.zero))
    }

    fn field(&self, label: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.label == label)
    }
}

impl Refusal {
    fn text(self, label: &str) -> String {
        match self {
            Refusal::OnlyMetadata => format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                gotext::quote(label)
            ),
            Refusal::Label => format!("field label not supported: {label}"),
            Refusal::Job => format!("field label {} not supported for batchv1.Job", gotext::quote(label)),
        }
    }
}

const NAMESPACED: &[&str] = &["metadata.name", "metadata.namespace"];

const CLUSTER: &[&str] = &["metadata.name"];

const REFERENCE: [&str; 7] =
    ["apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"];

fn text(path: &'static str) -> Field {
    with_zero(path, "")
}

fn with_zero(path: &'static str, zero: &'static str) -> Field {
    Field { label: path.into(), paths: vec![path.into()], zero }
}

fn first_of(label: impl Into<Cow<'static, str>>, paths: &[&'static str]) -> Field {
    let paths = paths.iter().map(|path| Cow::Borrowed(*path)).collect();
    Field { label: label.into(), paths, zero: "" }
}

fn pod() -> Vec<Field> {
    let texts = [
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        // Upstream accepts this label but never fills it in.
        "status.podIPs",
        "status.nominatedNodeName",
    ];
    texts.into_iter().map(text).chain([with_zero("spec.hostNetwork", "false")]).collect()
}

/// Both served forms of an event have the same fields, under other names.
fn event() -> Vec<Field> {
    let reference = REFERENCE.iter().map(|field| Field {
        label: format!("involvedObject.{field}").into(),
        paths: vec![format!("involvedObject.{field}").into(), format!("regarding.{field}").into()],
        zero: "",
    });
    let source =
        ["source.component", "deprecatedSource.component", "reportingComponent", "reportingController"];
    let others = [
        text("reason"),
        text("type"),
        first_of("reportingComponent", &["reportingComponent", "reportingController"]),
        first_of("source", &source),
    ];
    reference.chain(others).collect()
}

fn successful() -> Field {
    Field { label: "status.successful".into(), paths: vec!["status.succeeded".into()], zero: "0" }
}

fn aliases(group: &str, kind: &str) -> Vec<(Cow<'static, str>, &'static str)> {
    match (group, kind) {
        ("", "Pod") => vec![("spec.host".into(), "spec.nodeName")],
        ("events.k8s.io", "Event") => {
            let targets = [
                "involvedObject.apiVersion",
                "involvedObject.fieldPath",
                "involvedObject.kind",
                "involvedObject.name",
                "involvedObject.namespace",
                "involvedObject.resourceVersion",
                "involvedObject.uid",
            ];
            let reference = REFERENCE.iter().zip(targets);
            let reference = reference.map(|(field, target)| (format!("regarding.{field}").into(), target));
            reference.chain([("reportingController".into(), "reportingComponent")]).collect()
        }
        _ => Vec::new(),
    }
}

fn walk<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, key| value.get(key))
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;
    use crate::api::error::Error;
    use crate::api::selector::field::FieldSelector;

    fn matches(fields: &SelectableFields, selector: &str, object: &Value) -> bool {
        let selector = FieldSelector::parse(selector).unwrap().resolve(fields).unwrap();
        selector.matches_object(fields, object)
    }

    #[test]
    fn refusals() {
        let cases = [
            (
                SelectableFields::built_in("", "ConfigMap"),
                r#""spec.x" is not a known field selector: only "metadata.name", "metadata.namespace""#,
            ),
            (SelectableFields::built_in("", "Pod"), "field label not supported: spec.x"),
            (
                SelectableFields::built_in("batch", "Job"),
                r#"field label "spec.x" not supported for batchv1.Job"#,
            ),
            (SelectableFields::custom(true, []), "field label not supported: spec.x"),
        ];
        for (fields, want) in cases {
            let error = FieldSelector::parse("spec.x=1").unwrap().resolve(&fields).unwrap_err();
            assert_eq!(error, Error::bad_request(want));
        }
        let cluster = SelectableFields::custom(false, []);
        assert!(cluster.canonical("metadata.namespace").is_err());
        assert!(SelectableFields::built_in("rbac", "ClusterRole").canonical("metadata.namespace").is_ok());
    }

    #[test]
    fn values() {
        let pod = SelectableFields::built_in("", "Pod");
        let object = json!({
            "metadata": {"name": "a", "namespace": "n"},
            "spec": {"nodeName": "node", "hostNetwork": true},
            "status": {"podIPs": [{"ip": "1.2.3.4"}]},
        });
        for yes in [
            "metadata.name=a,metadata.namespace!=b",
            "spec.nodeName=node",
            "spec.host=node",
            "spec.hostNetwork=true",
            "status.phase=",
            "status.podIPs=",
        ] {
            assert!(matches(&pod, yes, &object), "{yes}");
        }
        assert!(matches(&pod, "spec.hostNetwork=false", &json!({})));
        let job = SelectableFields::built_in("batch", "Job");
        assert!(matches(&job, "status.successful=0", &json!({})));
        assert!(matches(&job, "status.successful=2", &json!({"status": {"succeeded": 2}})));
        let custom = SelectableFields::custom(true, [".spec.color"]);
        assert!(matches(&custom, "spec.color=red", &json!({"spec": {"color": "red"}})));
        assert!(matches(&custom, "spec.color=", &json!({"spec": {}})));
    }

    #[test]
    fn events_in_both_forms() {
        let core = SelectableFields::built_in("", "Event");
        let new = SelectableFields::built_in("events.k8s.io", "Event");
        let old = json!({"involvedObject": {"kind": "Pod"}, "source": {"component": "kubelet"}});
        let regarding = json!({"regarding": {"kind": "Pod"}, "reportingController": "kubelet"});
        assert!(matches(&core, "involvedObject.kind=Pod,source=kubelet", &old));
        assert!(matches(&new, "regarding.kind=Pod,reportingController=kubelet", &regarding));
        assert!(matches(&core, "source=kubelet", &regarding));
    }
}
