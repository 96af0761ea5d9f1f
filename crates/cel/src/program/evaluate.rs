//! Goes through a plan. An error is a value that goes up until `&&`, `||` or a loop takes it; what an error goes past is
//! paid for as upstream does. A budget that is gone ends all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::apply::apply;
use super::budget::{Budget, Fault};
use super::{Base, Node, NodeId, Program, Slot};
use crate::library::table::Cost;
use crate::value::{Error, List, Map, Text, Value};
use crate::{arithmetic, deep};

pub(super) type EvalResult<'a> = Result<Value<'a>, Fault>;

/// The source of variables; each variable is asked for at most once in an evaluation.
pub trait Variables<'a>: Sync {
    /// `None` for a variable that is not there.
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

/// A variable of a loop.
#[derive(Clone, Debug)]
pub(super) enum Local<'a> {
    Empty,
    /// Evaluated when it is first looked at.
    Lazy(NodeId),
    Ready(Result<Value<'a>, Error>),
}

pub(super) struct Frame<'a, 'e> {
    pub(super) values: Values<'a>,
    pub(super) budget: Budget<'e>,
}

/// The values that a program refers to: its variables, and those of its loops.
pub(super) struct Values<'a> {
    pub(super) program: &'a Program,
    variables: Vec<Option<Result<Value<'a>, Error>>>,
    pub(super) locals: Vec<Local<'a>>,
}

impl<'a> Values<'a> {
    /// The value of a variable where it is; `None` if it is still to be made, or an error.
    pub(super) fn held(&self, base: &Base) -> Option<&Value<'a>> {
        let known = match base {
            Base::Local(slot) => match &self.locals[*slot as usize] {
                Local::Ready(known) => known,
                Local::Empty | Local::Lazy(_) => return None,
            },
            Base::Variable(number) => self.variables[*number as usize].as_ref()?,
            Base::Node(_) | Base::Conditional { .. } => return None,
        };
        known.as_ref().ok()
    }
}

/// The plan is not much deeper than the tree, of which each level takes some hundreds of bytes of stack.
const SHALLOW: u16 = 64;

impl Program {
    /// The value, or why there is none; what it cost is in the budget either way.
    pub fn evaluate<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        budget: &mut Budget<'_>,
    ) -> Result<Value<'a>, Fault> {
        let copy = Budget { ..*budget };
        let (outcome, spent, patterns) = if self.depth <= SHALLOW {
            self.run(variables, copy)
        } else {
            let before = (Err(Fault::Interrupted), budget.spent, budget.patterns);
            deep::run(|| self.run(variables, copy)).unwrap_or(before)
        };
        (budget.spent, budget.patterns) = (spent, patterns);
        outcome
    }

    fn run<'a>(&'a self, variables: &dyn Variables<'a>, budget: Budget<'_>) -> (EvalResult<'a>, u64, usize) {
        let variables = self.variables.iter().map(|name| variables.get(name)).collect();
        let locals = vec![Local::Empty; self.slots];
        let mut frame = Frame { values: Values { program: self, variables, locals }, budget };
        let outcome = frame.node(self.root);
        (outcome, frame.budget.spent, frame.budget.patterns)
    }
}

/// The value of a part of a call, or an error that does not end the evaluation.
pub(super) type Part<'a> = Result<Value<'a>, Error>;

/// An error becomes a value; what ends the evaluation goes on.
pub(super) fn settled(outcome: EvalResult<'_>) -> Result<Part<'_>, Fault> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Error(error)) => Ok(Err(error)),
        Err(end) => Err(end),
    }
}

impl<'a> Frame<'a, '_> {
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.budget.spend(cost)
    }

    pub(super) fn check_interrupt(&self) -> Result<(), Fault> {
        let is_over = self.budget.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed));
        if is_over { Err(Fault::Interrupted) } else { Ok(()) }
    }

    /// An error becomes a value.
    pub(super) fn part(&mut self, node: NodeId) -> Result<Part<'a>, Fault> {
        settled(self.node(node))
    }

    /// The value of a node. This function recurses, so that whatever takes much stack is in functions of its own.
    pub(super) fn node(&mut self, id: NodeId) -> EvalResult<'a> {
        let program = self.values.program;
        match &program.nodes[id as usize] {
            Node::Constant(value) => Ok(borrowed(value)),
            Node::Attribute(attribute) => self.observed(attribute),
            Node::Test(_)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::NotFalse(_)
            | Node::Member { .. }
            | Node::Matches { .. } => self.truth(id)?.into_outcome(),
            Node::Negate(operand) => {
                let value = self.part(*operand)?;
                self.spend(1)?;
                Ok(arithmetic::negate(&value?)?)
            }
            Node::Binary { operator, left, right, cost } => {
                Ok(self.operands(*left, *right, *cost, |left, right| apply(*operator, left, right))??)
            }
            Node::Append { to, element } => self.append(*to, *element),
            Node::Call(call) => self.call(call),
            Node::OptionalOr { left, right, value } => self.optional_or(*left, *right, *value),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map { entries } => self.map(entries),
            Node::Struct { name, fields } => self.structure(name, fields),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// The result of an operator on two operands.
    pub(super) fn operands<R>(
        &mut self,
        left: NodeId,
        right: NodeId,
        cost: Cost,
        apply: impl FnOnce(&Value<'a>, &Value<'a>) -> Result<R, Error>,
    ) -> Result<Result<R, Error>, Fault> {
        match (self.part(left)?, self.part(right)?) {
            (Ok(left), Ok(right)) => {
                self.spend(cost.of_two(&left, &right))?;
                Ok(apply(&left, &right))
            }
            (left, right) => {
                let size = |of: &Part<'_>| of.as_ref().map_or(1, Value::inner_size);
                self.spend(cost.of_sizes(|| size(&left), || size(&right)))?;
                Ok(Err(left.err().or(right.err()).unwrap_or_else(Error::no_such_overload)))
            }
        }
    }

    pub(super) fn variable(&self, number: u32) -> Part<'a> {
        match &self.values.variables[number as usize] {
            Some(value) => value.clone(),
            None => {
                let name = &self.values.program.variables[number as usize];
                Err(Error::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    pub(super) fn is_constant(&self, node: NodeId) -> bool {
        matches!(self.values.program.nodes[node as usize], Node::Constant(_))
    }

    /// Adds an element to the list of a loop, which nobody else holds.
    #[inline(never)]
    fn append(&mut self, to: Slot, element: NodeId) -> EvalResult<'a> {
        self.spend(1)?;
        let before = self.local(to)?;
        // A list of a constant is a constant.
        let is_constant = self.is_constant(element);
        let element = self.part(element)?;
        self.spend(if is_constant { 1 } else { 11 })?;
        let list = before?;
        let element = element?;
        // Empties the variable, so that `items` is the only reference to the list, which then grows without a copy.
        self.values.locals[to as usize] = Local::Empty;
        let Value::List(list) = list else { return Err(Error::no_such_overload().into()) };
        let mut items = match list {
            List::Owned(items) => items,
            other => Arc::new(other.to_vec()?),
        };
        Arc::make_mut(&mut items).push(element);
        Ok(Value::List(List::Owned(items)))
    }

    fn optional_or(&mut self, left: NodeId, right: NodeId, value: bool) -> EvalResult<'a> {
        match self.node(left)? {
            Value::Optional(Some(inner)) if value => Ok((*inner).clone()),
            Value::Optional(None) => self.node(right),
            some @ Value::Optional(_) => Ok(some),
            _ => Err(Error::no_such_overload().into()),
        }
    }
}

/// A constant, of which nothing is copied.
fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(Text::Borrowed(text)),
        Value::List(List::Owned(items)) => Value::List(List::Constant(items)),
        Value::Map(Map::Owned(entries)) => Value::Map(Map::Constant(entries)),
        other => other.clone(),
    }
}
