//! PodSecurity: namespaces say by labels what their Pods may do on a node (`pod-security-admission`).

pub mod checks;
mod counts;
mod existing;
pub mod policy;
#[cfg(test)]
mod tests;

use crate::admission::{Admission, Attempt, Operation, Verdict};
use crate::cache::State;
use crate::causes::aggregate;
use crate::error::Error;
use crate::gotext::quote;
use crate::metrics::{Metrics, PodSecurityRequest};
use crate::request::Request;
use crate::schema::names::{GroupKind, Gvr};
use crate::tree::Value;
use crate::{ObjectMap, fields};

use checks::{Violation, violations};
use counts::{Counts, Mode};
use policy::{Level, Policy, Rule};

const NAMESPACES: Gvr = Gvr::fixed("v1", "namespaces");
const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const AUDITED: &str = "pod-security.kubernetes.io/audit-violations";
const FAILED: &str = "pod-security.kubernetes.io/error";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const GROUP: &str = "pod-security.admission.config.k8s.io";
/// Subresources of Pods that change nothing of what is checked.
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// The plugin with its configuration.
#[derive(Default)]
pub(in crate::admission) struct PodSecurity {
    defaults: Policy,
    exempt_users: Vec<String>,
    exempt_namespaces: Vec<String>,
    exempt_runtime_classes: Vec<String>,
    counts: Counts,
}

/// The kind of object that the plugin looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Namespace,
    Pod,
    /// A kind with a template of Pods, at this path.
    Template(&'static [&'static str]),
}

fn subject(request: &Request<'_>) -> Option<Subject> {
    let definition = &request.target.resource.definition;
    Some(match (&**definition.group(), &*definition.plural) {
        ("", "namespaces") => Subject::Namespace,
        ("", "pods") => Subject::Pod,
        ("", "podtemplates") => Subject::Template(&["template"]),
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => Subject::Template(&["spec", "template"]),
        ("batch", "cronjobs") => Subject::Template(&["spec", "jobTemplate", "spec", "template"]),
        _ => return None,
    })
}

impl Admission for PodSecurity {
    fn register(&self, metrics: &Metrics) {
        for operation in ["create", "update"] {
            for resource in ["pod", "controller"] {
                let request = PodSecurityRequest { operation, resource, subresource: "" };
                metrics.pod_security_exemptions(&request).increment(0);
            }
        }
    }

    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let subresource = request.subresource;
        operation != Operation::Delete
            && match subject(request) {
                None => false,
                Some(Subject::Pod) => !IGNORED.contains(&subresource),
                Some(Subject::Namespace | Subject::Template(_)) => subresource.is_empty(),
            }
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let cluster = attempt.cluster;
        match self.judge(attempt, &cluster.cache.any()) {
            Err(_) if cluster.store.backend().shared() => Verdict::Later(Box::pin(async move {
                let fresh = cluster.cache.fresh().await?;
                self.judge(attempt, &fresh)
            })),
            verdict => Verdict::Now(verdict),
        }
    }
}

impl PodSecurity {
    /// Reads a PodSecurityConfiguration.
    pub fn new(content: Option<&Value>) -> Result<Self, String> {
        let Some(content) = content else { return Ok(Self::default()) };
        let empty = ObjectMap::new();
        let content = content.as_object().unwrap_or(&empty);
        let (version, kind) = (fields::text(content, &["apiVersion"]), fields::text(content, &["kind"]));
        let is_known = version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
        if kind != "PodSecurityConfiguration" || !is_known.is_some_and(|version| VERSIONS.contains(&version))
        {
            return Err(format!("no kind {} is registered for version {}", quote(kind), quote(version)));
        }
        let list = |name: &str| {
            let names = fields::items(content, &["exemptions", name]).iter();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(Self {
            defaults: Policy::parse(fields::object(content, "defaults").unwrap_or(&empty))?,
            exempt_users: list("usernames"),
            exempt_namespaces: list("namespaces"),
            exempt_runtime_classes: list("runtimeClasses"),
            counts: Counts::default(),
        })
    }

    fn judge(&self, attempt: &Attempt<'_>, state: &State) -> Result<(), Error> {
        let (Some(subject), Some(object)) = (subject(attempt.request), &attempt.object) else {
            return Ok(());
        };
        if subject == Subject::Namespace {
            return self.judge_namespace(attempt, object, state);
        }
        let namespace = attempt.target.namespace;
        if self.exempt_namespaces.iter().any(|own| own == namespace) {
            annotate(attempt, EXEMPT, "namespace");
            counts::exempted(attempt);
            return Ok(());
        }
        if self.exempt_users.contains(&attempt.request.user.name) {
            annotate(attempt, EXEMPT, "user");
            counts::exempted(attempt);
            return Ok(());
        }
        let Some(found) = self.namespace(attempt, state) else {
            let why = format!("failed to lookup namespace {}", quote(namespace));
            annotate(attempt, FAILED, &why);
            counts::failed(attempt, true);
            return if subject == Subject::Pod { Err(Error::Internal(why)) } else { Ok(()) };
        };
        let (policy, causes) = Policy::of(&found, &self.defaults);
        if causes.is_empty() && policy.allows_all() {
            if subject == Subject::Pod {
                annotate(attempt, ENFORCED, "privileged:latest");
                self.counts.decided(attempt, Mode::Enforce, policy.enforce, true);
            }
            return Ok(());
        }
        let is_told = [policy.audit, policy.warn].iter().any(|rule| rule.level != Level::Privileged);
        if causes.is_empty() && subject != Subject::Pod && !is_told {
            return Ok(());
        }
        let problem = (!causes.is_empty()).then(|| aggregate(&causes));
        match subject {
            Subject::Pod if !attempt.old.is_none_or(|old| is_significant(object, old)) => Ok(()),
            Subject::Template(path) => match fields::at(object, path).and_then(Value::as_object) {
                Some(template) => self.evaluate(attempt, (policy, problem), template, false),
                None => Ok(()),
            },
            Subject::Pod | Subject::Namespace => self.evaluate(attempt, (policy, problem), object, true),
        }
    }

    /// The namespace of the object.
    fn namespace(&self, attempt: &Attempt<'_>, state: &State) -> Option<ObjectMap> {
        let namespaces = attempt.cluster.resources.get(&NAMESPACES)?;
        let found = state.get(namespaces.id, "", attempt.target.namespace)?;
        namespaces.decode(&found).ok()
    }

    fn evaluate(
        &self,
        attempt: &Attempt<'_>,
        (policy, problem): (Policy, Option<String>),
        pod: &ObjectMap,
        enforces: bool,
    ) -> Result<(), Error> {
        let Some(spec) = fields::object(pod, "spec") else { return Ok(()) };
        if self.is_exempt_by_runtime_class(spec) {
            annotate(attempt, EXEMPT, "runtimeClass");
            counts::exempted(attempt);
            return Ok(());
        }
        if let Some(problem) = problem {
            annotate(attempt, FAILED, &format!("Failed to parse policy: {problem}"));
            counts::failed(attempt, false);
        }
        let metadata = fields::object(pod, "metadata");
        let judged = |rule: Rule| detail(&violations(rule, metadata, spec));
        let mut refused = None;
        if enforces {
            annotate(attempt, ENFORCED, &policy.enforce.to_string());
            refused = judged(policy.enforce);
            self.counts.decided(attempt, Mode::Enforce, policy.enforce, refused.is_none());
        }
        if let Some(detail) = judged(policy.audit) {
            annotate(attempt, AUDITED, &format!("would violate PodSecurity \"{}\": {detail}", policy.audit));
            self.counts.decided(attempt, Mode::Audit, policy.audit, false);
        }
        if let Some(detail) = refused {
            return Err(attempt.refused(format!("violates PodSecurity \"{}\": {detail}", policy.enforce)));
        }
        if let Some(detail) = judged(policy.warn) {
            let warning = format!("would violate PodSecurity \"{}\": {detail}", policy.warn);
            attempt.request.warnings.add(warning);
            self.counts.decided(attempt, Mode::Warn, policy.warn, false);
        }
        Ok(())
    }

    fn is_exempt_by_runtime_class(&self, spec: &ObjectMap) -> bool {
        let class = fields::text(spec, &["runtimeClassName"]);
        !class.is_empty() && self.exempt_runtime_classes.iter().any(|own| own == class)
    }

    /// Refuses bad labels, and warns about Pods that the new policy would refuse.
    fn judge_namespace(
        &self,
        attempt: &Attempt<'_>,
        namespace: &ObjectMap,
        state: &State,
    ) -> Result<(), Error> {
        let (policy, causes) = Policy::of(namespace, &self.defaults);
        let name = fields::text(namespace, &["metadata", "name"]);
        let is_exempt = self.exempt_namespaces.iter().any(|own| own == name);
        let invalid =
            |causes| Error::Invalid { kind: GroupKind::new("", "Namespace"), name: name.to_owned(), causes };
        if let Some(old) = attempt.old {
            let (before, old_causes) = Policy::of(old, &self.defaults);
            if !causes.is_empty() && causes != old_causes {
                return Err(invalid(causes));
            }
            let same_version = policy.enforce.version == before.enforce.version;
            if policy.enforce == before.enforce
                || policy.enforce.level == Level::Privileged
                || (same_version && policy.enforce.level <= before.enforce.level)
            {
                return Ok(());
            }
            if !is_exempt {
                let warnings = self.existing_pods(attempt, name, policy.enforce, state);
                warnings.into_iter().for_each(|warning| attempt.request.warnings.add(warning));
                return Ok(());
            }
        } else if !causes.is_empty() {
            return Err(invalid(causes));
        }
        if is_exempt && let Some(warning) = policy.exempt_warning(namespace, &self.defaults) {
            attempt.request.warnings.add(warning);
        }
        Ok(())
    }
}

fn annotate(attempt: &Attempt<'_>, key: &'static str, value: &str) {
    if let Some(audit) = attempt.request.audit {
        audit.annotate(key, value.to_owned());
    }
}

/// All violations in one line; `None` if there is none.
pub fn detail(violations: &[Violation]) -> Option<String> {
    let parts = violations.iter().map(|Violation { reason, detail }| match detail.is_empty() {
        true => reason.clone(),
        false => format!("{reason} ({detail})"),
    });
    (!violations.is_empty()).then(|| parts.collect::<Vec<_>>().join(", "))
}

/// Whether an update of a Pod runs another image, or another container.
fn is_significant(new: &ObjectMap, old: &ObjectMap) -> bool {
    let images = |pod: &ObjectMap, list: &str| -> Vec<Value> {
        let containers = fields::items(pod, &["spec", list]).iter();
        containers.map(|container| container["image"].clone()).collect()
    };
    let ephemeral = |pod: &ObjectMap| -> Vec<(Value, Value)> {
        let containers = fields::items(pod, &["spec", "ephemeralContainers"]).iter();
        containers.map(|container| (container["name"].clone(), container["image"].clone())).collect()
    };
    let before = ephemeral(old);
    ["containers", "initContainers"].iter().any(|list| images(new, list) != images(old, list))
        || ephemeral(new).iter().any(|container| !before.contains(container))
}
