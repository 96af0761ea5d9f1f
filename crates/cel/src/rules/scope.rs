//! The scope of the rules at one place of a schema: the environments in which their expressions are assessed and compiled.

use std::sync::Arc;

use rowplane_values::regexp::Room;
use rowplane_values::tree::Value;

use super::{flag, text};
use crate::check::Checked;
use crate::decl::Decl;
use crate::deep;
use crate::environment::Environment;
use crate::estimate::worst_cost;
use crate::program::Program;
use crate::types::Type;
use crate::{Refusal, check, program};

const SELF: &str = "self";
const OLD_SELF: &str = "oldSelf";
/// Upstream makes a new name each time.
pub const NAME: &str = "selfType";

/// The environments of the rules at a place.
#[derive(Debug)]
pub struct RuleScope {
    decl: Decl,
    plain: Environment,
    /// For rules to whom there may be no old value.
    optional: Environment,
}

/// Whether an expression is a new one, or stands in the stored definition already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expression {
    New,
    Stored,
}

/// The findings about a rule before it is evaluated for any value.
#[derive(Debug, PartialEq, Eq)]
pub struct Assessment {
    /// The worst-case cost of the rule, or its error.
    pub rule: Result<u64, String>,
    /// The same for the expression of its message; `None` if there is none, or if the rule is wrong.
    pub message: Option<Result<u64, String>>,
    pub uses_old: bool,
}

/// The system has no thread with a stack that is deep enough for an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoStack;

/// An expression that fits, and the plan for it.
struct Compiled {
    checked: Checked,
    program: Program,
}

enum Unfit {
    Wrong { why: String, uses_old: bool },
    NoStack,
}

/// A rule as it runs.
#[derive(Debug)]
pub struct RuleProgram {
    pub rule: Result<Program, String>,
    pub message: Option<Program>,
    pub uses_old: bool,
    /// Whether it was for want of a thread that something was not compiled.
    pub no_stack: bool,
}

impl RuleScope {
    /// For values of this declaration; `None` if expressions cannot speak of them.
    pub fn new(decl: &Decl) -> Option<Self> {
        let decl = decl.named(NAME);
        let of = decl.cel_type()?;
        let environment = decl.declare(Environment::default().with_variable(SELF, of.clone()));
        let plain = environment.clone().with_variable(OLD_SELF, of.clone());
        let optional = environment.with_variable(OLD_SELF, Type::optional(of));
        Some(Self { decl, plain, optional })
    }

    /// Lets the patterns of its rules share a room with those of others.
    pub(super) fn with_room(self, room: &Arc<Room>) -> Self {
        let Self { decl, plain, optional } = self;
        Self { decl, plain: plain.with_room(room), optional: optional.with_room(room) }
    }

    /// Looks at a rule as definitions are looked at when they are written.
    pub fn assess(
        &self,
        rule: &Value,
        known: Expression,
        known_message: Expression,
    ) -> Result<Assessment, NoStack> {
        let compiled = match self.rule(rule, known) {
            Err(Unfit::NoStack) => return Err(NoStack),
            Err(Unfit::Wrong { why, uses_old }) => {
                return Ok(Assessment { rule: Err(why), message: None, uses_old });
            }
            Ok(compiled) => compiled,
        };
        let message = match self.message(rule, known_message) {
            None => None,
            Some(Err(Unfit::NoStack)) => return Err(NoStack),
            Some(Err(Unfit::Wrong { why, .. })) => Some(Err(why)),
            Some(Ok(message)) => Some(Ok(self.cost(&message.checked)?)),
        };
        let uses_old = compiled.checked.uses.contains(OLD_SELF);
        Ok(Assessment { rule: Ok(self.cost(&compiled.checked)?), message, uses_old })
    }

    /// Compiles a rule of a stored definition.
    pub fn compile(&self, rule: &Value) -> RuleProgram {
        let (uses_old, compiled) = match self.rule(rule, Expression::Stored) {
            Err(Unfit::NoStack) => {
                let why = "there is no stack for a rule so deep".to_owned();
                return RuleProgram { rule: Err(why), message: None, uses_old: false, no_stack: true };
            }
            Err(Unfit::Wrong { why, uses_old }) => (uses_old, Err(why)),
            Ok(compiled) => (compiled.checked.uses.contains(OLD_SELF), Ok(compiled.program)),
        };
        let message = compiled.is_ok().then(|| self.message(rule, Expression::Stored)).flatten();
        let no_stack = matches!(message, Some(Err(Unfit::NoStack)));
        let message = message.and_then(Result::ok).map(|message| message.program);
        RuleProgram { rule: compiled, message, uses_old, no_stack }
    }

    fn rule(&self, rule: &Value, known: Expression) -> Result<Compiled, Unfit> {
        let environment = self.environment(rule, known);
        let compiled = compile(text(rule, "rule"), &environment)?;
        if compiled.0.result != Type::Bool {
            return Err(Unfit::wrong("cel expression must evaluate to a bool"));
        }
        compiled.planned(&environment)
    }

    fn message(&self, rule: &Value, known: Expression) -> Option<Result<Compiled, Unfit>> {
        let message = Some(text(rule, "messageExpression")).filter(|message| !message.is_empty())?;
        let environment = self.environment(rule, known);
        let compiled = compile(message, &environment).and_then(|checked| match checked.0.result {
            Type::String => checked.planned(&environment),
            _ => Err(Unfit::wrong("must evaluate to a string")),
        });
        Some(compiled.map_err(|unfit| match unfit {
            Unfit::Wrong { why, uses_old } => {
                // `program instantiation failed` is said without its first word here.
                let why = why.strip_prefix("program ").unwrap_or(&why);
                Unfit::Wrong { why: format!("messageExpression {why}"), uses_old }
            }
            Unfit::NoStack => Unfit::NoStack,
        }))
    }

    fn environment(&self, rule: &Value, known: Expression) -> Environment {
        let environment = if flag(rule, "optionalOldSelf") { &self.optional } else { &self.plain };
        match known {
            Expression::New => environment.clone(),
            Expression::Stored => environment.clone().of_stored(),
        }
    }

    fn cost(&self, checked: &Checked) -> Result<u64, NoStack> {
        match checked.is_deep() {
            false => Ok(worst_cost(checked, &self.decl)),
            true => deep::run(|| worst_cost(checked, &self.decl)).ok_or(NoStack),
        }
    }
}

/// An expression that fits.
struct Fitting(Checked);

fn compile(expression: &str, environment: &Environment) -> Result<Fitting, Unfit> {
    match check(expression, environment) {
        Ok(checked) => Ok(Fitting(checked)),
        Err(Refusal::NoStack) => Err(Unfit::NoStack),
        Err(Refusal::Wrong(why)) => Err(Unfit::wrong(format!("compilation failed: {why}"))),
    }
}

impl Fitting {
    fn planned(self, environment: &Environment) -> Result<Compiled, Unfit> {
        let Self(checked) = self;
        let planned = match checked.is_deep() {
            false => program(&checked, environment),
            true => deep::run(|| program(&checked, environment)).ok_or(Unfit::NoStack)?,
        };
        match planned {
            Ok(program) => Ok(Compiled { checked, program }),
            Err(why) => {
                let why = format!("program instantiation failed: {why}");
                Err(Unfit::Wrong { why, uses_old: checked.uses.contains(OLD_SELF) })
            }
        }
    }
}

impl Unfit {
    fn wrong(why: impl Into<String>) -> Self {
        Self::Wrong { why: why.into(), uses_old: false }
    }
}
