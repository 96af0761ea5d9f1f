//! Conditions: expressions of which only the truth is wanted, so that no value is made of the result.

use super::apply::{compare, is_member};
use super::budget::Fault;
use super::evaluate::{EvalResult, Frame};
use super::{FoldShape, Node, NodeId};
use crate::value::{Error, Value};

/// The result of a condition.
pub(super) enum Truth {
    Is(bool),
    /// A value of another type.
    Odd,
    Error(Error),
}

impl Truth {
    /// The value of an operator, which is never [`Truth::Odd`].
    pub(super) fn into_outcome<'a>(self) -> EvalResult<'a> {
        match self {
            Self::Is(is) => Ok(Value::Bool(is)),
            Self::Odd => Err(Error::no_such_overload().into()),
            Self::Error(error) => Err(error.into()),
        }
    }

    fn of(result: Result<bool, Error>) -> Self {
        result.map_or_else(Self::Error, Self::Is)
    }

    /// The result of `&&` or `||` when neither side decides: the first error, if there is one.
    pub(super) fn or(self, next: Self) -> Self {
        match (self, next) {
            (error @ Self::Error(_), _) => error,
            (first, Self::Is(_)) => first,
            (_, Self::Odd) => Self::Error(Error::no_such_overload()),
            (_, error @ Self::Error(_)) => error,
        }
    }
}

impl<'a> Frame<'a, '_> {
    /// Evaluates a node whose value should be true or false.
    pub(super) fn truth(&mut self, id: NodeId) -> Result<Truth, Fault> {
        let program = self.values.program;
        match &program.nodes[id as usize] {
            Node::And(left, right) => self.logical(*left, *right, false),
            Node::Or(left, right) => self.logical(*left, *right, true),
            Node::Not(operand) => {
                let truth = self.truth(*operand)?;
                self.spend(1)?;
                Ok(match truth {
                    Truth::Is(is) => Truth::Is(!is),
                    Truth::Odd => Truth::Error(Error::no_such_overload()),
                    error @ Truth::Error(_) => error,
                })
            }
            Node::NotFalse(operand) => {
                let truth = self.truth(*operand)?;
                self.spend(1)?;
                Ok(Truth::Is(!matches!(truth, Truth::Is(false))))
            }
            Node::Binary { operator, left, right, cost } if operator.is_comparison() => {
                let told = self.operands(*left, *right, *cost, |left, right| compare(*operator, left, right));
                told.map(Truth::of)
            }
            Node::Test(attribute) => self.told(|frame| frame.test(attribute)),
            Node::Member { item, of } => self.told(|frame| Ok(is_member(&frame.node(*item)?, of))),
            Node::Matches { text, pattern, length } => self.told(|frame| {
                let text = frame.node(*text)?;
                let letters = (1.0 + text.size() as f64) * 0.1;
                frame.spend(letters.ceil() as u64 * (*length as f64 * 0.25).ceil() as u64)?;
                match text {
                    Value::String(text) => frame.matches(pattern.compiled()?, &text),
                    _ => Err(Error::no_such_overload().into()),
                }
            }),
            Node::Fold(fold) => match fold.shape {
                FoldShape::Quantifier { body, decides } => match self.quantify(fold, body, decides) {
                    Err(Fault::Error(error)) => Ok(Truth::Error(error)),
                    truth => truth,
                },
                FoldShape::Collection { .. } | FoldShape::Other => self.other(id),
            },
            _ => self.other(id),
        }
    }

    fn told(&mut self, work: impl FnOnce(&mut Self) -> Result<bool, Fault>) -> Result<Truth, Fault> {
        match work(self) {
            Ok(is) => Ok(Truth::Is(is)),
            Err(Fault::Error(error)) => Ok(Truth::Error(error)),
            Err(end) => Err(end),
        }
    }

    fn other(&mut self, id: NodeId) -> Result<Truth, Fault> {
        Ok(match self.part(id)? {
            Ok(value) => value.as_bool().map_or(Truth::Odd, Truth::Is),
            Err(error) => Truth::Error(error),
        })
    }

    /// `&&` (decided by false) and `||` (decided by true). A side with the deciding value wins, even if the other side is an
    /// error.
    fn logical(&mut self, left: NodeId, right: NodeId, decides: bool) -> Result<Truth, Fault> {
        let mut first = Truth::Is(!decides);
        for side in [left, right] {
            let truth = self.truth(side)?;
            if matches!(truth, Truth::Is(is) if is == decides) {
                return Ok(truth);
            }
            first = first.or(truth);
        }
        Ok(first)
    }
}
