//! Construction of lists, maps and objects.

use std::sync::Arc;

use smol_str::SmolStr;

use super::NodeId;
use super::budget::Fault;
use super::evaluate::{EvalResult, Frame};
use crate::value::{Entries, Error, Key, Map, Text, Value};

impl<'a> Frame<'a, '_> {
    #[inline(never)]
    pub(super) fn list(&mut self, elements: &[NodeId], optional: &[bool]) -> EvalResult<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements.iter().zip(optional) {
            let value = match self.part(*element)? {
                Ok(value) => value,
                Err(error) => {
                    self.spend(10)?;
                    return Err(error.into());
                }
            };
            match (optional, value) {
                (false, value) => values.push(value),
                (true, Value::Optional(None)) => {}
                (true, Value::Optional(Some(inner))) => values.push((*inner).clone()),
                (true, other) => {
                    self.spend(10)?;
                    let shown = other.shown();
                    let why =
                        format!("cannot initialize optional list element from non-optional value {shown}");
                    return Err(Error::new(why).into());
                }
            }
        }
        self.spend(10)?;
        Ok(Value::owned(values))
    }

    #[inline(never)]
    pub(super) fn map(&mut self, entries: &[(NodeId, NodeId, bool)]) -> EvalResult<'a> {
        let made = self.entries(entries);
        if matches!(made, Ok(_) | Err(Fault::Error(_))) {
            self.spend(30)?;
        }
        Ok(Value::Map(Map::Owned(Arc::new(made?))))
    }

    fn entries(&mut self, entries: &[(NodeId, NodeId, bool)]) -> Result<Entries<'a>, Fault> {
        let mut made = Entries::default();
        for (key, value, optional) in entries {
            let key = self.node(*key)?;
            let value = self.node(*value)?;
            let known = Key::of(&key).ok_or_else(|| {
                Error::new(format!("internal error: unsupported key type {}", key.type_name()))
            })?;
            match (optional, value) {
                (false, value) => made.put(known, value),
                (true, Value::Optional(None)) => made.remove(&known),
                (true, Value::Optional(Some(inner))) => made.put(known, (*inner).clone()),
                (true, other) => {
                    let (key, value) = (key.shown(), other.shown());
                    let why =
                        format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    return Err(Error::new(why).into());
                }
            }
        }
        Ok(made)
    }

    /// Objects that patches are made of.
    #[inline(never)]
    pub(super) fn structure(
        &mut self,
        name: &SmolStr,
        fields: &'a [(SmolStr, NodeId, bool)],
    ) -> EvalResult<'a> {
        let made = self.fields(fields);
        if matches!(made, Ok(_) | Err(Fault::Error(_))) {
            self.spend(40)?;
        }
        Ok(Value::structure(name.clone(), made?)?)
    }

    fn fields(&mut self, fields: &'a [(SmolStr, NodeId, bool)]) -> Result<Entries<'a>, Fault> {
        let mut made = Entries::default();
        for (name, value, optional) in fields {
            let key = Key::String(Text::Borrowed(name));
            match (optional, self.node(*value)?) {
                (false, value) => made.put(key, value),
                (true, Value::Optional(None)) => made.remove(&key),
                (true, Value::Optional(Some(inner))) => made.put(key, (*inner).clone()),
                (true, other) => {
                    let shown = other.shown();
                    let why =
                        format!("cannot initialize optional entry '{name}' from non-optional value {shown}");
                    return Err(Error::new(why).into());
                }
            }
        }
        Ok(made)
    }
}
