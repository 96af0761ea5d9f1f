//! Which member of the JSON form is which field, from gnostic's `openapiv3/OpenAPIv3.proto`.

use super::form::{Form, Message, member, message, text};

pub(super) static DOCUMENT: Message = message(
    &[
        text("openapi", 1),
        member("info", 2, Form::One(&[], &INFO)),
        member("paths", 4, Form::Entries(1, &[], &PATH_ITEM)),
        member("components", 5, Form::One(&[], &COMPONENTS)),
    ],
    Some(9),
);

static INFO: Message = message(&[text("title", 1), text("version", 6)], Some(7));

static COMPONENTS: Message = message(
    &[
        member("schemas", 1, Form::Entries(1, &[], &SCHEMA)),
        member("securitySchemes", 7, Form::Entries(1, &[1], &SECURITY_SCHEME)),
    ],
    Some(10),
);

static SECURITY_SCHEME: Message =
    message(&[text("type", 1), text("description", 2), text("name", 3), text("in", 4)], Some(9));

static PATH_ITEM: Message = message(
    &[
        member("get", 4, Form::One(&[], &OPERATION)),
        member("put", 5, Form::One(&[], &OPERATION)),
        member("post", 6, Form::One(&[], &OPERATION)),
        member("delete", 7, Form::One(&[], &OPERATION)),
        member("patch", 10, Form::One(&[], &OPERATION)),
        member("parameters", 13, Form::Many(&[1], &PARAMETER)),
    ],
    Some(14),
);

static OPERATION: Message = message(
    &[
        member("tags", 1, Form::Texts),
        text("description", 3),
        text("operationId", 5),
        member("parameters", 6, Form::Many(&[1], &PARAMETER)),
        member("requestBody", 7, Form::One(&[1], &REQUEST_BODY)),
        member("responses", 8, Form::Entries(2, &[1], &RESPONSE)),
    ],
    Some(13),
);

static PARAMETER: Message = message(
    &[
        text("name", 1),
        text("in", 2),
        text("description", 3),
        member("required", 4, Form::Flag),
        member("schema", 10, Form::One(&[], &SCHEMA)),
    ],
    Some(14),
);

static REQUEST_BODY: Message = message(
    &[member("content", 2, Form::Entries(1, &[], &MEDIA_TYPE)), member("required", 3, Form::Flag)],
    Some(4),
);

static RESPONSE: Message =
    message(&[text("description", 1), member("content", 3, Form::Entries(1, &[], &MEDIA_TYPE))], Some(5));

static MEDIA_TYPE: Message = message(&[member("schema", 1, Form::One(&[], &SCHEMA))], Some(5));

static SCHEMA: Message = Message {
    reference: Some(&REFERENCE),
    ..message(
        &[
            member("uniqueItems", 20, Form::Flag),
            member("required", 23, Form::Texts),
            member("enum", 24, Form::Anys),
            text("type", 25),
            member("allOf", 26, Form::Many(&[], &SCHEMA)),
            member("oneOf", 27, Form::Many(&[], &SCHEMA)),
            member("items", 30, Form::One(&[1], &SCHEMA)),
            member("properties", 31, Form::Entries(1, &[], &SCHEMA)),
            member("additionalProperties", 32, Form::One(&[1], &SCHEMA)),
            member("default", 33, Form::Default),
            text("description", 34),
            text("format", 35),
        ],
        Some(36),
    )
};

static REFERENCE: Message = message(&[text("$ref", 1)], None);
