//! The types of the built-in kinds: the content of `proto/` in memory.
//!
//! They are written down once, in `proto/`, and used by all code that needs to know fields: codecs, OpenAPI, strict
//! decoding, defaults, patches and apply. Messages refer to each other by [`MessageId`], so that types may be
//! recursive; ids stay valid as long as their [`Types`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

mod conform;
pub mod defaults;
mod strict;
mod table;
mod unstructured;

pub use conform::Fit;
pub(super) use conform::conform;
pub(super) use strict::{converter_problems, problems};
pub use strict::{duplicates, list_problems};
pub(super) use unstructured::from_unstructured;

use self::defaults::Plan;
use super::names::{GroupVersion, Gvk};
use crate::fields::ObjectMap;
use crate::tree::Text;
use std::fmt;

/// All messages, and which of them are kinds.
pub struct Types {
    messages: &'static [Message],
    kinds: HashMap<Gvk, MessageId>,
    /// Kinds that exist in every API version, such as `DeleteOptions` and `Status`.
    shared_kinds: HashMap<Text, MessageId>,
    /// Built when the first object is defaulted.
    defaults: OnceLock<Plan>,
}

/// The index of a message in its [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(u32);

impl MessageId {
    /// The index among all messages.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A Go struct of upstream's.
#[derive(Debug)]
pub struct Message {
    pub name: &'static str,
    /// The protobuf package, such as `k8s.io.api.apps.v1`.
    pub package: &'static str,
    pub format: Format,
    pub role: Role,
    pub merging: Merging,
    pub unions: &'static [Union],
    /// In the order in which they are printed as JSON.
    pub fields: &'static [Field],
    /// Fields to visit even where the message does not set them: Go prints them anyway, or they lend their members.
    pub unasked: FieldBits,
    /// The members of the struct's JSON: its fields, with each inline struct replaced by that struct's fields.
    pub members: &'static [Member],
    /// Indices into `fields`, sorted by field number.
    by_number: &'static [u16],
    /// For each field number, the index into `fields` plus 1; 0 if there is no such field.
    index: &'static [u16],
}

/// A set of fields of a message, by index. No message has more than [`FieldBits::MAX`] fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldBits(u64);

impl FieldBits {
    /// The most fields that a message may have.
    pub const MAX: usize = 64;

    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Iterates over the indices in ascending order.
impl Iterator for FieldBits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let index = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (index < u64::BITS).then_some(index as usize)
    }
}

/// Whether a message is a kind, and so has kind and apiVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Part,
    /// A kind in this version.
    Kind(GroupVersion),
    /// A kind in every API version.
    SharedKind,
}

/// A member of an object's JSON.
#[derive(Clone, Debug)]
pub struct Member {
    /// The struct that declares the member; `index` is the field in it.
    pub message: MessageId,
    index: u16,
    /// The inline structs that contain the member, from the outermost.
    pub lenders: &'static [MessageId],
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub json_name: Text,
    pub number: i32,
    /// For a list the kind of its elements, for a map that of its values.
    pub kind: FieldKind,
    pub cardinality: Cardinality,
    /// Whether the field is a pointer in Go, so that absent and zero differ.
    pub pointer: bool,
    /// Whether the field is printed even if it is zero.
    pub always: bool,
    /// Whether a zero struct is not printed (`omitzero`).
    pub omit_zero: bool,
    /// The value that is printed if the field is absent.
    pub absence: Absence,
    /// Whether the struct's members are printed as members of its parent.
    pub inline: bool,
    /// Whether the field must be present; it may be zero.
    pub required: bool,
    /// The default of the field as JSON, if it is not zero.
    pub default: Option<&'static str>,
    pub merging: Merging,
    pub strategic: Option<&'static Strategic>,
    /// The allowed values of the string or of the list's elements; empty if all are.
    pub allowed: &'static [&'static str],
    /// Go's name of the scalar or element type, if it has one: `v1.PodPhase`. Errors show it.
    pub go_type: Option<&'static str>,
    /// Go's name of the list or map type, if it has one: `v1.ResourceList`.
    pub go_collection: Option<&'static str>,
}

/// The value that Go prints for a field that was never set, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    Silent,
    Null,
    /// The zero value of the field's type.
    Zero,
}

/// How apply merges a list, map or struct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// Not specified: structs and maps are merged by member, lists are atomic.
    #[default]
    Unsaid,
    Atomic,
    /// A map or struct is merged by member, whatever its type specifies.
    Granular,
    Set,
    /// The elements of the list are identified by these fields.
    Map(&'static [&'static str]),
}

/// How a strategic merge patch merges a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategic {
    /// `merge`, `replace`, `retainKeys`, or two of these separated by a comma.
    pub strategy: &'static str,
    /// The field that identifies list elements; empty if there is none.
    pub merge_key: &'static str,
}

/// Fields of a message of which at most one is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union {
    /// The field that names the one that is set.
    pub discriminator: Option<&'static str>,
    /// The fields, and the discriminator's value for each.
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

/// How many values a field has. Keys of maps are strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    Single,
    List,
    Map,
}

/// The form of a message in JSON.
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
    /// A schema, or a boolean that tells whether anything is allowed.
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

    /// The message of a kind.
    pub fn message_of(&self, gvk: &Gvk) -> Option<MessageId> {
        self.kinds.get(gvk).or_else(|| self.shared_kinds.get(&gvk.kind)).copied()
    }

    /// Sets the defaults in an object of a message.
    pub(super) fn default(&self, message: MessageId, object: &mut ObjectMap) {
        self.defaults.get_or_init(|| Plan::of(self)).apply(self, message, object);
    }

    /// The message of a struct in apimachinery's `meta/v1`.
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

    /// Go's name of a field's type, or of the type of its elements, without pointers.
    pub fn go_type(&self, field: &Field) -> String {
        match field.kind {
            FieldKind::Message(id) => self.message(id).go_name(),
            FieldKind::Bytes => "[]uint8".to_owned(),
            kind => field.go_type.unwrap_or(Self::go_kind(kind)).to_owned(),
        }
    }

    /// The name in `reflect` of the kind of the type, which is not the type's own name.
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

    /// The field of a member.
    pub fn field(&self, member: &Member) -> &Field {
        &self.message(member.message).fields[usize::from(member.index)]
    }
}

impl Message {
    /// Whether the message has the members kind and apiVersion.
    pub fn has_claims(&self) -> bool {
        self.role != Role::Part
    }

    /// The index of a member. Members usually come in order, so the search starts at `from`.
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

    /// Go's name: `v1.PodSpec`.
    pub fn go_name(&self) -> String {
        let package = self.package.rsplit('.').next().unwrap_or_default();
        format!("{package}.{}", self.name)
    }

    /// The fields sorted by number, which is their order on the wire.
    pub fn by_number(&self) -> impl DoubleEndedIterator<Item = &Field> {
        self.indices_by_number().map(|index| &self.fields[index])
    }

    /// Like [`Message::by_number`], but returns indices.
    pub fn indices_by_number(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.by_number.iter().map(|index| usize::from(*index))
    }
}

/// A message of [`Types`], whose zero values are treated as in Go.
#[derive(Clone)]
pub struct GoShape {
    pub types: Arc<Types>,
    pub message: MessageId,
}

impl fmt::Debug for GoShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.types.message(self.message).go_name())
    }
}
