//! Type checks of a ValidatingAdmissionPolicy's expressions: the errors that they have with objects of the types that the
//! policy's own rules name (`pkg/admission/plugin/policy/validating/typechecking.go`). Nothing is refused because of
//! them.

use std::collections::BTreeMap;

use crate::admission::Attempt;
use crate::catalog::Served;
use crate::expression::declared::{Quantities, of_kind};
use crate::expression::{Checked, Refusal, check};
use crate::kinds::behavior::rules::expression::Admission;
use crate::long_work;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

/// How many kinds of a rule are looked at.
const MOST_OF_A_RULE: usize = 10;
/// How many kinds are looked at in all, and how many times an expression is checked. Upstream has no such limits.
const MOST_KINDS: usize = 50;
const MOST_CHECKS: usize = 2_000;

/// The errors of one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The path to the expression.
    pub field: String,
    /// A paragraph for each kind.
    pub text: String,
}

/// The errors of the expressions of a policy's spec. Hundreds of expressions may be checked with ten types each.
pub fn warnings(served: &Served, spec: &ObjectMap) -> Vec<Warning> {
    long_work::run(|| found(served, spec))
}

fn found(served: &Served, spec: &ObjectMap) -> Vec<Warning> {
    let environments = environments(served, spec);
    let mut warnings = Vec::new();
    let mut checks = 0;
    for (at, validation) in fields::items(spec, &["validations"]).iter().enumerate() {
        for member in ["expression", "messageExpression"] {
            let text = validation.get(member).and_then(Value::as_str).unwrap_or_default();
            checks += environments.len();
            if checks > MOST_CHECKS {
                return warnings;
            }
            if member == "messageExpression" && text.is_empty() {
                continue;
            }
            let wrong = environments.iter().filter_map(|(kind, environment)| {
                let why = compiled(text, environment).err()?;
                Some(format!("{kind}: {why}\n"))
            });
            let wrong: Vec<String> = wrong.collect();
            if !wrong.is_empty() {
                let field = format!("spec.validations[{at}].{member}");
                warnings.push(Warning { field, text: wrong.join("\n") });
            }
        }
    }
    warnings
}

/// `status.typeChecking`.
pub fn status(warnings: &[Warning]) -> Value {
    if warnings.is_empty() {
        return json!({});
    }
    let of = |warning: &Warning| json!({"fieldRef": warning.field, "warning": warning.text});
    json!({"expressionWarnings": warnings.iter().map(of).collect::<Vec<_>>()})
}

/// Tells the client that writes a policy what is wrong with it, in the first line of each complaint.
pub(crate) fn warn(attempt: &Attempt<'_>, policy: &ObjectMap, old: Option<&ObjectMap>) {
    let spec = |policy| fields::object(policy, "spec");
    let Some(new) = spec(policy).filter(|new| old.and_then(spec) != Some(new)) else { return };
    for Warning { field, text } in warnings(&attempt.cluster.catalog.served(), new) {
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(" |")) {
            attempt.request.warnings.add(format!("{field}: {line}"));
        }
    }
}

fn compiled(text: &str, environment: &Admission) -> Result<Checked, String> {
    check(text, environment.declarations()).map_err(|refusal| match refusal {
        Refusal::Wrong(why) => why.strip_prefix("compilation failed: ").map(str::to_owned).unwrap_or(why),
        Refusal::NoStack => "type checking error: the expression is too deep".to_owned(),
    })
}

/// The environment of the policy's expressions, for each kind that its rules name.
fn environments(served: &Served, spec: &ObjectMap) -> Vec<(Gvk, Admission)> {
    let kind = fields::object(spec, "paramKind").map(|kind| {
        let text = |field| fields::text(kind, &[field]);
        Gvk::parse(text("apiVersion"), text("kind")).unwrap_or_default()
    });
    let params = kind.map(|kind| {
        let found = served.by_kind(&kind);
        found.and_then(|resource| of_kind(&resource.definition.kind, Quantities::Unknown))
    });
    let kinds = kinds(served, spec).into_values();
    let environment = |kind: Kind| {
        let object = of_kind(&kind, Quantities::Unknown)?;
        let params = params.as_ref().map(Option::as_ref);
        let mut environment = Admission::typed(&object, params).composed();
        for variable in fields::items(spec, &["variables"]) {
            let text = |field| variable.get(field).and_then(Value::as_str).unwrap_or_default();
            let checked = compiled(text("expression"), &environment);
            environment.declare_type(text("name"), checked.ok().map(|checked| checked.result).as_ref());
        }
        Some((kind.gvk, environment))
    };
    kinds.filter_map(environment).take(MOST_KINDS).collect()
}

/// The kinds that the policy's rules name, by group, version and kind. Rules with wildcards name none.
fn kinds(served: &Served, spec: &ObjectMap) -> BTreeMap<(String, String, String), Kind> {
    let mut kinds = BTreeMap::new();
    for rule in fields::items(spec, &["matchConstraints", "resourceRules"]) {
        let sorted = |field: &str| {
            let items = rule.get(field).and_then(Value::as_array).into_iter().flatten();
            let mut texts: Vec<&str> = items.filter_map(Value::as_str).collect();
            texts.sort_unstable();
            texts
        };
        let (groups, versions, mut resources) =
            (sorted("apiGroups"), sorted("apiVersions"), sorted("resources"));
        if [&groups, &versions].iter().any(|list| list.iter().any(|item| item.contains('*'))) {
            continue;
        }
        resources.retain(|resource| !resource.contains(['*', '/']));
        let mut found = 0;
        let wanted = groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version)));
        'rule: for (group, version) in wanted {
            for resource in &resources {
                for kind in of_resource(served, group, version, resource) {
                    let gvk = &kind.gvk;
                    let key = (gvk.group().to_string(), gvk.version().to_owned(), gvk.kind.to_string());
                    kinds.insert(key, kind.clone());
                    found += 1;
                    if found == MOST_OF_A_RULE {
                        // Upstream looks at no further rules either.
                        return kinds;
                    }
                    if kinds.len() >= MOST_KINDS {
                        break 'rule;
                    }
                }
            }
        }
    }
    kinds
}

/// The kinds of a resource. Upstream's mapper takes the core group for any group.
fn of_resource<'s>(
    served: &'s Served,
    group: &'s str,
    version: &'s str,
    resource: &'s str,
) -> impl Iterator<Item = &'s Kind> {
    served.of_plural(resource).filter_map(move |found| {
        let definition = &found.definition;
        let is_wanted = (group.is_empty() || definition.group() == group) && definition.version() == version;
        is_wanted.then_some(&definition.kind)
    })
}

#[cfg(test)]
mod tests;
