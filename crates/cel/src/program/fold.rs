//! Loops (cel-go `interpreter/interpretable.go`, `evalFold`).
//!
//! The loops of `all`, `exists`, `map` and `filter` keep their results so far beside the variables. They cost what their
//! expansions do: each round pays for the looks at the accumulator.

use super::budget::Fault;
use super::evaluate::{EvalResult, Frame, Local, Part};
use super::truth::Truth;
use super::{Fold, FoldShape, NodeId, Slot};
use crate::value::{Error, Map, Text, Value, view};

/// After so many rounds somebody may have given up.
const ROUNDS: usize = 100;

impl<'a> Frame<'a, '_> {
    /// The variable of a loop, which is made the first time.
    pub(super) fn local(&mut self, slot: Slot) -> Result<Result<Value<'a>, Error>, Fault> {
        match &self.values.locals[slot as usize] {
            Local::Ready(value) => Ok(value.clone()),
            Local::Lazy(init) => {
                let value = self.part(*init)?;
                self.set(slot, value.clone());
                Ok(value)
            }
            Local::Empty => Ok(Err(Error::new("no such attribute(s)"))),
        }
    }

    fn set(&mut self, slot: Slot, value: Part<'a>) {
        self.values.locals[slot as usize] = Local::Ready(value);
    }

    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'a Fold) -> EvalResult<'a> {
        match fold.shape {
            FoldShape::Quantifier { body, decides } => self.quantify(fold, body, decides)?.into_outcome(),
            FoldShape::Collection { condition, element } => self.collect(fold, condition, element),
            FoldShape::Other => self.accumulate(fold),
        }
    }

    fn accumulate(&mut self, fold: &'a Fold) -> EvalResult<'a> {
        let range = self.node(fold.range)?;
        self.values.locals[fold.accumulator as usize] = Local::Lazy(fold.init);
        self.each(fold, range, |frame| {
            if let Truth::Is(false) = frame.truth(fold.condition)? {
                return Ok(false);
            }
            let next = frame.part(fold.step)?;
            frame.set(fold.accumulator, next);
            Ok(true)
        })?;
        let result = self.node(fold.result);
        self.values.locals[fold.accumulator as usize] = Local::Empty;
        result
    }

    /// `all` and `exists`: the first element that decides is the last that is looked at.
    #[inline(never)]
    pub(super) fn quantify(&mut self, fold: &'a Fold, body: NodeId, decides: bool) -> Result<Truth, Fault> {
        let range = self.node(fold.range)?;
        let mut so_far = Truth::Is(!decides);
        self.each(fold, range, |frame| {
            // `exists` has a negation more in its condition.
            frame.spend(if decides { 3 } else { 2 })?;
            if matches!(so_far, Truth::Is(is) if is == decides) {
                return Ok(false);
            }
            frame.spend(1)?;
            let truth = frame.truth(body)?;
            so_far = match truth {
                Truth::Is(is) if is == decides => truth,
                truth => std::mem::replace(&mut so_far, Truth::Odd).or(truth),
            };
            Ok(true)
        })?;
        self.spend(1)?;
        Ok(so_far)
    }

    /// `map` and `filter`.
    fn collect(&mut self, fold: &'a Fold, condition: Option<NodeId>, element: NodeId) -> EvalResult<'a> {
        let range = self.node(fold.range)?;
        let growth = if self.is_constant(element) { 1 } else { 11 };
        let mut so_far = Ok(Vec::new());
        self.each(fold, range, |frame| {
            let is_wanted = match condition {
                Some(condition) => frame.truth(condition)?,
                None => Truth::Is(true),
            };
            match is_wanted {
                Truth::Is(false) => {}
                Truth::Odd => so_far = Err(Error::no_such_overload()),
                Truth::Error(error) => so_far = Err(error),
                Truth::Is(true) => {
                    frame.spend(1)?;
                    let element = frame.part(element)?;
                    frame.spend(growth)?;
                    match (&mut so_far, element) {
                        (Ok(items), Ok(element)) => items.push(element),
                        (Ok(_), Err(error)) => so_far = Err(error),
                        (Err(_), _) => {}
                    }
                }
            }
            Ok(true)
        })?;
        self.spend(1)?;
        Ok(Value::owned(so_far?))
    }

    /// Sets the variables of each round; the loop ends with a round that is the last.
    fn each(
        &mut self,
        fold: &'a Fold,
        range: Value<'a>,
        mut round: impl FnMut(&mut Self) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let mut turn = |frame: &mut Self, at: usize| {
            let goes_on = round(frame)?;
            if goes_on && at % ROUNDS == ROUNDS - 1 {
                frame.check_interrupt()?;
            }
            Ok::<bool, Fault>(goes_on)
        };
        match (range, fold.second) {
            (Value::List(list), second) => {
                for at in 0..list.len() {
                    // An element that cannot be read is an error where it is looked at.
                    let item = list.get(at);
                    match second {
                        None => self.set(fold.first, item),
                        Some(second) => {
                            self.set(fold.first, Ok(Value::Int(at as i64)));
                            self.set(second, item);
                        }
                    }
                    if !turn(self, at)? {
                        break;
                    }
                }
            }
            (Value::Map(Map::Values(members, decl)), second) => {
                for (at, (name, value)) in members.iter().enumerate() {
                    if let Some(second) = second {
                        self.set(second, view(value, decl));
                    }
                    self.set(fold.first, Ok(Value::String(Text::Borrowed(name))));
                    if !turn(self, at)? {
                        break;
                    }
                }
            }
            (Value::Map(map), second) => {
                for (at, key) in map.keys().into_iter().enumerate() {
                    if let Some(second) = second {
                        let value = map.find(&key, 0);
                        self.set(second, value.and_then(|found| found.ok_or_else(Error::no_such_overload)));
                    }
                    self.set(fold.first, Ok(key));
                    if !turn(self, at)? {
                        break;
                    }
                }
            }
            (other, None) => {
                let why = format!("got '{}', expected iterable type", other.go_name());
                return Err(Error::new(why).into());
            }
            (other, Some(_)) => {
                let why = format!("unsupported comprehension range type: {}", other.go_name());
                return Err(Error::new(why).into());
            }
        }
        Ok(())
    }
}
