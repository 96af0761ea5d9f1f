//! Changes a JSON object as Go would by decoding it into a struct and printing it again.
//!
//! Values of the wrong type are refused with the error of Go's decoder. Unknown members and members that mean the same
//! as absent ones are dropped; members get the struct's order, quantities and times their canonical form.

use std::collections::HashMap;

use self::absent::is_said_empty;
use super::{Absence, Cardinality, Field, FieldKind, Format, GoShape, Member, MessageId, Types};
use crate::gotext::{encode_base64, json_kind};
use crate::json::{Node, whole};
use crate::tree::{Map, Number, Text, Value};

mod absent;
pub(super) mod form;

/// How well an object fitted its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Whether there were unknown members, which have been dropped.
    pub unknown: bool,
    /// Whether quantities were JSON numbers whose spelling matters but was not given.
    pub respelled: bool,
}

/// Conforms an object. With `text`, numbers are read as they are spelled there. After an error, all members that did
/// not fit are still in the object.
pub fn conform(shape: &GoShape, text: Option<&Node>, object: &mut Map) -> Result<Fit, String> {
    let mut conformer = Conformer::new(&shape.types, text);
    conformer.members(shape.message, object)?;
    conformer.misfit.map_or(Ok(conformer.fit), Err)
}

/// Judges an alternative of a schema as its own decoder does, which does not know where it stands.
pub(super) fn judge_alternative(types: &Types, id: MessageId, value: &Value) -> Result<(), String> {
    let mut conformer = Conformer::new(types, None);
    conformer.alternative(id, "", &mut value.clone())?;
    conformer.misfit.map_or(Ok(()), Err)
}

struct Conformer<'a, 't> {
    types: &'a Types,
    /// The path to the present value: members, and the inline structs that contain them.
    path: Vec<&'a str>,
    /// The places of the members of each message that is being conformed; the innermost message comes last.
    places: Vec<MemberPlace>,
    /// The present value in the text that it was read from.
    text: Option<&'t Node>,
    /// The first value of the wrong type. Go's decoder continues after it, and reports errors of types with a decoder
    /// of their own first.
    misfit: Option<String>,
    /// The struct with the outermost alternative of a schema that is being read: it is the one that errors name.
    outer: Option<String>,
    fit: Fit,
}

const MANAGERS: &str = "managedFields";

/// A sent member with its name, which is reused.
type Slot = Option<(Text, Value)>;

/// The place of a sent member.
enum MemberPlace {
    Claim,
    /// The index among the message's members.
    At(usize),
    Nowhere,
}

impl<'a, 't> Conformer<'a, 't> {
    fn new(types: &'a Types, text: Option<&'t Node>) -> Self {
        let places = Vec::with_capacity(64);
        Self { types, path: Vec::new(), places, text, misfit: None, outer: None, fit: Fit::default() }
    }

    /// Conforms the members in the order of the text, since the first error is reported.
    fn members(&mut self, id: MessageId, object: &mut Map) -> Result<(), String> {
        let (types, message) = (self.types, self.types.message(id));
        let silent =
            |members: &[Member]| members.iter().all(|member| types.field(member).absence == Absence::Silent);
        let start = self.places.len();
        let mut next = 0;
        // Whether no member has to be dropped, added or moved.
        let mut done = true;
        for (name, value) in object.iter_mut() {
            let place = match message.find(types, name, next) {
                Some(index) => {
                    done &= index >= next && silent(&message.members[next..index]);
                    next = index + 1;
                    let text = self.text;
                    self.text = text.and_then(|text| text.member(name));
                    let kept = self.member(id, index, value)?;
                    self.text = text;
                    if kept { MemberPlace::At(index) } else { MemberPlace::Nowhere }
                }
                None if message.has_claims() && matches!(name.as_str(), "kind" | "apiVersion") => {
                    done &= next == 0;
                    MemberPlace::Claim
                }
                None => {
                    self.fit.unknown = true;
                    MemberPlace::Nowhere
                }
            };
            done &= !matches!(place, MemberPlace::Nowhere);
            self.places.push(place);
        }
        if !(done && silent(&message.members[next..])) {
            self.arrange(id, object, &self.places[start..]);
        }
        self.places.truncate(start);
        Ok(())
    }

    /// Moves members to their places, and adds those that Go prints even if they were not sent.
    fn arrange(&self, id: MessageId, object: &mut Map, places: &[MemberPlace]) {
        let message = self.types.message(id);
        let mut slots: Vec<Slot> = Vec::new();
        slots.resize_with(message.members.len(), || None);
        for ((name, value), place) in std::mem::take(object).into_iter().zip(places) {
            match place {
                MemberPlace::At(index) => slots[*index] = Some((name, value)),
                MemberPlace::Claim => {
                    object.insert(name, value);
                }
                MemberPlace::Nowhere => {}
            }
        }
        for (member, slot) in message.members.iter().zip(slots) {
            let field = self.types.field(member);
            match slot {
                Some((name, value)) => {
                    object.insert(name, value);
                }
                None => object.extend(self.absent(field).map(|value| (field.json_name.clone(), value))),
            }
        }
    }

    /// Conforms the value of a member. Returns whether Go prints it.
    fn member(&mut self, id: MessageId, index: usize, value: &mut Value) -> Result<bool, String> {
        let message = self.types.message(id);
        let member = &message.members[index];
        let field = self.types.field(member);
        let depth = self.path.len();
        self.path.extend(member.lenders.iter().map(|lender| self.types.message(*lender).name));
        self.path.push(&field.json_name);
        self.field(field, message.name, value)?;
        self.path.truncate(depth);
        let stays = || self.is_printed(field, value) || is_said_empty(message.name, &field.json_name, value);
        Ok(!value.is_null() && (self.misfit.is_some() || stays()))
    }

    fn field(&mut self, field: &'a Field, owner: &str, value: &mut Value) -> Result<(), String> {
        match (field.cardinality, value) {
            (_, Value::Null) => Ok(()),
            (Cardinality::Single, value) => self.one(field, owner, value),
            (Cardinality::List, Value::Array(items)) => self.items(field, owner, items),
            (Cardinality::Map, Value::Object(entries)) => {
                // The first error is that of the first entry in the text.
                self.entries(field, owner, entries)?;
                if !entries.keys().is_sorted() {
                    entries.sort_keys();
                }
                Ok(())
            }
            (Cardinality::List | Cardinality::Map, value) => {
                self.refuse(self.misfit(owner, json_kind(value), &self.types.go_collection(field)));
                Ok(())
            }
        }
    }

    fn items(&mut self, field: &'a Field, owner: &str, items: &mut [Value]) -> Result<(), String> {
        let text = self.text;
        items.iter_mut().enumerate().try_for_each(|(index, item)| {
            self.text = text.and_then(|text| text.item(index));
            self.element(field, owner, item)
        })?;
        self.text = text;
        Ok(())
    }

    fn entries(&mut self, field: &'a Field, owner: &str, entries: &mut Map) -> Result<(), String> {
        let Some(text @ Node::Object(spelled)) = self.text else {
            return entries.values_mut().try_for_each(|entry| self.element(field, owner, entry));
        };
        // Hashed, since a map may have any number of entries.
        let spelled: HashMap<&str, &Node> =
            spelled.iter().map(|(name, value)| (name.as_str(), value)).collect();
        entries.iter_mut().try_for_each(|(name, entry)| {
            self.text = spelled.get(name.as_str()).copied();
            self.element(field, owner, entry)
        })?;
        self.text = Some(text);
        Ok(())
    }

    fn spelling(&self) -> Option<&'t str> {
        match self.text {
            Some(Node::Number(spelling)) => Some(spelling),
            _ => None,
        }
    }

    /// Conforms an element; null becomes the zero value.
    fn element(&mut self, field: &'a Field, owner: &str, value: &mut Value) -> Result<(), String> {
        if value.is_null() {
            *value = self.zero(field.kind);
            return Ok(());
        }
        self.one(field, owner, value)
    }

    fn one(&mut self, field: &'a Field, owner: &str, value: &mut Value) -> Result<(), String> {
        let fits = match (field.kind, &mut *value) {
            (FieldKind::Message(id), value) => return self.message(id, owner, value),
            (FieldKind::Bytes, Value::String(text)) => {
                if let Err(why) = form::bytes(text) {
                    self.refuse(why);
                }
                return Ok(());
            }
            (FieldKind::Bytes, value @ Value::Array(_)) => {
                self.numbered_bytes(owner, value);
                return Ok(());
            }
            (FieldKind::Int32 | FieldKind::Int64, Value::Number(number)) => {
                if let Err(found) = self.integer(field.kind, number) {
                    self.refuse(self.misfit(owner, &found, &self.types.go_type(field)));
                }
                return Ok(());
            }
            (FieldKind::Double, Value::Number(number)) => {
                whole(number);
                true
            }
            (FieldKind::Bool, value) => value.is_boolean(),
            (FieldKind::String, value) => value.is_string(),
            (FieldKind::Bytes | FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double, _) => false,
        };
        if !fits {
            self.refuse(self.misfit(owner, json_kind(value), &self.types.go_type(field)));
        }
        Ok(())
    }

    /// Go also reads bytes from a list of numbers.
    fn numbered_bytes(&mut self, owner: &str, value: &mut Value) {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        match items.iter().map(form::byte).collect::<Result<Vec<u8>, _>>() {
            Ok(bytes) => *value = encode_base64(&bytes).into(),
            Err(found) => self.refuse(self.misfit(owner, &found, "uint8")),
        }
    }

    /// Reads an integer. The error names what was found instead.
    fn integer(&self, kind: FieldKind, number: &mut Number) -> Result<(), String> {
        let spelling = self.spelling();
        // The only integer that is not read as one is -0.
        if let Some(integer) = spelling.and_then(|spelling| spelling.parse::<i64>().ok()) {
            *number = integer.into();
        }
        let fits = |number| kind == FieldKind::Int64 || i32::try_from(number).is_ok();
        if number.as_i64().is_some_and(fits) {
            return Ok(());
        }
        let found = spelling.map_or_else(|| number.to_string(), str::to_owned);
        Err(format!("number {found}"))
    }

    fn message(&mut self, id: MessageId, owner: &str, value: &mut Value) -> Result<(), String> {
        let message = self.types.message(id);
        match (message.format, value) {
            (Format::Raw, _) => Ok(()),
            (Format::Object, Value::Object(members)) => self.members(id, members),
            (Format::Object, value) => {
                self.refuse(self.misfit(owner, json_kind(value), &message.go_name()));
                Ok(())
            }
            (Format::Time | Format::MicroTime, value) => {
                let Value::String(text) = value else {
                    return Err(self.misfit(owner, json_kind(value), "string"));
                };
                if let Some(printed) = form::time(text, message.format)? {
                    *value = printed;
                }
                Ok(())
            }
            (Format::Quantity, value) => {
                self.fit.respelled |= value.is_f64();
                form::quantity(value, self.spelling())
            }
            (Format::IntOrString, Value::String(_)) => Ok(()),
            (Format::IntOrString, value) => {
                let fits = match value {
                    Value::Number(number) => self.integer(FieldKind::Int32, number),
                    value => Err(json_kind(value).to_owned()),
                };
                fits.map_err(|found| self.misfit(owner, &found, "int32"))
            }
            (Format::List, Value::Array(items)) => self.items(&message.fields[0], owner, items),
            (Format::List, value) => {
                self.refuse(self.misfit(owner, json_kind(value), &message.go_name()));
                Ok(())
            }
            (Format::SchemaOrBool, Value::Bool(_)) => Ok(()),
            (Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings, value) => {
                // An alternative is decoded separately from its parent.
                let (before, is_outermost) = (self.misfit.take(), self.outer.is_none());
                self.outer.get_or_insert_with(|| owner.to_owned());
                let read = self.alternative(id, owner, value);
                if is_outermost {
                    self.outer = None;
                }
                let found = std::mem::replace(&mut self.misfit, before);
                read.and_then(|()| found.map_or(Ok(()), Err))
            }
        }
    }

    fn alternative(&mut self, id: MessageId, owner: &str, value: &mut Value) -> Result<(), String> {
        let message = self.types.message(id);
        let wanted = match value {
            Value::Object(_) => Cardinality::Single,
            Value::Array(_) => Cardinality::List,
            _ if message.format == Format::SchemaOrBool => {
                return Err("boolean or JSON schema expected".to_owned());
            }
            // Upstream drops the value; what has neither of both alternatives is not as none.
            _ => {
                *value = match message.format {
                    Format::SchemaOrArray => Value::Array(Vec::new()),
                    _ => Value::Null,
                };
                return Ok(());
            }
        };
        let field =
            message.fields.iter().find(|field| field.cardinality == wanted && field.kind != FieldKind::Bool);
        match field {
            Some(field) => self.field(field, owner, value),
            None => Err("boolean or JSON schema expected".to_owned()),
        }
    }

    fn refuse(&mut self, misfit: String) {
        self.misfit.get_or_insert(misfit);
    }

    fn misfit(&self, owner: &str, found: &str, want: &str) -> String {
        if self.path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {want}");
        }
        let (owner, path) = (self.outer.as_deref().unwrap_or(owner), self.path.join("."));
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {want}")
    }
}
