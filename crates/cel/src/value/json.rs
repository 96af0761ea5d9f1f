//! Values that become JSON of an object.

use rowplane_values::gotext::encode_base64;
use rowplane_values::tree::{self, Number};

use super::{Error, Key, Value};
use crate::time::duration_text;

/// Integers beyond this are not exact in every JSON reader.
const MOST_EXACT: u64 = (1 << 53) - 1;

/// How much JSON may be made of a value.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// How deep it may nest.
    pub depth: usize,
    /// How many bytes of texts, elements and members there may be.
    pub size: usize,
}

/// How integers are written that not every reader of JSON reads exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeIntegers {
    /// Strings, as in the JSON of protobuf.
    Texts,
    Numbers,
}

/// The JSON of a value. Values share what is in them, so that a small expression may make a huge one: `room` bounds it.
pub fn to_json(value: &Value<'_>, large: LargeIntegers, mut room: Room) -> Result<tree::Value, Error> {
    Writer { large, room: &mut room.size }.write(value, room.depth)
}

struct Writer<'r> {
    large: LargeIntegers,
    room: &'r mut usize,
}

impl Writer<'_> {
    /// Recurses no deeper than `depth`.
    fn write(&mut self, value: &Value<'_>, depth: usize) -> Result<tree::Value, Error> {
        let below = depth.checked_sub(1).ok_or_else(|| Error::new("the value nests too deep"))?;
        self.take(8)?;
        Ok(match value {
            Value::Null => tree::Value::Null,
            Value::Bool(is) => tree::Value::Bool(*is),
            Value::Int(number) if self.is_text(number.unsigned_abs()) => number.to_string().into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) if self.is_text(*number) => number.to_string().into(),
            Value::Uint(number) => (*number).into(),
            Value::Double(number) => double(*number)?,
            Value::String(text) => {
                self.take(text.len())?;
                tree::Value::from(&**text)
            }
            Value::Bytes(bytes) => {
                self.take(bytes.len() * 2)?;
                encode_base64(bytes).into()
            }
            Value::Timestamp(at) => at.utc_text().into(),
            Value::Duration(nanos) => duration_text(*nanos).into(),
            Value::List(list) => {
                let mut items = Vec::new();
                for item in list.iter() {
                    items.push(self.write(&item?, below)?);
                }
                tree::Value::Array(items)
            }
            Value::Map(map) => {
                let mut members = tree::Map::new();
                for key in map.keys() {
                    let Value::String(name) = &key else {
                        let (key, of) = (key.shown(), key.go_name());
                        return Err(Error::new(format!("map key \"{key}\" is of type {of}, not string")));
                    };
                    if let Some(value) = map.find(&key, 0)? {
                        self.take(name.len())?;
                        members.insert(&**name, self.write(&value, below)?);
                    }
                }
                tree::Value::Object(members)
            }
            Value::Struct(object) => {
                let mut members = tree::Map::new();
                for (key, value) in object.fields.iter() {
                    let Key::String(name) = key else { continue };
                    members.insert(&**name, self.write(value, below)?);
                }
                tree::Value::Object(members)
            }
            Value::Optional(Some(inner)) => self.write(inner, below)?,
            Value::Optional(None) => return Err(Error::new("optional.none() dereference".to_owned())),
            Value::Type(_) | Value::Opaque(_) => {
                return Err(Error::new(format!("a value of type {} has no JSON", value.type_name())));
            }
        })
    }

    fn is_text(&self, size: u64) -> bool {
        self.large == LargeIntegers::Texts && size > MOST_EXACT
    }

    fn take(&mut self, size: usize) -> Result<(), Error> {
        *self.room = self.room.checked_sub(size).ok_or_else(|| Error::new("the value is too large"))?;
        Ok(())
    }
}

/// Whole numbers are printed without a point, and then read as integers.
fn double(number: f64) -> Result<tree::Value, Error> {
    if number.fract() == 0.0 && number.abs() <= MOST_EXACT as f64 {
        return Ok((number as i64).into());
    }
    let found = Number::from_f64(number).map(tree::Value::Number);
    found.ok_or_else(|| Error::new("a double that is no number has no JSON"))
}
