//! How the tables of both versions are written.

/// A message of gnostic's.
pub(super) struct Message {
    pub members: &'static [Member],
    /// The field of all members that begin with `x-`.
    pub extensions: Option<u8>,
    /// The field that holds the whole value where JSON has a string instead of an object.
    pub shorthand: Option<u8>,
    /// Where JSON may have a reference instead, which then stands in field 2 of a message around both, as the value
    /// itself does in field 1.
    pub reference: Option<&'static Message>,
}

pub(super) struct Member {
    pub name: &'static str,
    pub number: u8,
    pub form: Form,
}

/// How a member is written. Paths are the fields of messages around a value, from outer to inner.
pub(super) enum Form {
    Text,
    Flag,
    /// A list of strings.
    Texts,
    /// A list of any values.
    Anys,
    One(&'static [u8], &'static Message),
    /// A list of messages.
    Many(&'static [u8], &'static Message),
    /// An object as a message of named values, which are its field of that number.
    Entries(u8, &'static [u8], &'static Message),
    /// A list of objects of lists of strings.
    TextMaps,
    /// A list of parameters of v2, whose messages depend on where the parameter stands.
    Parameters,
    /// An object of parameters of v2.
    NamedParameters,
    /// A number, a boolean or a string; of anything else there is only that it is there.
    Default,
}

pub(super) const fn member(name: &'static str, number: u8, form: Form) -> Member {
    Member { name, number, form }
}

pub(super) const fn text(name: &'static str, number: u8) -> Member {
    member(name, number, Form::Text)
}

pub(super) const fn message(members: &'static [Member], extensions: Option<u8>) -> Message {
    Message { members, extensions, shorthand: None, reference: None }
}
