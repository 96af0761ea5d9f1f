//! Loops (cel-go `interpreter/interpretable.go`, `evalFold`).

use super::evaluate::{Fault, Frame, Local, Outcome};
use super::{Fold, Slot};
use crate::value::{Error, Value};

/// After so many rounds somebody may have given up.
const ROUNDS: usize = 100;

impl<'a> Frame<'a, '_> {
    /// The variable of a loop, which is made the first time.
    pub(super) fn local(&mut self, slot: Slot) -> Result<Result<Value<'a>, Error>, Fault> {
        match &self.locals[slot as usize] {
            Local::Ready(value) => Ok(value.clone()),
            Local::Lazy(init) => {
                let value = self.part(*init)?;
                self.locals[slot as usize] = Local::Ready(value.clone());
                Ok(value)
            }
            Local::Empty => Ok(Err(Error::new("no such attribute(s)"))),
        }
    }

    fn set(&mut self, slot: Slot, value: Value<'a>) {
        self.locals[slot as usize] = Local::Ready(Ok(value));
    }

    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.node(fold.range)?;
        self.locals[fold.accumulator as usize] = Local::Lazy(fold.init);
        match (range, fold.second) {
            (Value::List(list), second) => {
                for at in 0..list.len() {
                    // An element that cannot be read is an error where it is looked at.
                    let item = Local::Ready(list.get(at));
                    match second {
                        None => self.locals[fold.first as usize] = item,
                        Some(second) => {
                            self.set(fold.first, Value::Int(at as i64));
                            self.locals[second as usize] = item;
                        }
                    }
                    if !self.round(fold, at)? {
                        break;
                    }
                }
            }
            (Value::Map(map), second) => {
                for (at, key) in map.keys().into_iter().enumerate() {
                    if let Some(second) = second {
                        let value = map.find(&key, 0);
                        let value = value.and_then(|found| found.ok_or_else(Error::no_such_overload));
                        self.locals[second as usize] = Local::Ready(value);
                    }
                    self.set(fold.first, key);
                    if !self.round(fold, at)? {
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
        let result = self.node(fold.result);
        self.locals[fold.accumulator as usize] = Local::Empty;
        result
    }

    /// One round; false if it is the last.
    fn round(&mut self, fold: &'a Fold, at: usize) -> Result<bool, Fault> {
        if let Ok(Value::Bool(false)) = self.part(fold.condition)? {
            return Ok(false);
        }
        let next = self.part(fold.step)?;
        self.locals[fold.accumulator as usize] = Local::Ready(next);
        if at % ROUNDS == ROUNDS - 1 {
            self.check_interrupt()?;
        }
        Ok(true)
    }
}
