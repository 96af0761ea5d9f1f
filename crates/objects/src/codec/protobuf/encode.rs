//! Encodes JSON as the messages that gogo's generated code would write for the same structs.
//!
//! Messages are written from their end to their start, see [`crate::protowire::write`].

use std::sync::LazyLock;

use super::Error;
use crate::gotext::{Fraction, decode_base64, parse_time, unix_micros};
use crate::protowire::write::Writer;
use crate::quantity;
use crate::schema::types::{Cardinality, Field, FieldKind, Format, Message, MessageId, Types};
use crate::tree::{Map, Text, Value};

/// Encodes one object, whose members have lifetime `'v`.
pub(super) struct Encoder<'t, 'v> {
    types: &'t Types,
    out: Writer,
    /// The members of each message that is being written, indexed by field; the innermost message comes last.
    slots: Vec<&'v Value>,
}

static ABSENT: Value = Value::Null;
static EMPTY: LazyLock<Map> = LazyLock::new(Map::new);

impl<'t, 'v> Encoder<'t, 'v> {
    pub fn new(types: &'t Types) -> Self {
        Self { types, out: Writer::with_capacity(4096), slots: Vec::with_capacity(128) }
    }

    /// The message of a top-level object.
    pub fn encode(mut self, id: MessageId, members: &'v Map) -> Result<Vec<u8>, Error> {
        self.members(self.types.message(id), members)?;
        Ok(self.out.finish())
    }

    fn members(&mut self, message: &'t Message, members: &'v Map) -> Result<(), Error> {
        let slots = self.slots.len();
        self.place(message, members);
        for index in message.indices_by_number().rev() {
            let field = &message.fields[index];
            if let (true, FieldKind::Message(id)) = (field.inline, field.kind) {
                let end = self.out.close();
                self.members(self.types.message(id), members)?;
                self.out.open(field.number, end);
                continue;
            }
            let value = self.slots[slots + index];
            self.field(field, value).map_err(|error| error.within(&field.json_name))?;
        }
        self.slots.truncate(slots);
        Ok(())
    }

    /// Assigns the members to fields. Most objects have them in about the order of the fields, so each is searched near
    /// the one before.
    fn place(&mut self, message: &Message, members: &'v Map) {
        let slots = self.slots.len();
        self.slots.resize(slots + message.fields.len(), &ABSENT);
        let mut next = 0;
        for (name, value) in members {
            let is_it = |field: &Field| !field.inline && *field.json_name == **name;
            let (before, after) = message.fields.split_at(next);
            let found = match after.iter().position(is_it) {
                Some(found) => Some(next + found),
                None => before.iter().position(is_it),
            };
            if let Some(found) = found {
                self.slots[slots + found] = value;
                next = found + 1;
            }
        }
    }

    fn field(&mut self, field: &Field, value: &'v Value) -> Result<(), Error> {
        match (field.cardinality, value) {
            (Cardinality::List | Cardinality::Map, Value::Null) => Ok(()),
            (Cardinality::List, Value::Array(items)) => self.items(field, items),
            (Cardinality::Map, Value::Object(entries)) => self.entries(field, entries),
            (Cardinality::List, _) => Err(unfit("a list")),
            (Cardinality::Map, _) => Err(unfit("an object")),
            (Cardinality::Single, Value::Null) if field.pointer || self.is_slice(field.kind) => Ok(()),
            (Cardinality::Single, value) => self.one(field.kind, field.number, value),
        }
    }

    /// Whether the zero value of the type is nil in Go although the type is no pointer.
    fn is_slice(&self, kind: FieldKind) -> bool {
        match kind {
            FieldKind::Bytes => true,
            FieldKind::Message(id) => self.types.message(id).format == Format::List,
            _ => false,
        }
    }

    fn items(&mut self, field: &Field, items: &'v [Value]) -> Result<(), Error> {
        for (index, item) in items.iter().enumerate().rev() {
            let written = self.one(field.kind, field.number, item);
            written.map_err(|error| error.within(&format!("[{index}]")))?;
        }
        Ok(())
    }

    fn entries(&mut self, field: &Field, entries: &'v Map) -> Result<(), Error> {
        let mut entries: Vec<(&Text, &Value)> = entries.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in entries.into_iter().rev() {
            let end = self.out.close();
            if !(value.is_null() && field.kind == FieldKind::Bytes) {
                self.one(field.kind, 2, value).map_err(|error| error.within(key))?;
            }
            self.out.bytes(1, key.as_bytes());
            self.out.open(field.number, end);
        }
        Ok(())
    }

    /// Writes a value with its tag. Null is written as the zero value.
    fn one(&mut self, kind: FieldKind, number: i32, value: &'v Value) -> Result<(), Error> {
        match (kind, value) {
            (FieldKind::Message(id), value) => {
                let end = self.out.close();
                self.message(self.types.message(id), value)?;
                self.out.open(number, end);
            }
            (FieldKind::Bool, Value::Bool(value)) => self.out.varint(number, u64::from(*value)),
            (FieldKind::Int32, Value::Number(value)) => {
                let value = value.as_i64().and_then(|value| i32::try_from(value).ok());
                self.out.varint(number, i64::from(value.ok_or_else(|| unfit("a 32-bit integer"))?) as u64);
            }
            (FieldKind::Int64, Value::Number(value)) => {
                let value = value.as_i64().ok_or_else(|| unfit("a 64-bit integer"))?;
                self.out.varint(number, value as u64);
            }
            (FieldKind::Double, Value::Number(value)) => {
                let value = value.as_f64().ok_or_else(|| unfit("a number"))?;
                self.out.fixed64(number, value.to_bits());
            }
            (FieldKind::String, Value::String(value)) => self.out.bytes(number, value.as_bytes()),
            (FieldKind::Bytes, Value::String(value)) => {
                let bytes = decode_base64(value).map_err(|_| unfit("base64"))?;
                self.out.bytes(number, &bytes);
            }
            (FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64, Value::Null) => {
                self.out.varint(number, 0)
            }
            (FieldKind::Double, Value::Null) => self.out.fixed64(number, 0),
            (FieldKind::String | FieldKind::Bytes, Value::Null) => self.out.bytes(number, b""),
            (kind, _) => return Err(unfit(wanted(kind))),
        }
        Ok(())
    }

    /// Writes the content of a message, without its tag and length.
    fn message(&mut self, message: &'t Message, value: &'v Value) -> Result<(), Error> {
        match (message.format, value) {
            (Format::Object, Value::Null) => self.members(message, &EMPTY),
            (Format::Object, Value::Object(members)) => self.members(message, members),
            (Format::Object, _) => Err(unfit("an object")),
            (Format::Quantity, value) => self.quantity(value),
            (Format::IntOrString, value) => self.int_or_string(value),
            (Format::Time | Format::MicroTime | Format::Raw | Format::List, Value::Null) => Ok(()),
            (Format::Time, value) => {
                self.timestamp(time(value)?.div_euclid(1_000_000), 0);
                Ok(())
            }
            (Format::MicroTime, value) => {
                let micros = time(value)?;
                self.timestamp(micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) * 1000);
                Ok(())
            }
            // The text of a closed object's set.
            (Format::Raw, Value::String(text)) if message.name == "FieldsV1" => {
                self.out.bytes(1, text.as_bytes());
                Ok(())
            }
            (Format::Raw, value) => {
                self.out.bytes(1, value.to_string().as_bytes());
                Ok(())
            }
            (Format::List, Value::Array(items)) => self.items(&message.fields[0], items),
            (Format::List, _) => Err(unfit("a list")),
            (Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings, value) => {
                self.alternative(message, value)
            }
        }
    }

    fn timestamp(&mut self, seconds: i64, nanos: i64) {
        self.out.varint(2, nanos as u64);
        self.out.varint(1, seconds as u64);
    }

    fn quantity(&mut self, value: &Value) -> Result<(), Error> {
        let text = match value {
            Value::Null => "0".to_owned(),
            Value::String(text) => quantity::normalize(text.trim()).map_err(|_| unfit("a quantity"))?,
            Value::Number(number) => {
                quantity::normalize(&number.to_string()).map_err(|_| unfit("a quantity"))?
            }
            _ => return Err(unfit("a quantity")),
        };
        self.out.bytes(1, text.as_bytes());
        Ok(())
    }

    fn int_or_string(&mut self, value: &Value) -> Result<(), Error> {
        let (kind, integer, text) = match value {
            Value::Null => (0, 0, ""),
            Value::Number(number) => {
                let integer = number.as_i64().and_then(|number| i32::try_from(number).ok());
                (0, integer.ok_or_else(|| unfit("a 32-bit integer"))?, "")
            }
            Value::String(text) => (1, 0, text.as_str()),
            _ => return Err(unfit("an integer or a string")),
        };
        self.out.bytes(3, text.as_bytes());
        self.out.varint(2, i64::from(integer) as u64);
        self.out.varint(1, kind);
        Ok(())
    }

    /// Writes the field that fits the value. Beside a schema, a boolean is written that says that the schema counts.
    fn alternative(&mut self, message: &'t Message, value: &'v Value) -> Result<(), Error> {
        for field in message.by_number().rev() {
            match (field.cardinality, field.kind, value) {
                (_, FieldKind::Bool, value) => {
                    let allows = value.as_bool().unwrap_or(value.is_object());
                    self.out.varint(field.number, u64::from(allows));
                }
                (Cardinality::List, _, Value::Array(items)) => self.items(field, items)?,
                (Cardinality::Single, kind, Value::Object(_)) => self.one(kind, field.number, value)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The microseconds since 1970 of a time.
fn time(value: &Value) -> Result<i64, Error> {
    let text = value.as_str().ok_or_else(|| unfit("a time"))?;
    parse_time(text, Fraction::Any).map(unix_micros).map_err(|_| unfit("a time"))
}

fn unfit(want: &'static str) -> Error {
    Error::Unfit { path: String::new(), want }
}

fn wanted(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Bool => "a boolean",
        FieldKind::Int32 | FieldKind::Int64 => "an integer",
        FieldKind::Double => "a number",
        FieldKind::String => "a string",
        FieldKind::Bytes => "base64",
        FieldKind::Message(_) => "an object",
    }
}
