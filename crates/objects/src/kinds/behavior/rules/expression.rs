//! Variables and results of CEL expressions in policies and webhooks, and in selectors of devices.

mod device;

use std::sync::LazyLock;

use crate::expression::{Decl, Environment, Type};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;

pub use device::{DeviceProblem, problem as device_problem};

/// The type that an expression may evaluate to.
#[derive(Clone, Copy)]
pub enum Purpose {
    Truth,
    Message,
    Annotation,
    JsonPatch,
    Configuration,
    /// Any type.
    Variable,
}

/// Structs that admission speaks of, and their fields (`apiserver/pkg/admission/plugin/cel/compile.go`).
const STRUCTS: [(&str, &[(&str, &str)]); 9] = [
    ("kubernetes.GroupVersionKind", &[("group", "string"), ("version", "string"), ("kind", "string")]),
    (
        "kubernetes.GroupVersionResource",
        &[("group", "string"), ("version", "string"), ("resource", "string")],
    ),
    (
        "kubernetes.UserInfo",
        &[
            ("username", "string"),
            ("uid", "string"),
            ("groups", "list(string)"),
            ("extra", "map(string, list(string))"),
        ],
    ),
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", "kubernetes.GroupVersionKind"),
            ("resource", "kubernetes.GroupVersionResource"),
            ("subResource", "string"),
            ("requestKind", "kubernetes.GroupVersionKind"),
            ("requestResource", "kubernetes.GroupVersionResource"),
            ("requestSubResource", "string"),
            ("name", "string"),
            ("namespace", "string"),
            ("operation", "string"),
            ("userInfo", "kubernetes.UserInfo"),
            ("dryRun", "bool"),
            ("options", "dyn"),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", "list(string)")]),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", "string"),
            ("type", "string"),
            ("lastTransitionTime", "google.protobuf.Timestamp"),
            ("message", "string"),
            ("reason", "string"),
        ],
    ),
    (
        "kubernetes.NamespaceStatus",
        &[("conditions", "list(kubernetes.NamespaceCondition)"), ("phase", "string")],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", "string"),
            ("generateName", "string"),
            ("namespace", "string"),
            ("labels", "map(string, string)"),
            ("annotations", "map(string, string)"),
            ("UID", "string"),
            ("creationTimestamp", "google.protobuf.Timestamp"),
            ("deletionGracePeriodSeconds", "int"),
            ("deletionTimestamp", "google.protobuf.Timestamp"),
            ("generation", "int"),
            ("resourceVersion", "string"),
            ("finalizers", "list(string)"),
        ],
    ),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", "kubernetes.NamespaceMetadata"),
            ("spec", "kubernetes.NamespaceSpec"),
            ("status", "kubernetes.NamespaceStatus"),
        ],
    ),
];

const VARIABLES: &str = "kubernetes.variables";

/// The environment of the expressions of a policy or a webhook.
pub struct Admission {
    environment: Environment,
}

impl Admission {
    /// `params` tells whether a kind of parameters is named.
    pub fn new(params: bool) -> Self {
        static KNOWN: LazyLock<[Environment; 2]> =
            LazyLock::new(|| [false, true].map(Admission::environment));
        Self { environment: KNOWN[usize::from(params)].clone() }
    }

    /// The environment with these types for objects and, if a kind of them is named, for params. As in upstream's check of
    /// types, there is no `authorizer.requestResource`.
    pub fn typed(object: &Decl, params: Option<Option<&Decl>>) -> Self {
        let mut environment = Self::new(params.is_some()).environment.of_stored();
        environment = environment.without("authorizer.requestResource");
        for name in ["object", "oldObject"] {
            environment = environment.with_variable(name, object.cel_type().unwrap_or(Type::Dyn));
        }
        environment = object.declare(environment);
        if let Some(Some(params)) = params {
            environment = environment.with_variable("params", params.cel_type().unwrap_or(Type::Dyn));
            environment = params.declare(environment);
        }
        Self { environment }
    }

    fn environment(params: bool) -> Environment {
        let mut environment = declared(Environment::default(), &STRUCTS);
        let mut variables = vec![
            ("object", "dyn"),
            ("oldObject", "dyn"),
            ("namespaceObject", "kubernetes.Namespace"),
            ("request", "kubernetes.AdmissionRequest"),
            ("authorizer", "kubernetes.authorization.Authorizer"),
            ("authorizer.requestResource", "kubernetes.authorization.ResourceCheck"),
        ];
        if params {
            variables.push(("params", "dyn"));
        }
        for (name, is) in variables {
            environment = environment.with_variable(name, Type::parse(is));
        }
        environment
    }

    /// The variables and types that expressions may use.
    pub fn declarations(&self) -> &Environment {
        &self.environment
    }

    /// The same with variables that are declared one after the other.
    pub fn composed(mut self) -> Self {
        let none = std::iter::empty();
        let environment = std::mem::take(&mut self.environment).with_struct(VARIABLES, none);
        self.environment = environment.with_variable("variables", Type::Struct(VARIABLES.into()));
        self
    }

    /// The same with the types that patches are made of.
    pub fn patching(&self) -> Self {
        Self { environment: self.environment.clone().with_patches() }
    }

    /// The same without `authorizer`: there is nobody to ask.
    pub fn unauthorized(&self) -> Self {
        let environment = self.environment.clone().without("authorizer");
        Self { environment: environment.without("authorizer.requestResource") }
    }

    /// The error of an expression.
    pub fn problem(&self, text: &str, purpose: Purpose, errors: &mut Errors) -> Option<String> {
        self.check(text, purpose, errors).err()
    }

    /// An expression that was not looked at has no error.
    fn check(&self, text: &str, purpose: Purpose, errors: &mut Errors) -> Result<Type, String> {
        let Some(checked) = errors.check(text, &self.environment) else { return Ok(Type::Dyn) };
        let result = checked?.result;
        let wanted: &[&str] = match purpose {
            Purpose::Truth => &["bool"],
            Purpose::Message => &["string"],
            Purpose::Annotation => &["string", "null_type"],
            Purpose::JsonPatch => &["list(JSONPatch)"],
            Purpose::Configuration => &["Object"],
            Purpose::Variable => return Ok(result),
        };
        let is = result.to_string();
        match wanted {
            wanted if wanted.contains(&&*is) => Ok(result),
            [wanted] => Err(format!("must evaluate to {wanted} but got {is}")),
            several => Err(format!("must evaluate to one of [{}] but got {is}", several.join(" "))),
        }
    }

    /// Tells what is wrong with the expression that stands there, if one does.
    pub fn validate(&self, at: &At<'_, '_>, purpose: Purpose, errors: &mut Errors) {
        self.validate_text(at, at.text(), purpose, errors);
    }

    /// The variant of [`Self::validate`] that ignores the blanks around the expression.
    pub fn validate_trimmed(&self, at: &At<'_, '_>, purpose: Purpose, errors: &mut Errors) {
        self.validate_text(at, at.text().trim(), purpose, errors);
    }

    fn validate_text(&self, at: &At<'_, '_>, text: &str, purpose: Purpose, errors: &mut Errors) {
        if text.trim().is_empty() {
            return;
        }
        if let Some(why) = self.problem(text, purpose, errors) {
            errors.invalid(at, text, &why);
        }
    }

    /// Declares a variable, which later expressions may use whether it is right or not.
    pub fn declare(&mut self, name: &str, at: &At<'_, '_>, errors: &mut Errors) {
        if at.text().trim().is_empty() {
            return;
        }
        let is = match self.check(at.text(), Purpose::Variable, errors) {
            Ok(is) => as_declared(&is),
            Err(why) => {
                errors.invalid(at, at.text(), &why);
                Type::Dyn
            }
        };
        self.environment.add_field(VARIABLES, name, is);
    }

    /// Declares a variable of this type; of any, if it has none.
    pub fn declare_type(&mut self, name: &str, is: Option<&Type>) {
        self.environment.add_field(VARIABLES, name, is.map_or(Type::Dyn, as_declared));
    }
}

/// The type that upstream's declarations keep: dynamic for what is neither plain nor a list or a map.
fn as_declared(is: &Type) -> Type {
    use crate::expression::Generic;
    match is {
        Type::Struct(_) | Type::Error | Type::Param(_) => Type::Dyn,
        Type::Applied(of) => match (&of.of, &of.to[..]) {
            (Generic::List, [items]) => Type::list(as_declared(items)),
            (Generic::Map, [keys, values]) => Type::map(as_declared(keys), as_declared(values)),
            _ => Type::Dyn,
        },
        plain => plain.clone(),
    }
}

fn declared(environment: Environment, structs: &[(&str, &[(&str, &str)])]) -> Environment {
    structs.iter().fold(environment, |environment, (name, fields)| {
        environment.with_struct(name, fields.iter().map(|(name, is)| ((*name).to_owned(), Type::parse(is))))
    })
}
