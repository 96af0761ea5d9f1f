//! The types of the built-in kinds: what `proto/` says, in memory.
//!
//! Written down once there and read by everything that must know a field: codecs, OpenAPI, strict decoding, defaults,
//! patches and apply. Messages refer to each other by [`MessageId`], so that types may be
//! recursive; ids stay valid as long as their [`Types`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

mod conform;
mod strict;
mod table;
mod unstructured;

pub use conform::Fit;
pub(super) use conform::conform;
pub(super) use strict::{converter_problems, problems};
pub use strict::{duplicates, list_problems};
pub(super) use unstructured::from_unstructured;

use super::defaults::Plan;
use super::kind::{GoShape, Kind, Shape};
use super::names::{GroupVersion, Gvk};
use crate::fields::ObjectMap;
use crate::tree::Text;

/// All messages, and which of them are kinds.
pub struct Types {
    messages: &'static [Message],
    kinds: HashMap<Gvk, MessageId>,
    /// The kinds that every API version has: `DeleteOptions`, `Status` and their like.
    shared_kinds: HashMap<Text, MessageId>,
    /// Made when the first object gets its defaults.
    defaults: OnceLock<Plan>,
}

/// The place of a message in its [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(u32);

impl MessageId {
    /// Its place among all messages.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A struct of upstream's.
#[derive(Debug)]
pub struct Message {
    pub name: &'static str,
    /// As in `k8s.io.api.apps.v1`.
    pub package: &'static str,
    pub format: Format,
    pub role: Role,
    pub merging: Merging,
    pub unions: &'static [Union],
    /// In the order in which JSON prints them.
    pub fields: &'static [Field],
    /// Fields to visit even where the message does not set them: Go prints them anyway, or they lend their members.
    pub unasked: FieldBits,
    /// The members of its JSON: its fields, and in the place of structs that stand among them, theirs.
    pub members: &'static [Member],
    /// Indices in `fields`, in the order of the numbers.
    by_number: &'static [u16],
    /// By number, the index in `fields` and 1; 0 where there is no such field.
    index: &'static [u16],
}

/// Some of the fields of a message, by their indices. No message has more than [`FieldBits::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldBits(u64);

impl FieldBits {
    /// How many fields a message may have.
    pub const MAX: usize = 64;

    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// In their order.
impl Iterator for FieldBits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let index = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (index < u64::BITS).then_some(index as usize)
    }
}

/// Whether a message has kind and apiVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Part,
    /// A kind of this version.
    Kind(GroupVersion),
    /// A kind of every API version.
    SharedKind,
}

/// A member of an object's JSON.
#[derive(Clone, Debug)]
pub struct Member {
    /// Which struct declares it, and where among its fields.
    pub message: MessageId,
    index: u16,
    /// The structs that lend it, from the outside.
    pub lenders: &'static [MessageId],
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub json_name: Text,
    pub number: i32,
    /// Of the elements of a list and of the values of a map.
    pub kind: FieldKind,
    pub cardinality: Cardinality,
    /// Absent and zero differ.
    pub pointer: bool,
    /// Printed in JSON also when zero.
    pub always: bool,
    /// A struct that is not printed when zero.
    pub omit_zero: bool,
    /// What is printed where nothing is said of the field.
    pub absence: Absence,
    /// The members of the struct stand among those of its parent.
    pub inline: bool,
    /// Must be given, though zero will do.
    pub required: bool,
    /// What absence stands for, in JSON, where that is not zero.
    pub default: Option<&'static str>,
    pub merging: Merging,
    pub strategic: Option<&'static Strategic>,
    /// The only values of a string or of the elements; empty where any will do.
    pub allowed: &'static [&'static str],
    /// Go's name of a scalar, or of the elements, where it has one of its own: `v1.PodPhase`. Errors show it.
    pub go_type: Option<&'static str>,
    /// Go's name of a list or map, where it does not follow from that of the elements: `v1.ResourceList`.
    pub go_collection: Option<&'static str>,
}

/// What Go prints of a field that was never set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    Silent,
    Null,
    /// The zero value of its type.
    Zero,
}

/// How apply merges a list, map or struct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// Structs and maps by their members, lists as a whole.
    #[default]
    Unsaid,
    Atomic,
    /// A map or struct by its members, whatever its type says.
    Granular,
    Set,
    /// A list whose elements are told apart by these fields.
    Map(&'static [&'static str]),
}

/// What strategic merge does to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategic {
    /// `merge`, `replace`, `retainKeys`, or two of them with a comma.
    pub strategy: &'static str,
    /// The field that tells elements apart; empty without one.
    pub merge_key: &'static str,
}

/// Fields of a message of which one at most is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union {
    /// The field that tells which one.
    pub discriminator: Option<&'static str>,
    /// Fields and what the discriminator says then.
    pub members: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    Message(MessageId),
}

/// Keys of maps are strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    Single,
    List,
    Map,
}

/// The JSON form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An object with the fields as members.
    Object,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Embedded JSON, or an object in its own envelope.
    Raw,
    /// The list that is the message's only field.
    List,
    /// A schema, or else whether anything is allowed.
    SchemaOrBool,
    /// A schema, or a list of schemas.
    SchemaOrArray,
    /// A schema, or a list of names.
    SchemaOrStrings,
}

static BUILT_IN: LazyLock<Arc<Types>> = LazyLock::new(|| Arc::new(Types::new(table::MESSAGES)));

impl Types {
    fn new(messages: &'static [Message]) -> Self {
        let (mut kinds, mut shared_kinds) = (HashMap::new(), HashMap::new());
        for (index, message) in messages.iter().enumerate() {
            let id = MessageId(index as u32);
            let kind = Text::new_static(message.name);
            match &message.role {
                Role::Part => {}
                Role::Kind(version) => drop(kinds.insert(version.with_kind(kind), id)),
                Role::SharedKind => drop(shared_kinds.insert(kind, id)),
            }
        }
        Self { messages, kinds, shared_kinds, defaults: OnceLock::new() }
    }

    /// The types of the kinds in `proto/`. All servers of a process share them.
    pub(super) fn built_in() -> Arc<Self> {
        BUILT_IN.clone()
    }

    /// A kind of these types; the kinds of meta/v1 are found in every API version.
    pub fn kind(self: &Arc<Self>, gvk: &Gvk) -> Option<Kind> {
        let message = self.message_of(gvk)?;
        let shape = Shape::Go(GoShape { types: self.clone(), message });
        Some(Kind { gvk: gvk.clone(), shape })
    }

    /// The message of a kind.
    pub fn message_of(&self, gvk: &Gvk) -> Option<MessageId> {
        self.kinds.get(gvk).or_else(|| self.shared_kinds.get(&gvk.kind)).copied()
    }

    /// Gives an object of a message its defaults.
    pub(super) fn default(&self, message: MessageId, object: &mut ObjectMap) {
        self.defaults.get_or_init(|| Plan::of(self)).apply(self, message, object);
    }

    /// A struct of apimachinery's `meta/v1`.
    pub fn message_named(&self, name: &str) -> Option<MessageId> {
        let found = self.messages().find(|(_, message)| {
            *message.name == *name && message.package == "k8s.io.apimachinery.pkg.apis.meta.v1"
        });
        found.map(|(id, _)| id)
    }

    /// All messages with their ids.
    pub fn messages(&self) -> impl Iterator<Item = (MessageId, &Message)> {
        self.messages.iter().enumerate().map(|(index, message)| (MessageId(index as u32), message))
    }

    pub fn message(&self, id: MessageId) -> &Message {
        &self.messages[id.index()]
    }

    /// Go's name of a field's type, or of that of its elements; pointers are left out.
    pub fn go_type(&self, field: &Field) -> String {
        match field.kind {
            FieldKind::Message(id) => self.message(id).go_name(),
            FieldKind::Bytes => "[]uint8".to_owned(),
            kind => field.go_type.unwrap_or(Self::go_kind(kind)).to_owned(),
        }
    }

    /// What `reflect` calls all types of a kind, whatever their names.
    pub fn go_kind(kind: FieldKind) -> &'static str {
        match kind {
            FieldKind::Bool => "bool",
            FieldKind::Int32 => "int32",
            FieldKind::Int64 => "int64",
            FieldKind::Double => "float64",
            FieldKind::String => "string",
            FieldKind::Bytes => "slice",
            FieldKind::Message(_) => "struct",
        }
    }

    /// Go's name of the type of a list or map.
    pub fn go_collection(&self, field: &Field) -> String {
        let prefix = if field.cardinality == Cardinality::Map { "map[string]" } else { "[]" };
        field.go_collection.map_or_else(|| prefix.to_owned() + &self.go_type(field), str::to_owned)
    }

    /// The field that is behind a member.
    pub fn field(&self, member: &Member) -> &Field {
        &self.message(member.message).fields[usize::from(member.index)]
    }
}

impl Message {
    /// Whether kind and apiVersion are among its members.
    pub fn has_claims(&self) -> bool {
        self.role != Role::Part
    }

    /// The place of a member in `members`. Members mostly come in their order: the search begins at `from`.
    pub fn find(&self, types: &Types, name: &str, from: usize) -> Option<usize> {
        let from = from.min(self.members.len());
        let named = |member: &Member| &*types.field(member).json_name == name;
        let later = self.members[from..].iter().position(named).map(|found| from + found);
        later.or_else(|| self.members[..from].iter().position(named))
    }

    /// The index of the field with this number.
    pub fn index_of(&self, number: i32) -> Option<usize> {
        let found = *self.index.get(usize::try_from(number).ok()?)?;
        usize::from(found).checked_sub(1)
    }

    /// As Go prints it: `v1.PodSpec`.
    pub fn go_name(&self) -> String {
        let package = self.package.rsplit('.').next().unwrap_or_default();
        format!("{package}.{}", self.name)
    }

    /// The fields in the order of their numbers, which is that of the wire.
    pub fn by_number(&self) -> impl DoubleEndedIterator<Item = &Field> {
        self.indices_by_number().map(|index| &self.fields[index])
    }

    /// As [`Message::by_number`], but indices.
    pub fn indices_by_number(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.by_number.iter().map(|index| usize::from(*index))
    }
}

#[cfg(test)]
mod tests;
