//! Policies and their bindings, ready to be evaluated.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admission::dynamic::by_resource::ByResource;
use crate::admission::dynamic::conditions::Conditions;
use crate::admission::dynamic::evaluation::{Expression, Variable};
use crate::admission::dynamic::follow::Content;
use crate::admission::dynamic::manifests::Manifest;
use crate::admission::dynamic::matching::MatchResources;
use crate::codec::object::Object;
use crate::kinds::behavior::rules::expression::Admission;
use crate::options::selector::label::LabelSelector;
use crate::schema::names::Gvk;
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// A policy, with what it does about the requests that it is about.
pub struct Policy<B> {
    pub name: String,
    /// `None` if it says nothing of what it matches, which validation prevents.
    pub matching: Option<MatchResources>,
    pub params: Option<Gvk>,
    pub conditions: Conditions,
    pub variables: Vec<Variable>,
    /// Whether what cannot be evaluated refuses the request.
    pub fails_closed: bool,
    /// Whether an expression speaks of `managedFields`, which are text while a write is at work.
    pub sees_managers: bool,
    /// Whether an expression may speak of the request, or of its Namespace.
    pub sees_request: bool,
    pub sees_namespace: bool,
    pub body: B,
}

/// The members that only one of the two kinds of policies has.
pub trait Body: Sized + Send + Sync {
    /// Reads the policy's spec, and compiles its expressions.
    fn of(spec: &ObjectMap, environment: &Admission) -> Self;
}

/// The validations and the audit annotations of a ValidatingAdmissionPolicy.
pub struct Validations {
    pub list: Vec<Validation>,
    pub annotations: Vec<(String, Expression)>,
}

/// The mutations of a MutatingAdmissionPolicy.
pub struct Mutations {
    pub list: Vec<Mutation>,
    /// `reinvocationPolicy`: whether it is evaluated again when the object has changed.
    pub is_reinvoked: bool,
}

/// One of a policy's `mutations`.
pub struct Mutation {
    pub patch: PatchType,
    pub expression: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    ApplyConfiguration,
    JsonPatch,
}

/// One of a policy's `validations`.
pub struct Validation {
    pub expression: Expression,
    pub message: String,
    pub message_expression: Option<Expression>,
    pub reason: String,
}

/// A binding of a policy.
pub struct Binding {
    pub name: String,
    pub policy: String,
    pub params: Option<ParamRef>,
    pub matching: Option<MatchResources>,
    /// `validationActions`, which bindings of mutating policies do not have.
    pub actions: Vec<Action>,
}

/// The `paramRef` of a binding: the objects that parametrize the policy.
pub struct ParamRef {
    pub namespace: String,
    pub which: Which,
    /// `parameterNotFoundAction`: whether a request is refused if there are none.
    pub denies_missing: bool,
}

pub enum Which {
    Name(String),
    /// `None` if the selector cannot be read.
    Selected(Option<LabelSelector>),
}

/// The effect of a failed validation, as `validationActions` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Deny,
    Warn,
    Audit,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Deny => "Deny",
            Action::Warn => "Warn",
            Action::Audit => "Audit",
        }
    }
}

/// All policies and bindings, by name.
pub struct Policies<B> {
    policies: BTreeMap<Box<str>, Arc<Policy<B>>>,
    bindings: BTreeMap<Box<str>, Arc<Binding>>,
}

impl<B> Default for Policies<B> {
    fn default() -> Self {
        Self { policies: BTreeMap::new(), bindings: BTreeMap::new() }
    }
}

/// A policy with its bindings. One without any has no effect.
pub struct Bound<B> {
    pub policy: Arc<Policy<B>>,
    pub bindings: Vec<Arc<Binding>>,
}

/// The policies in force, in the order of their names.
pub type InForce<B> = ByResource<Bound<B>>;

fn in_order<B>(bound: Vec<Bound<B>>) -> Arc<InForce<B>> {
    let plurals = |bound: &Bound<B>| bound.policy.matching.as_ref().and_then(MatchResources::plurals);
    Arc::new(ByResource::new(bound, plurals))
}

impl<B: Body> Content for Policies<B> {
    type Snapshot = Arc<InForce<B>>;

    const NAME: &'static str = "policy";

    fn take_in(&mut self, place: usize, name: &str, object: Option<&Object>) -> Result<(), String> {
        match place {
            0 => _ = self.policies.remove(name),
            _ => _ = self.bindings.remove(name),
        }
        let Some(object) = object else { return Ok(()) };
        let content = object.to_closed_map().map_err(|error| error.to_string())?;
        self.put(place, name, &content);
        Ok(())
    }

    fn snapshot(&self) -> Option<Self::Snapshot> {
        let mut bound: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
        for binding in self.bindings.values() {
            bound.entry(&binding.policy).or_default().push(binding.clone());
        }
        let bound: Vec<Bound<B>> = bound
            .into_iter()
            .filter_map(|(name, bindings)| Some(Bound { policy: self.policies.get(name)?.clone(), bindings }))
            .collect();
        (!bound.is_empty()).then(|| in_order(bound))
    }

    fn of_manifests(manifests: &[Manifest]) -> Self {
        let mut policies = Self::default();
        manifests.iter().for_each(|one| policies.put(one.place, &one.name, &one.content));
        policies
    }

    fn joined(first: &Arc<InForce<B>>, then: &Arc<InForce<B>>) -> Arc<InForce<B>> {
        let bound = first.all().iter().chain(then.all());
        let shared =
            |bound: &Bound<B>| Bound { policy: bound.policy.clone(), bindings: bound.bindings.clone() };
        in_order(bound.map(shared).collect())
    }
}

impl<B: Body> Policies<B> {
    fn put(&mut self, place: usize, name: &str, content: &ObjectMap) {
        let empty = ObjectMap::new();
        let spec = fields::object(content, "spec").unwrap_or(&empty);
        match place {
            0 => _ = self.policies.insert(name.into(), Arc::new(Policy::of(name, spec))),
            _ => _ = self.bindings.insert(name.into(), Arc::new(Binding::of(name, spec))),
        }
    }
}

impl<B: Body> Policy<B> {
    pub fn of(name: &str, spec: &ObjectMap) -> Self {
        let params = fields::object(spec, "paramKind").map(|kind| {
            let text = |field| fields::text(kind, &[field]);
            Gvk::parse(text("apiVersion"), text("kind")).unwrap_or_default()
        });
        let mut environment = Admission::new(params.is_some()).composed();
        let mut variables = Vec::new();
        for variable in objects(spec, "variables") {
            let (expression, is) =
                Expression::checked(fields::text(variable, &["expression"]), environment.declarations());
            let name = fields::text(variable, &["name"]).to_owned();
            environment.declare_type(&name, is.as_ref());
            variables.push(Variable { name, expression });
        }
        let text = Value::Object(spec.clone()).to_string();
        Self {
            name: name.to_owned(),
            matching: fields::object(spec, "matchConstraints").map(MatchResources::of),
            params,
            conditions: Conditions::of(spec, environment.declarations()),
            variables,
            fails_closed: fields::text(spec, &["failurePolicy"]) != "Ignore",
            sees_managers: text.contains("managedFields"),
            sees_request: text.contains("request"),
            sees_namespace: text.contains("namespaceObject"),
            body: B::of(spec, &environment),
        }
    }
}

impl Body for Validations {
    fn of(spec: &ObjectMap, environment: &Admission) -> Self {
        let unauthorized = environment.unauthorized();
        let validation = |validation: &ObjectMap| {
            let text = |field| fields::text(validation, &[field]);
            let message = Some(text("messageExpression")).filter(|text| !text.trim().is_empty());
            let reason = Some(text("reason")).filter(|text| !text.is_empty());
            Validation {
                expression: Expression::compile(text("expression"), environment.declarations()),
                message: text("message").to_owned(),
                message_expression: message
                    .map(|text| Expression::compile(text, unauthorized.declarations())),
                reason: reason.unwrap_or("Invalid").to_owned(),
            }
        };
        let annotation = |annotation: &ObjectMap| {
            let text = |field| fields::text(annotation, &[field]);
            let expression = Expression::compile(text("valueExpression"), environment.declarations());
            (text("key").to_owned(), expression)
        };
        Self {
            list: objects(spec, "validations").map(validation).collect(),
            annotations: objects(spec, "auditAnnotations").map(annotation).collect(),
        }
    }
}

impl Body for Mutations {
    fn of(spec: &ObjectMap, environment: &Admission) -> Self {
        let environment = environment.patching();
        let mutation = |mutation: &ObjectMap| {
            let (patch, member) = match fields::text(mutation, &["patchType"]) {
                "JSONPatch" => (PatchType::JsonPatch, "jsonPatch"),
                _ => (PatchType::ApplyConfiguration, "applyConfiguration"),
            };
            let text = fields::text(mutation, &[member, "expression"]);
            Mutation { patch, expression: Expression::compile(text, environment.declarations()) }
        };
        Self {
            list: objects(spec, "mutations").map(mutation).collect(),
            is_reinvoked: fields::text(spec, &["reinvocationPolicy"]) == "IfNeeded",
        }
    }
}

impl Binding {
    fn of(name: &str, spec: &ObjectMap) -> Self {
        let actions = fields::items(spec, &["validationActions"]).iter().filter_map(|action| {
            Some(match action.as_str()? {
                "Deny" => Action::Deny,
                "Warn" => Action::Warn,
                "Audit" => Action::Audit,
                _ => return None,
            })
        });
        Self {
            name: name.to_owned(),
            policy: fields::text(spec, &["policyName"]).to_owned(),
            params: fields::object(spec, "paramRef").map(ParamRef::of),
            matching: fields::object(spec, "matchResources").map(MatchResources::of),
            actions: actions.collect(),
        }
    }
}

impl ParamRef {
    fn of(reference: &ObjectMap) -> Self {
        let text = |field| fields::text(reference, &[field]);
        Self {
            namespace: text("namespace").to_owned(),
            which: match text("name") {
                "" => Which::Selected(LabelSelector::of_object(reference.get("selector"))),
                name => Which::Name(name.to_owned()),
            },
            denies_missing: text("parameterNotFoundAction") == "Deny",
        }
    }
}

fn objects<'a>(spec: &'a ObjectMap, list: &str) -> impl Iterator<Item = &'a ObjectMap> {
    fields::items(spec, &[list]).iter().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn a_policy_is_about_the_resources_that_its_rules_name() {
        let bound = |(name, resources): (&str, Value)| {
            let spec = json!({"matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                "operations": ["*"], "resources": resources}]}});
            let policy = Policy::<Validations>::of(name, spec.as_object().expect("an object"));
            Bound { policy: Arc::new(policy), bindings: Vec::new() }
        };
        let policies = [
            ("a", json!(["secrets", "pods/status", "secrets/*"])),
            ("b", json!(["*/scale"])),
            ("c", json!(["configmaps"])),
            ("d", json!(["secrets"])),
            ("e", json!(["configmaps", "*"])),
        ];
        let policies = in_order(policies.into_iter().map(bound).collect());
        let about = |plural: &str| -> String {
            policies.about(plural).map(|(_, bound)| &*bound.policy.name).collect()
        };
        assert_eq!(["secrets", "configmaps", "pods", "nodes"].map(about), ["abde", "bce", "abe", "be"]);
    }
}
