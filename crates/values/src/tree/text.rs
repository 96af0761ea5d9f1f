//! Reads and writes values as text, through `serde`.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Map, Number, Text, Value};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self {
            out.serialize_entry(name.as_str(), value)?;
        }
        out.end()
    }
}

/// The last value of a repeated member counts.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reader::default().deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Map;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Map, A::Error> {
                Reader::default().members(members)
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// Deserializes values.
#[derive(Clone, Copy, Default)]
pub struct Reader<'a> {
    /// Set if an object has a repeated member.
    pub repeated: Option<&'a Cell<bool>>,
    pub repetition: Repetition,
}

/// The effect of a repeated member on its earlier value.
#[derive(Clone, Copy, Default)]
pub enum Repetition {
    #[default]
    Replaces,
    Merges,
}

impl Reader<'_> {
    fn members<'de, A: MapAccess<'de>>(self, mut members: A) -> Result<Map, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<Text>()? {
            let mut value = members.next_value_seed(self)?;
            if let Repetition::Merges = self.repetition
                && let Some(earlier) = object.get_mut(&name)
            {
                value = merge(earlier.take(), value);
            }
            if object.insert(name, value).is_some()
                && let Some(repeated) = self.repeated
            {
                repeated.set(true);
            }
        }
        Ok(object)
    }
}

/// Merges `later` into `earlier`. Elements of lists are merged by index.
fn merge(earlier: Value, later: Value) -> Value {
    match (earlier, later) {
        (Value::Object(mut members), Value::Object(later)) => {
            for (name, value) in later {
                let earlier = members.get_mut(&name).map(Value::take).unwrap_or_default();
                members.insert(name, merge(earlier, value));
            }
            Value::Object(members)
        }
        (Value::Array(items), Value::Array(later)) => {
            let earlier = items.into_iter().chain(std::iter::repeat(Value::Null));
            Value::Array(
                later.into_iter().zip(earlier).map(|(later, earlier)| merge(earlier, later)).collect(),
            )
        }
        (_, later) => later,
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Value, A::Error> {
        self.members(members).map(Value::Object)
    }
}
