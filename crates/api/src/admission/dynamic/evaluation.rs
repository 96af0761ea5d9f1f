//! Evaluates the expressions of webhooks and policies (`pkg/admission/plugin/cel`).

use std::sync::Arc;

use super::authorize::Asked;
use crate::ObjectMap;
use crate::expression::value::{Entries, Error as CelError, Key, Map as MapValue, Text, Value as CelValue};
use crate::expression::{
    Authorization, Budget, Checked, Environment, Fault, Program, Refusal, Type, Variables, check, program,
};
use crate::gotext::quote;

/// The cost limit of one expression or one variable.
const MOST_OF_ONE: u64 = 1_000_000;
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression that can be evaluated, or why it cannot.
#[derive(Debug)]
pub struct Expression {
    pub text: String,
    program: Result<Program, String>,
}

impl Expression {
    pub fn compile(text: &str, environment: &Environment) -> Self {
        Self::checked(text, environment).0
    }

    /// Compiles an expression, and tells the type of its value, if it has one.
    pub fn checked(text: &str, environment: &Environment) -> (Self, Option<Type>) {
        let checked = check(text, environment).map_err(|refusal| match refusal {
            Refusal::Wrong(why) => why,
            Refusal::NoStack => "the expression is too deep to be compiled now".to_owned(),
        });
        let is = checked.as_ref().ok().map(|Checked { result, .. }| result.clone());
        let program = checked.and_then(|checked| program(&checked, environment));
        (Self { text: text.to_owned(), program }, is)
    }
}

/// A variable of a policy, which may use those before it.
#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub expression: Expression,
}

/// The values that expressions can refer to.
#[derive(Clone, Copy, Default)]
pub struct Seen<'a> {
    pub object: Option<&'a ObjectMap>,
    pub old: Option<&'a ObjectMap>,
    pub request: Option<&'a ObjectMap>,
    pub namespace: Option<&'a ObjectMap>,
    pub params: Option<&'a ObjectMap>,
    /// `None` where nobody may be asked.
    pub asked: Option<&'a Arc<Asked>>,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error in the expression, with the expression in its text.
    Error(String),
    /// All expressions together have cost too much; no more of them are evaluated.
    OutOfBudget,
}

impl Failure {
    pub fn message(&self) -> &str {
        match self {
            Self::Error(why) => why,
            Self::OutOfBudget => OUT_OF_BUDGET,
        }
    }
}

/// The evaluation of one list of expressions. A variable is evaluated when it is used first, and then kept.
pub struct Run<'a> {
    seen: Seen<'a>,
    variables: &'a [Variable],
    /// The values of the variables that have been evaluated.
    known: Arc<Entries<'a>>,
    /// Why variables that have been evaluated have no value.
    failed: Vec<Option<String>>,
    /// The cost budget that is left for all further expressions.
    pub left: u64,
}

/// The outcome of one try to evaluate an expression.
enum Attempt<'a> {
    Done(Result<CelValue<'a>, String>, u64),
    /// It needs this variable first.
    Needs(usize),
}

impl<'a> Run<'a> {
    pub fn new(seen: Seen<'a>, variables: &'a [Variable], budget: u64) -> Self {
        let failed = vec![None; variables.len()];
        Self { seen, variables, known: Arc::default(), failed, left: budget }
    }

    pub fn evaluate(&mut self, expression: &'a Expression) -> Result<CelValue<'a>, Failure> {
        loop {
            match self.attempt(expression) {
                Attempt::Needs(variable) => self.determine(variable)?,
                Attempt::Done(value, cost) => {
                    self.spend(cost)?;
                    return value.map_err(|why| {
                        Failure::Error(format!("expression '{}' resulted in error: {why}", expression.text))
                    });
                }
            }
        }
    }

    /// Evaluates a variable, and before it those that it needs.
    fn determine(&mut self, variable: usize) -> Result<(), Failure> {
        let mut waiting = vec![variable];
        while let Some(at) = waiting.last().copied() {
            let Variable { name, expression } = &self.variables[at];
            match self.attempt(expression) {
                Attempt::Needs(other) if !waiting.contains(&other) => waiting.push(other),
                Attempt::Needs(_) => {
                    self.fail(at, "it needs itself");
                    waiting.pop();
                }
                Attempt::Done(value, cost) => {
                    self.spend(cost)?;
                    match value {
                        Ok(value) => {
                            let key = Key::String(Text::Borrowed(name));
                            Arc::make_mut(&mut self.known).put(key, value);
                        }
                        Err(why) => self.fail(at, &why),
                    }
                    waiting.pop();
                }
            }
        }
        Ok(())
    }

    fn fail(&mut self, variable: usize, why: &str) {
        let name = quote(&self.variables[variable].name);
        self.failed[variable] = Some(format!("composited variable {name} fails to evaluate: {why}"));
    }

    fn attempt(&self, expression: &'a Expression) -> Attempt<'a> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => return Attempt::Done(Err(why.clone()), 0),
        };
        let mut budget = Budget::of(MOST_OF_ONE);
        let names = Names { seen: self.seen, variables: &self.known };
        let value = program.evaluate(&names, &mut budget);
        let value = match value {
            Ok(value) => Ok(value),
            Err(Fault::Error(error)) => match self.missing(error.message()) {
                Some(variable) => match &self.failed[variable] {
                    None => return Attempt::Needs(variable),
                    Some(why) => Err(why.clone()),
                },
                None => Err(error.message().to_owned()),
            },
            Err(fault) => Err(fault.message().to_owned()),
        };
        Attempt::Done(value, budget.spent)
    }

    /// The variable that an error is about, which has no value so far.
    fn missing(&self, error: &str) -> Option<usize> {
        let name = error.strip_prefix("no such key: ")?;
        let variable = self.variables.iter().position(|variable| variable.name == name)?;
        self.known.find(&Key::String(Text::Borrowed(name))).is_none().then_some(variable)
    }

    fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        self.left = self.left.checked_sub(cost).ok_or(Failure::OutOfBudget)?;
        Ok(())
    }
}

struct Names<'r, 'a> {
    seen: Seen<'a>,
    variables: &'r Arc<Entries<'a>>,
}

impl<'a> Variables<'a> for Names<'_, 'a> {
    fn get(&self, name: &str) -> Option<Result<CelValue<'a>, CelError>> {
        let map = |map: Option<&'a ObjectMap>| {
            Ok(map.map_or(CelValue::Null, |map| CelValue::Map(MapValue::Dyn(map))))
        };
        Some(match name {
            "object" => map(self.seen.object),
            "oldObject" => map(self.seen.old),
            "request" => map(self.seen.request),
            "namespaceObject" => map(self.seen.namespace),
            "params" => map(self.seen.params),
            "authorizer" => Ok(Authorization::value(self.seen.asked?.clone(), None)),
            "authorizer.requestResource" => {
                let asked = self.seen.asked?;
                Ok(Authorization::value(asked.clone(), Some(asked.own.clone())))
            }
            "variables" => Ok(CelValue::Map(MapValue::Owned(self.variables.clone()))),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
