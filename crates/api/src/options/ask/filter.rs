//! `rowplane.filter`: an expression of CEL over each object, typed by the schema of its kind.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rowplane_cel::decl::Kind as DeclKind;
use rowplane_cel::rules::CALL_LIMIT;

use super::seen::{Seen, Wanted};
use crate::codec::object::Object;
use crate::expression::declared::{Quantities, of_kind};
use crate::expression::value::{Error as CelError, Value as CelValue, view_object};
use crate::expression::{Budget, Decl, Environment, Program, Refusal, Type, Variables, check, program};
use crate::schema::kind::Kind;
use crate::tree::{Map, Text};

/// The variable that is the object.
const OBJECT: &str = "object";

/// An expression that says of each object whether it is selected.
#[derive(Debug)]
pub struct Filter {
    program: Program,
    decl: Decl,
    /// The members that the expression looks at.
    wanted: Wanted,
    failures: AtomicU64,
    /// The first object of which it says nothing, and why.
    first: OnceLock<String>,
}

struct Named<'a> {
    object: &'a Map,
    decl: &'a Decl,
}

impl<'a> Variables<'a> for Named<'a> {
    fn get(&self, name: &str) -> Option<Result<CelValue<'a>, CelError>> {
        (name == OBJECT).then(|| view_object(self.object, self.decl))
    }
}

impl Filter {
    /// Reads an expression; the error says what is wrong with it.
    pub fn compile(text: &str, kind: &Kind) -> Result<Self, String> {
        let unknown = || format!("nothing is known of the members of {}", kind.gvk.kind);
        let decl = of_kind(kind, Quantities::Dynamic).ok_or_else(unknown)?;
        let of = decl.cel_type().ok_or_else(unknown)?;
        let environment = decl.declare(Environment::default().with_variable(OBJECT, of));
        let checked = check(text, &environment).map_err(|refusal| match refusal {
            Refusal::Wrong(why) => why,
            Refusal::NoStack => "the expression is too deep for the threads that there are now".to_owned(),
        })?;
        if checked.result != Type::Bool {
            return Err("the expression must evaluate to a bool".to_owned());
        }
        let wanted = match checked.paths(OBJECT) {
            None => Wanted::everything(),
            Some(paths) => {
                let mut wanted = Wanted::default();
                paths.iter().for_each(|path| wanted.add(&members(path, &decl)));
                wanted
            }
        };
        let program = program(&checked, &environment)?;
        Ok(Self { program, decl, wanted, failures: AtomicU64::new(0), first: OnceLock::new() })
    }

    /// Whether the expression is true of an object. One of which it has no value is not selected, and counted.
    pub fn holds(&self, object: &Object, seen: &Seen<'_>) -> bool {
        let Some(members) = seen.members(&self.wanted) else {
            return self.failed(object, "it cannot be parsed");
        };
        let variables = Named { object: &members, decl: &self.decl };
        match self.program.evaluate(&variables, &mut Budget::of(CALL_LIMIT)) {
            Ok(value) => value.as_bool() == Some(true),
            Err(fault) => self.failed(object, fault.message()),
        }
    }

    fn failed(&self, object: &Object, why: &str) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.first.get_or_init(|| {
            let (namespace, name) = (object.namespace(), object.name());
            let slash = if namespace.is_empty() { "" } else { "/" };
            format!("{namespace}{slash}{name}: {why}")
        });
        false
    }

    /// A warning about the objects of which the expression had no value.
    pub fn warning(&self) -> Option<String> {
        let failures = self.failures.load(Ordering::Relaxed);
        let objects = if failures == 1 { "object" } else { "objects" };
        let first = self.first.get()?;
        Some(format!(
            "rowplane.filter has no value for {failures} {objects}, which are left out; the first is {first}"
        ))
    }
}

/// The names that objects have for members that an expression spells so, as far as they are known.
fn members(path: &[Text], decl: &Decl) -> Vec<Text> {
    let (mut at, mut names) = (decl, Vec::with_capacity(path.len()));
    for spelled in path {
        let DeclKind::Object(object) = &at.kind else { break };
        let Some(field) = object.field(spelled, 0).or_else(|| object.named(spelled)) else { break };
        names.push(field.name.clone());
        at = &field.decl;
    }
    names
}
