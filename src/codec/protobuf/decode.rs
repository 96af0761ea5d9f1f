//! Messages to JSON as Go's `encoding/json` prints the structs they are.

use serde_json::{Map, Value};

use super::slots::{Scalar, Slot};
use super::{Error, MAX_DEPTH};
use crate::schema::types::{Cardinality, Field, FieldKind, Format, MessageId, Types};

/// Decodes one object. Depth counts JSON levels; the object itself is at 1.
pub(super) struct Decoder<'t> {
    pub(super) types: &'t Types,
    values_left: usize,
}

impl<'t> Decoder<'t> {
    pub fn new(types: &'t Types, max_values: usize) -> Self {
        Self { types, values_left: max_values }
    }

    /// The members of a top-level object.
    pub fn members_of(&mut self, id: MessageId, bytes: &[u8]) -> Result<Map<String, Value>, Error> {
        let mut members = Map::new();
        self.members(id, bytes, 1, &mut members)?;
        Ok(members)
    }

    /// A message as its JSON value; an object or list would be at `depth`.
    pub fn value(&mut self, id: MessageId, bytes: &[u8], depth: usize) -> Result<Value, Error> {
        self.charge(1)?;
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let message = self.types.message(id);
        if message.format != Format::Object {
            return self.formatted(message, bytes, depth);
        }
        let mut members = Map::new();
        self.members(id, bytes, depth, &mut members)?;
        Ok(Value::Object(members))
    }

    pub fn scalar(&mut self, scalar: Scalar<'_>) -> Result<Value, Error> {
        self.charge(1)?;
        scalar.into_json()
    }

    /// Counts values made, so that a small body cannot fill the memory.
    pub fn charge(&mut self, values: usize) -> Result<(), Error> {
        self.values_left = self.values_left.checked_sub(values).ok_or(Error::TooLarge)?;
        Ok(())
    }

    fn members(
        &mut self,
        id: MessageId,
        bytes: &[u8],
        depth: usize,
        into: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        let message = self.types.message(id);
        let slots = self.slots(message, bytes, depth)?;
        for (field, slot) in message.fields.iter().zip(slots) {
            if field.inline {
                self.inlined(field, slot, depth, into)?;
            } else if let Some(value) = self.member(field, slot, depth + 1)? {
                into.insert(field.json_name.to_string(), value);
            }
        }
        Ok(())
    }

    fn inlined(
        &mut self,
        field: &Field,
        slot: Option<Slot<'_>>,
        depth: usize,
        into: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        match (field.kind, slot) {
            (FieldKind::Message(id), Some(Slot::Message(bytes))) => self.members(id, &bytes, depth, into),
            (FieldKind::Message(id), None) if !field.pointer => self.members(id, &[], depth, into),
            _ => Ok(()),
        }
    }

    /// The member's value, `None` if it is not printed.
    fn member(
        &mut self,
        field: &Field,
        slot: Option<Slot<'_>>,
        depth: usize,
    ) -> Result<Option<Value>, Error> {
        let value = match slot {
            Some(Slot::Scalar(scalar)) => {
                let printed = field.pointer || field.always || !scalar.is_zero();
                return if printed { self.scalar(scalar).map(Some) } else { Ok(None) };
            }
            Some(Slot::List(list)) if !list.is_empty() => Value::Array(list),
            Some(Slot::Map(map)) => Value::Object(map.into_iter().collect()),
            Some(Slot::Message(bytes)) => return self.message(field, &bytes, depth),
            Some(Slot::List(_)) | None => return self.absent(field, depth),
        };
        Ok(Some(value))
    }

    fn message(&mut self, field: &Field, bytes: &[u8], depth: usize) -> Result<Option<Value>, Error> {
        let FieldKind::Message(id) = field.kind else { return Ok(None) };
        let value = self.value(id, bytes, depth)?;
        let omitted = field.omit_zero && value.is_null();
        Ok((!omitted).then_some(value))
    }

    /// What Go prints for a field that the wire does not mention.
    fn absent(&mut self, field: &Field, depth: usize) -> Result<Option<Value>, Error> {
        let list = match field.kind {
            FieldKind::Bytes => true,
            FieldKind::Message(id) => self.types.message(id).format == Format::List,
            _ => false,
        };
        let nil = field.pointer || field.cardinality != Cardinality::Single || list;
        match field.kind {
            FieldKind::Message(_) if !nil => self.message(field, &[], depth),
            _ if !field.always => Ok(None),
            _ if nil => Ok(Some(Value::Null)),
            kind => self.scalar(Scalar::zero(kind)).map(Some),
        }
    }
}
