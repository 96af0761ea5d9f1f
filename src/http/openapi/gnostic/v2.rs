//! Which member of the JSON form is which field, from gnostic's `openapiv2/OpenAPIv2.proto`.

use super::form::{Form, Member, Message, member, message, text};
use crate::tree::Value;

pub(super) static DOCUMENT: Message = message(
    &[
        text("swagger", 1),
        member("info", 2, Form::One(&[], &INFO)),
        member("paths", 8, Form::Entries(2, &[], &PATH_ITEM)),
        member("definitions", 9, Form::Entries(1, &[], &SCHEMA)),
        member("parameters", 10, Form::NamedParameters),
        member("security", 12, Form::TextMaps),
        member("securityDefinitions", 13, Form::Entries(1, &[2], &API_KEY)),
    ],
    Some(16),
);

static INFO: Message = message(&[text("title", 1), text("version", 2)], Some(7));

static API_KEY: Message =
    message(&[text("type", 1), text("name", 2), text("in", 3), text("description", 4)], Some(5));

static PATH_ITEM: Message = message(
    &[
        member("get", 2, Form::One(&[], &OPERATION)),
        member("put", 3, Form::One(&[], &OPERATION)),
        member("post", 4, Form::One(&[], &OPERATION)),
        member("delete", 5, Form::One(&[], &OPERATION)),
        member("patch", 8, Form::One(&[], &OPERATION)),
        member("parameters", 9, Form::Parameters),
    ],
    Some(10),
);

static OPERATION: Message = message(
    &[
        member("tags", 1, Form::Texts),
        text("description", 3),
        text("operationId", 5),
        member("produces", 6, Form::Texts),
        member("consumes", 7, Form::Texts),
        member("parameters", 8, Form::Parameters),
        member("responses", 9, Form::Entries(1, &[1], &RESPONSE)),
        member("schemes", 10, Form::Texts),
    ],
    Some(13),
);

static RESPONSE: Message =
    message(&[text("description", 1), member("schema", 2, Form::One(&[1], &SCHEMA))], Some(5));

static BODY_PARAMETER: Message = message(
    &[
        text("description", 1),
        text("name", 2),
        text("in", 3),
        member("required", 4, Form::Flag),
        member("schema", 5, Form::One(&[], &SCHEMA)),
    ],
    Some(6),
);

static QUERY_PARAMETER: Message = message(&plain_parameter(6, 20), Some(23));

static PATH_PARAMETER: Message = message(&plain_parameter(5, 19), Some(22));

/// A parameter that is no body, by where its type stands and whether its items are unique.
const fn plain_parameter(kind: u8, unique: u8) -> [Member; 6] {
    [
        member("required", 1, Form::Flag),
        text("in", 2),
        text("description", 3),
        text("name", 4),
        text("type", kind),
        member("uniqueItems", unique, Form::Flag),
    ]
}

static SCHEMA: Message = message(
    &[
        text("$ref", 1),
        text("format", 2),
        text("description", 4),
        member("required", 19, Form::Texts),
        member("enum", 20, Form::Anys),
        member("additionalProperties", 21, Form::One(&[1], &SCHEMA)),
        member("type", 22, Form::One(&[], &TYPE)),
        member("items", 23, Form::One(&[1], &SCHEMA)),
        member("properties", 25, Form::Entries(1, &[], &SCHEMA)),
    ],
    Some(31),
);

static TYPE: Message = Message { shorthand: Some(1), ..message(&[], None) };

static REFERENCE: Message = message(&[text("$ref", 1), text("description", 2)], None);

/// The message of a parameter or of a reference to one, and the messages around it.
pub(super) fn item(value: &Value) -> (&'static [u8], &'static Message) {
    match value["in"].as_str() {
        None => (&[2], &REFERENCE),
        Some("body") => (&[1, 1], &BODY_PARAMETER),
        Some("path") => (&[1, 2, 4], &PATH_PARAMETER),
        Some(_) => (&[1, 2, 3], &QUERY_PARAMETER),
    }
}

/// As [`item`], where there can be no reference.
pub(super) fn parameter(value: &Value) -> (&'static [u8], &'static Message) {
    let (path, message) = item(value);
    (&path[1..], message)
}
