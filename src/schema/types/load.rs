//! From the bytes of a `FileDescriptorSet` to [`Types`].
//!
//! The numbers are those of `google/protobuf/descriptor.proto` and of `proto/options.proto`. The bytes come from
//! `build.rs`, so that anything unexpected in them is a bug.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::markers::{FieldMarkers, MessageMarkers};
use super::{
    Absence, Cardinality, Field, FieldBits, FieldKind, Format, Member, Message, MessageId, Role, Types,
};
use crate::protowire::{self, BYTES, Reader, VARINT};
use crate::schema::names::{GroupVersion, Gvk};
use crate::tree::Text;

pub(super) fn load(descriptors: &[u8]) -> Types {
    read(descriptors).expect("build.rs compiles proto/ into descriptors that can be read")
}

fn read(descriptors: &[u8]) -> Result<Types, protowire::Error> {
    let mut found = Found::default();
    each(descriptors, |number, value| if number == 1 { found.file(value.bytes) } else { Ok(()) })?;
    let ids: HashMap<&str, MessageId> = found
        .messages
        .iter()
        .enumerate()
        .map(|(index, message)| (&*message.full_name, MessageId(index as u32)))
        .collect();
    let resolve = |message: &RawMessage| message.resolve(&ids, &found.entries);
    let mut messages: Vec<Message> = found.messages.iter().map(resolve).collect();
    let members: Vec<Box<[Member]>> =
        (0..messages.len()).map(|index| members(&messages, index as u32)).collect();
    let formats: Vec<Format> = messages.iter().map(|message| message.format).collect();
    for (message, members) in messages.iter_mut().zip(members) {
        message.members = members;
        assert!(message.fields.len() <= FieldBits::MAX, "{} has more fields than a FieldBits", message.name);
        for (index, field) in message.fields.iter_mut().enumerate() {
            field.absence = absence(field, &formats);
            if field.inline || field.absence != Absence::Silent {
                message.unasked.insert(index);
            }
        }
    }
    let kinds = found.kinds.iter().map(|(gvk, name)| (gvk.clone(), ids[name.as_str()])).collect();
    let shared = found.shared_kinds.iter().map(|(kind, name)| (kind.clone(), ids[name.as_str()]));
    Ok(Types { messages, kinds, shared_kinds: shared.collect(), defaults: OnceLock::new() })
}

/// What the files declare, with names yet for types. Full names begin with a dot, as in `type_name`.
#[derive(Default)]
struct Found {
    messages: Vec<RawMessage>,
    /// The value fields of maps, by the names of their entry messages.
    entries: HashMap<String, RawField>,
    kinds: HashMap<Gvk, String>,
    shared_kinds: HashMap<Text, String>,
}

struct RawMessage {
    full_name: String,
    package: Arc<str>,
    name: String,
    format: u64,
    role: Role,
    markers: MessageMarkers,
    fields: Vec<RawField>,
}

#[derive(Clone, Default)]
struct RawField {
    name: String,
    json_name: String,
    number: u64,
    label: u64,
    kind: u64,
    type_name: String,
    pointer: bool,
    always: bool,
    omit_zero: bool,
    inline: bool,
    markers: FieldMarkers,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Value<'a> {
    pub integer: u64,
    pub bytes: &'a [u8],
}

impl Value<'_> {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    pub fn flag(&self) -> bool {
        self.integer != 0
    }
}

/// Shows every field of a message.
pub(super) fn each<'a>(
    message: &'a [u8],
    mut field: impl FnMut(i32, Value<'a>) -> Result<(), protowire::Error>,
) -> Result<(), protowire::Error> {
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag()? {
        let mut value = Value::default();
        match tag.wire() {
            VARINT => value.integer = reader.varint()?,
            BYTES => value.bytes = reader.bytes()?,
            _ => reader.skip(tag)?,
        }
        field(tag.number(), value)?;
    }
    Ok(())
}

impl Found {
    fn file(&mut self, file: &[u8]) -> Result<(), protowire::Error> {
        let (mut package, mut options, mut messages) = (String::new(), &[][..], Vec::new());
        each(file, |number, value| {
            match number {
                2 => package = value.text(),
                4 => messages.push(value.bytes),
                8 => options = value.bytes,
                _ => {}
            }
            Ok(())
        })?;
        let (mut group, mut version) = (String::new(), None);
        each(options, |number, value| {
            match number {
                50001 => group = value.text(),
                50002 => version = Some(value.text()),
                _ => {}
            }
            Ok(())
        })?;
        let version = version.map(|version| GroupVersion::new(&group, &version));
        let package: Arc<str> = package.into();
        messages.into_iter().try_for_each(|bytes| self.message(&package, version.as_ref(), bytes))
    }

    fn message(
        &mut self,
        package: &Arc<str>,
        version: Option<&GroupVersion>,
        bytes: &[u8],
    ) -> Result<(), protowire::Error> {
        let (mut name, mut fields, mut nested, mut options) =
            (String::new(), Vec::new(), Vec::new(), &[][..]);
        each(bytes, |number, value| {
            match number {
                1 => name = value.text(),
                2 => fields.push(field(value.bytes)?),
                3 => nested.push(value.bytes),
                7 => options = value.bytes,
                _ => {}
            }
            Ok(())
        })?;
        let (mut is_kind, mut format, mut markers) = (false, 0, MessageMarkers::default());
        each(options, |number, value| {
            match number {
                50001 => is_kind = value.flag(),
                50002 => format = value.integer,
                _ => markers.read(number, value)?,
            }
            Ok(())
        })?;
        let full_name = format!(".{package}.{name}");
        nested.into_iter().try_for_each(|entry| self.entry(&full_name, entry))?;
        let role = match version {
            _ if !is_kind => Role::Part,
            Some(version) => {
                self.kinds.insert(version.with_kind(&*name), full_name.clone());
                Role::Kind(version.clone())
            }
            None => {
                self.shared_kinds.insert(name.as_str().into(), full_name.clone());
                Role::SharedKind
            }
        };
        let package = package.clone();
        self.messages.push(RawMessage { full_name, package, name, format, role, markers, fields });
        Ok(())
    }

    /// The only messages inside messages are the entries of maps: 1 is the key, 2 the value.
    fn entry(&mut self, parent: &str, bytes: &[u8]) -> Result<(), protowire::Error> {
        let mut name = String::new();
        let mut entry_value = RawField::default();
        each(bytes, |number, value| {
            match number {
                1 => name = format!("{parent}.{}", value.text()),
                2 => {
                    let field = field(value.bytes)?;
                    if field.number == 2 {
                        entry_value = field;
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        self.entries.insert(name, entry_value);
        Ok(())
    }
}

fn field(bytes: &[u8]) -> Result<RawField, protowire::Error> {
    let mut field = RawField::default();
    let mut options = &[][..];
    each(bytes, |number, value| {
        match number {
            1 => field.name = value.text(),
            3 => field.number = value.integer,
            4 => field.label = value.integer,
            5 => field.kind = value.integer,
            6 => field.type_name = value.text(),
            8 => options = value.bytes,
            10 => field.json_name = value.text(),
            _ => {}
        }
        Ok(())
    })?;
    each(options, |number, value| {
        match number {
            50001 => field.pointer = value.flag(),
            50002 => field.always = value.flag(),
            50003 => field.omit_zero = value.flag(),
            50004 => field.inline = value.flag(),
            _ => field.markers.read(number, value),
        }
        Ok(())
    })?;
    Ok(field)
}

impl RawMessage {
    fn resolve(&self, ids: &HashMap<&str, MessageId>, entries: &HashMap<String, RawField>) -> Message {
        let fields: Vec<Field> = self.fields.iter().map(|field| field.resolve(ids, entries)).collect();
        let mut by_number: Box<[u16]> = (0..fields.len() as u16).collect();
        by_number.sort_unstable_by_key(|index| fields[usize::from(*index)].number);
        let index = index_of(&fields);
        Message {
            name: self.name.as_str().into(),
            package: self.package.clone(),
            format: format(self.format),
            role: self.role.clone(),
            merging: self.markers.merging(),
            unions: self.markers.unions.as_slice().into(),
            fields,
            unasked: FieldBits::default(),
            members: Box::default(),
            by_number,
            index,
        }
    }
}

/// The members of a message's JSON, once all fields are known.
fn members(messages: &[Message], id: u32) -> Box<[Member]> {
    let mut members = Vec::new();
    for (index, field) in messages[id as usize].fields.iter().enumerate() {
        match field.kind {
            FieldKind::Message(lender) if field.inline => {
                let lent = members_of_lender(messages, lender);
                members.extend(lent);
            }
            _ => {
                members.push(Member { message: MessageId(id), index: index as u16, lenders: Box::default() })
            }
        }
    }
    members.into()
}

/// `formats` are those of all messages.
fn absence(field: &Field, formats: &[Format]) -> Absence {
    let format = match field.kind {
        FieldKind::Message(id) => Some(formats[id.index()]),
        _ => None,
    };
    let slice = field.kind == FieldKind::Bytes || format == Some(Format::List);
    let nil = field.pointer || field.cardinality != Cardinality::Single || slice;
    match (nil, field.always) {
        (false, _) if format.is_some() => Absence::Zero,
        (_, false) => Absence::Silent,
        (true, true) => Absence::Null,
        (false, true) => Absence::Zero,
    }
}

fn members_of_lender(messages: &[Message], lender: MessageId) -> impl Iterator<Item = Member> {
    members(messages, lender.0).into_iter().map(move |member| {
        let lenders = [lender].into_iter().chain(member.lenders.iter().copied()).collect();
        Member { lenders, ..member }
    })
}

impl RawField {
    fn resolve(&self, ids: &HashMap<&str, MessageId>, entries: &HashMap<String, RawField>) -> Field {
        const REPEATED: u64 = 3;
        let entry = entries.get(&self.type_name);
        let cardinality = match (entry, self.label) {
            (Some(_), _) => Cardinality::Map,
            (None, REPEATED) => Cardinality::List,
            (None, _) => Cardinality::Single,
        };
        Field {
            name: self.name.as_str().into(),
            json_name: self.json_name.as_str().into(),
            number: self.number as i32,
            kind: entry.unwrap_or(self).field_kind(ids),
            cardinality,
            pointer: self.pointer,
            always: self.always,
            omit_zero: self.omit_zero,
            absence: Absence::Silent,
            inline: self.inline,
            required: self.markers.required,
            default: self.markers.default.as_deref().map(Box::from),
            merging: self.markers.merging(),
            strategic: self.markers.strategic().map(Box::new),
            allowed: self.markers.allowed.as_slice().into(),
            go_type: self.markers.go_type.clone(),
            go_collection: self.markers.go_collection.clone(),
        }
    }

    fn field_kind(&self, ids: &HashMap<&str, MessageId>) -> FieldKind {
        match self.kind {
            1 => FieldKind::Double,
            3 => FieldKind::Int64,
            5 => FieldKind::Int32,
            8 => FieldKind::Bool,
            9 => FieldKind::String,
            11 => FieldKind::Message(ids[self.type_name.as_str()]),
            12 => FieldKind::Bytes,
            other => unreachable!("proto/generate writes no fields of type {other}"),
        }
    }
}

/// Numbers are small: they are counted up as fields are added.
fn index_of(fields: &[Field]) -> Box<[u16]> {
    let numbers = fields.iter().map(|field| field.number as usize);
    let mut index = vec![0; numbers.clone().max().map_or(0, |max| max + 1)].into_boxed_slice();
    for (place, number) in (1..).zip(numbers) {
        index[number] = place;
    }
    index
}

fn format(number: u64) -> Format {
    match number {
        0 => Format::Object,
        1 => Format::Time,
        2 => Format::MicroTime,
        3 => Format::Quantity,
        4 => Format::IntOrString,
        5 => Format::Raw,
        6 => Format::List,
        7 => Format::SchemaOrBool,
        8 => Format::SchemaOrArray,
        9 => Format::SchemaOrStrings,
        other => unreachable!("proto/options.proto declares no format {other}"),
    }
}
