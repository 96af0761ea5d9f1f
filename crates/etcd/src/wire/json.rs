//! Messages as protobuf has them in JSON: names as on the wire, zero values left out, numbers of 64 bits in strings, bytes
//! in base64, enumerations by name. Of what comes, names may be in camel case, and unknown ones are ignored.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value};

pub type Object = Map<String, Value>;
/// Numbers of an enumeration, with their names.
pub type Numbers = &'static [(i32, &'static str)];
/// The name of a field, and the enumeration that its numbers are of, if they are.
pub type Name<'a> = (&'static str, &'a [Numbers]);

/// Why a value is none of its field.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for field {field}: {value}")]
pub struct Invalid {
    field: &'static str,
    value: String,
}

/// A message.
pub trait Json: Sized {
    fn write(&self, into: &mut Object);
    fn read(from: &Object) -> Result<Self, Invalid>;
}

/// A field of a message.
pub trait Field: Sized {
    fn write(&self, name: Name<'_>, into: &mut Object);
    fn read(name: Name<'_>, from: &Object) -> Result<Self, Invalid>;
}

/// A value of a field that may be repeated.
pub trait Item: Sized {
    fn is_zero(&self) -> bool;
    fn to_value(&self, numbers: &[Numbers]) -> Value;
    fn from_value(value: &Value, name: Name<'_>) -> Result<Self, Invalid>;
}

/// Adds a value, also if it is zero.
pub fn write_value(name: &'static str, value: &impl Item, into: &mut Object) {
    into.insert(name.to_owned(), value.to_value(&[]));
}

/// The value under a name, or under the same name in camel case.
pub fn read_value<T: Item>(name: &'static str, from: &Object) -> Result<Option<T>, Invalid> {
    find(name, from).map(|value| T::from_value(value, (name, &[]))).transpose()
}

fn find<'a>(name: &str, from: &'a Object) -> Option<&'a Value> {
    let found = from.get(name).or_else(|| from.get(&camel_case(name)));
    found.filter(|value| !value.is_null())
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

fn invalid(field: &'static str, value: &Value) -> Invalid {
    let mut value = value.to_string();
    // Enough to recognise it.
    value.truncate(value.floor_char_boundary(64));
    Invalid { field, value }
}

impl<T: Json> Item for T {
    fn is_zero(&self) -> bool {
        false
    }

    fn to_value(&self, _: &[Numbers]) -> Value {
        let mut object = Object::new();
        self.write(&mut object);
        object.into()
    }

    fn from_value(value: &Value, (name, _): Name<'_>) -> Result<Self, Invalid> {
        T::read(value.as_object().ok_or_else(|| invalid(name, value))?)
    }
}

impl<T: Json> Field for Option<T> {
    fn write(&self, (name, numbers): Name<'_>, into: &mut Object) {
        if let Some(message) = self {
            into.insert(name.to_owned(), message.to_value(numbers));
        }
    }

    fn read((name, _): Name<'_>, from: &Object) -> Result<Self, Invalid> {
        read_value(name, from)
    }
}

impl<T: Item> Field for Vec<T> {
    fn write(&self, (name, numbers): Name<'_>, into: &mut Object) {
        if !self.is_empty() {
            let values = self.iter().map(|item| item.to_value(numbers));
            into.insert(name.to_owned(), values.collect());
        }
    }

    fn read(name: Name<'_>, from: &Object) -> Result<Self, Invalid> {
        let Some(value) = find(name.0, from) else { return Ok(Vec::new()) };
        let values = value.as_array().ok_or_else(|| invalid(name.0, value))?;
        values.iter().map(|value| T::from_value(value, name)).collect()
    }
}

/// Values that are not repeated messages, by what they are in JSON and how they are read.
macro_rules! scalars {
    ($($type:ty: |$value:ident, $numbers:ident| $write:expr, |$from:ident, $names:ident| $read:expr;)*) => {$(
        impl Item for $type {
            fn is_zero(&self) -> bool {
                *self == <$type>::default()
            }

            fn to_value(&self, $numbers: &[Numbers]) -> Value {
                let $value = self;
                $write
            }

            fn from_value($from: &Value, name: Name<'_>) -> Result<Self, Invalid> {
                let $names = name.1;
                let read: Option<$type> = $read;
                read.ok_or_else(|| invalid(name.0, $from))
            }
        }

        impl Field for $type {
            fn write(&self, (name, numbers): Name<'_>, into: &mut Object) {
                if !self.is_zero() {
                    into.insert(name.to_owned(), self.to_value(numbers));
                }
            }

            fn read(name: Name<'_>, from: &Object) -> Result<Self, Invalid> {
                find(name.0, from).map_or(Ok(Self::default()), |value| Item::from_value(value, name))
            }
        }
    )*};
}

scalars! {
    bool: |value, _numbers| (*value).into(), |from, _names| from.as_bool();
    String: |value, _numbers| value.clone().into(), |from, _names| from.as_str().map(str::to_owned);
    Bytes: |value, _numbers| STANDARD.encode(value).into(), |from, _names| from.as_str().and_then(decode);
    i64: |value, _numbers| value.to_string().into(), |from, _names| number(from);
    u64: |value, _numbers| value.to_string().into(), |from, _names| number(from);
    u32: |value, _numbers| (*value).into(), |from, _names| number(from);
    i32: |value, numbers| named(*value, numbers), |from, names| by_name(from, names).or_else(|| number(from));
}

/// A number, also one in a string.
fn number<T: TryFrom<i128>>(from: &Value) -> Option<T> {
    let number = match from {
        Value::String(text) => text.parse::<i128>().ok()?,
        other => other.as_i64().map(i128::from).or_else(|| other.as_u64().map(i128::from))?,
    };
    T::try_from(number).ok()
}

fn named(number: i32, numbers: &[Numbers]) -> Value {
    let name = numbers.iter().copied().flatten().find(|(known, _)| *known == number);
    name.map_or(number.into(), |(_, name)| (*name).into())
}

fn by_name(from: &Value, numbers: &[Numbers]) -> Option<i32> {
    let text = from.as_str()?;
    numbers.iter().copied().flatten().find(|(_, name)| *name == text).map(|(number, _)| *number)
}

/// Bytes in base64 of either alphabet, with or without padding.
fn decode(text: &str) -> Option<Bytes> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const EITHER: [GeneralPurpose; 2] = [
        GeneralPurpose::new(&alphabet::STANDARD, LENIENT),
        GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT),
    ];
    EITHER.iter().find_map(|engine| engine.decode(text).ok()).map(Bytes::from)
}

#[cfg(test)]
mod tests;
