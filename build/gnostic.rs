//! Turns gnostic's messages (`build/gnostic/*.proto`) into the tables that `http::openapi::gnostic` encodes OpenAPI with.
//!
//! How a message is made of JSON follows from its form, since gnostic's generator made it by a few rules: a message of a
//! `oneof` is one of several forms of a value, a list of `NamedThing`s holds an object's members, a message with
//! nothing but a list is that list, and `Any` is text.

use std::fmt::Write;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The messages of a package, as the elements of a Rust array; the first one is the document.
pub fn table(pool: &DescriptorPool, package: &str) -> Result<String> {
    let messages: Vec<_> = pool.all_messages().filter(|message| message.package_name() == package).collect();
    if messages.first().is_none_or(|message| message.name() != "Document") {
        return Err(format!("{package} does not begin with Document").into());
    }
    let mut out = String::from("[\n");
    for message in &messages {
        writeln!(out, "/* {} */ Message::{},", message.name(), form(message, &messages)?)?;
    }
    out.push_str("]\n");
    Ok(out)
}

/// The variant of `Message`.
fn form(message: &MessageDescriptor, all: &[MessageDescriptor]) -> Result<String> {
    let fields: Vec<FieldDescriptor> = message.fields().collect();
    let codes = |fields: &[FieldDescriptor]| -> Result<String> {
        fields.iter().map(|each| Ok(field(each, all)? + ", ")).collect()
    };
    if message.name() == "Any" {
        return Ok("Any".to_owned());
    }
    if let [only] = &*fields
        && only.is_list()
        && named_value(only).is_none()
    {
        return Ok(format!("List({})", field(only, all)?));
    }
    if message.oneofs().len() == 0 {
        return Ok(format!("Object(&[{}])", codes(&fields)?));
    }
    let mut variants = Vec::new();
    for each in &fields {
        variants.push((condition(each.name()), field(each, all)?));
    }
    // The first one that fits is taken.
    variants.sort_by_key(|(condition, _)| *condition == "Always");
    let variants: String =
        variants.into_iter().map(|(when, field)| format!("(When::{when}, {field}), ")).collect();
    Ok(format!("OneOf(&[{variants}])"))
}

/// When a value has this form: the variant of `When`.
fn condition(variant: &str) -> &'static str {
    match variant {
        "reference" | "json_reference" => "Has(\"$ref\")",
        "body_parameter" => "IsIn(\"body\")",
        "path_parameter_sub_schema" => "IsIn(\"path\")",
        "number" => "Number",
        "boolean" => "Boolean",
        "string" => "String",
        _ => "Always",
    }
}

fn field(field: &FieldDescriptor, all: &[MessageDescriptor]) -> Result<String> {
    let (members, kind) = match named_value(field) {
        Some(value) if field.name().ends_with("_extension") => ("Extensions".to_owned(), value.kind()),
        Some(value) => ("Others".to_owned(), value.kind()),
        None => (format!("One({:?})", field.json_name()), field.kind()),
    };
    let scalar = match &kind {
        Kind::String => "String".to_owned(),
        Kind::Bool => "Bool".to_owned(),
        Kind::Double => "Double".to_owned(),
        Kind::Message(message) => {
            let id = all.iter().position(|each| each == message).ok_or("a message of another package")?;
            format!("Message({id})")
        }
        other => return Err(format!("{}: no field is of type {other:?}", field.full_name()).into()),
    };
    let (number, repeated) = (field.number(), field.is_list());
    Ok(format!(
        "Field {{ number: {number}, members: Members::{members}, repeated: {repeated}, kind: Kind::{scalar} }}"
    ))
}

/// The field `value` of the pairs in a list of `NamedThing`s.
fn named_value(field: &FieldDescriptor) -> Option<FieldDescriptor> {
    let Kind::Message(pair) = field.kind() else { return None };
    pair.name().strip_prefix("Named").and_then(|_| pair.get_field_by_name("value"))
}
