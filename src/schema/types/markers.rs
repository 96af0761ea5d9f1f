//! What `proto/options.proto` says of merging, defaults, values and the names of Go's types.

use super::load::{Value, each};
use super::{Merging, Strategic, Union};
use crate::protowire;

/// The options of a message beyond its form.
#[derive(Default)]
pub(super) struct MessageMarkers {
    struct_type: String,
    pub unions: Vec<Union>,
}

/// The options of a field beyond its form.
#[derive(Clone, Default)]
pub(super) struct FieldMarkers {
    pub required: bool,
    pub default: Option<String>,
    list_type: String,
    list_map_keys: Vec<Box<str>>,
    map_type: String,
    patch_strategy: String,
    patch_merge_key: String,
    pub allowed: Vec<Box<str>>,
    pub go_type: Option<Box<str>>,
    pub go_collection: Option<Box<str>>,
}

impl MessageMarkers {
    pub fn read(&mut self, number: i32, value: Value<'_>) -> Result<(), protowire::Error> {
        match number {
            50003 => self.struct_type = value.text(),
            50004 => self.unions.push(union(value.bytes)?),
            _ => {}
        }
        Ok(())
    }

    pub fn merging(&self) -> Merging {
        merging(&self.struct_type, &[])
    }
}

impl FieldMarkers {
    pub fn read(&mut self, number: i32, value: Value<'_>) {
        match number {
            50005 => self.required = value.flag(),
            50006 => self.default = Some(value.text()),
            50007 => self.list_type = value.text(),
            50008 => self.list_map_keys.push(value.text().into()),
            50009 => self.map_type = value.text(),
            50010 => self.patch_strategy = value.text(),
            50011 => self.patch_merge_key = value.text(),
            50012 => self.allowed.push(value.text().into()),
            50013 => self.go_type = Some(value.text().into()),
            50014 => self.go_collection = Some(value.text().into()),
            _ => {}
        }
    }

    pub fn merging(&self) -> Merging {
        let word = if self.list_type.is_empty() { &self.map_type } else { &self.list_type };
        merging(word, &self.list_map_keys)
    }

    pub fn strategic(&self) -> Option<Strategic> {
        let said = !self.patch_strategy.is_empty() || !self.patch_merge_key.is_empty();
        said.then(|| Strategic {
            strategy: self.patch_strategy.as_str().into(),
            merge_key: self.patch_merge_key.as_str().into(),
        })
    }
}

fn merging(word: &str, keys: &[Box<str>]) -> Merging {
    match word {
        "" => Merging::Unsaid,
        "atomic" => Merging::Atomic,
        "granular" => Merging::Granular,
        "set" => Merging::Set,
        "map" => Merging::Map(keys.into()),
        other => unreachable!("proto/options.proto knows no way to merge named {other}"),
    }
}

fn union(bytes: &[u8]) -> Result<Union, protowire::Error> {
    let (mut discriminator, mut members) = (None, Vec::new());
    each(bytes, |number, value| {
        match number {
            1 => discriminator = Some(value.text().into()),
            2 => members.push(pair(value.bytes)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(Union { discriminator, members: members.into() })
}

/// The first two fields of a message.
fn pair(bytes: &[u8]) -> Result<(Box<str>, Box<str>), protowire::Error> {
    let (mut first, mut second) = (Box::default(), Box::default());
    each(bytes, |number, value| {
        match number {
            1 => first = value.text().into(),
            2 => second = value.text().into(),
            _ => {}
        }
        Ok(())
    })?;
    Ok((first, second))
}
