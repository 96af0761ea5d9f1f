//! Variables, and what is looked up in them (cel-go `interpreter/attributes.go`).

use super::budget::Fault;
use super::evaluate::{EvalResult, Frame};
use super::{Attribute, Base, Qualifier, QualifierKey};
use crate::value::{Error, Value};

impl<'a> Frame<'a, '_> {
    /// An attribute on its own costs 1, a conditional only its parts.
    pub(super) fn observed(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        if attribute.qualifiers.is_empty()
            && let Some(value) = self.values.held(&attribute.base).cloned()
        {
            self.spend(1)?;
            return Ok(value);
        }
        let outcome = self.resolve(attribute);
        match (&attribute.base, &outcome) {
            (Base::Conditional { .. }, _) => {}
            (_, Ok(_) | Err(Fault::Error(_))) => self.spend(1)?,
            _ => {}
        }
        outcome
    }

    fn base(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        match &attribute.base {
            Base::Local(slot) => Ok(self.local(*slot)??),
            Base::Variable(number) => Ok(self.variable(*number)?),
            Base::Node(node) => self.node(*node),
            Base::Conditional { condition, yes, no } => match self.node(*condition)? {
                Value::Bool(true) => self.resolve(yes),
                Value::Bool(false) => self.resolve(no),
                _ => Err(Error::no_such_overload().into()),
            },
        }
    }

    fn resolve(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        let (mut value, mut optional, rest) = match self.field(attribute, false) {
            Some(found) => {
                self.spend(1)?;
                (found?.ok_or_else(Error::no_such_overload)?, false, &attribute.qualifiers[1..])
            }
            None => {
                let value = self.base(attribute)?;
                if attribute.qualifiers.is_empty() {
                    return Ok(value);
                }
                let Some((value, optional)) = unwrapped(value) else { return Ok(Value::none()) };
                (value, optional, &attribute.qualifiers[..])
            }
        };
        for qualifier in rest {
            optional |= qualifier.optional;
            value = match self.qualify(value, qualifier, optional)? {
                Some(found) => found,
                None => return Ok(Value::none()),
            };
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// The field of a variable that an attribute begins with, if it does so.
    fn field(
        &self,
        attribute: &'a Attribute,
        may_be_missing: bool,
    ) -> Option<Result<Option<Value<'a>>, Error>> {
        let first = attribute.qualifiers.first().filter(|first| !first.optional)?;
        let QualifierKey::Constant(Value::String(name)) = &first.key else { return None };
        match self.values.held(&attribute.base)? {
            Value::Optional(_) => None,
            of => Some(find_text(of, name, first.hint, may_be_missing)),
        }
    }

    /// Looks one thing up; `None` for what is not there and need not be.
    fn qualify(
        &mut self,
        of: Value<'a>,
        qualifier: &'a Qualifier,
        optional: bool,
    ) -> Result<Option<Value<'a>>, Fault> {
        let found = match &qualifier.key {
            QualifierKey::Constant(Value::String(name)) => find_text(&of, name, qualifier.hint, optional),
            QualifierKey::Constant(key) => find(&of, key, optional),
            QualifierKey::Attribute(attribute) => match self.resolve(attribute) {
                Ok(key) => find(&of, &key, optional),
                Err(Fault::Error(error)) => Err(error),
                Err(end) => return Err(end),
            },
            QualifierKey::Node(node) => match self.part(*node)? {
                Ok(key) => find(&of, &key, optional),
                Err(error) => Err(error),
            },
        };
        if matches!(found, Ok(Some(_))) || !optional {
            self.spend(1)?;
        }
        Ok(found?)
    }

    /// `has(…)`: whether the last thing is there.
    pub(super) fn test(&mut self, attribute: &'a Attribute) -> Result<bool, Fault> {
        if let ([_], Some(found)) = (&attribute.qualifiers[..], self.field(attribute, true)) {
            self.spend(1)?;
            return Ok(found?.is_some());
        }
        let value = self.base(attribute)?;
        let Some((mut value, mut optional)) = unwrapped(value) else { return Ok(false) };
        let Some((last, before)) = attribute.qualifiers.split_last() else { return Ok(true) };
        for qualifier in before {
            optional |= qualifier.optional;
            value = match self.qualify(value, qualifier, optional)? {
                Some(found) => found,
                None => return Ok(false),
            };
        }
        let QualifierKey::Constant(Value::String(name)) = &last.key else { return Ok(false) };
        let found = find_text(&value, name, last.hint, true);
        if !optional || matches!(found, Ok(Some(_))) {
            self.spend(1)?;
        }
        Ok(found?.is_some())
    }
}

/// The value, and whether it was an optional's; `None` for an optional without one.
fn unwrapped(value: Value<'_>) -> Option<(Value<'_>, bool)> {
    match value {
        Value::Optional(inner) => inner.map(|inner| ((*inner).clone(), true)),
        value => Some((value, false)),
    }
}

fn missing<'a>(key: &str, optional: bool) -> Result<Option<Value<'a>>, Error> {
    if optional { Ok(None) } else { Err(Error::new(format!("no such key: {key}"))) }
}

fn find_text<'a>(
    of: &Value<'a>,
    name: &str,
    hint: usize,
    optional: bool,
) -> Result<Option<Value<'a>>, Error> {
    match of {
        Value::Map(map) => match map.find_text(name, hint)? {
            Some(found) => Ok(Some(found)),
            None => missing(name, optional),
        },
        Value::List(_) => Err(Error::new("unsupported index type 'string' in list")),
        Value::Struct(object) if optional && !object.has(name) => Ok(None),
        Value::Struct(object) => match object.select(name) {
            Some(found) => Ok(Some(found)),
            None => missing(name, optional),
        },
        _ => missing(name, optional),
    }
}

fn find<'a>(of: &Value<'a>, key: &Value<'a>, optional: bool) -> Result<Option<Value<'a>>, Error> {
    match of {
        Value::Map(map) => match map.find(key, 0)? {
            Some(found) => Ok(Some(found)),
            None => missing(&key.shown(), optional),
        },
        Value::List(list) => {
            let at = index_of(key)?;
            match usize::try_from(at).ok().filter(|at| *at < list.len()) {
                Some(at) => list.get(at).map(Some),
                None if optional => Ok(None),
                None => Err(Error::new(format!("index out of bounds: {}", key.shown()))),
            }
        }
        _ => missing(&key.shown(), optional),
    }
}

fn index_of(key: &Value<'_>) -> Result<i64, Error> {
    let unsupported = || Error::new(format!("unsupported index value {} in list", key.shown()));
    match key {
        Value::Int(at) => Ok(*at),
        Value::Uint(at) => i64::try_from(*at).map_err(|_| unsupported()),
        Value::Double(at) if (*at as i64) as f64 == *at && at.abs() < 9.2e18 => Ok(*at as i64),
        Value::Double(_) => Err(unsupported()),
        _ => Err(Error::new(format!("unsupported index type '{}' in list", key.type_name()))),
    }
}
