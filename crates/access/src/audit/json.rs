//! Pieces of the JSON of events.

use crate::json::text::write_string;
use crate::user::User;

/// Appends a comma and the name of a member, which needs no escape. The compiler knows the bytes and their number.
macro_rules! key {
    ($out:expr, $name:literal) => {
        $out.extend_from_slice(concat!(",\"", $name, "\":").as_bytes())
    };
}

/// Appends a member whose value is a text.
macro_rules! text {
    ($out:expr, $name:literal, $value:expr) => {{
        key!($out, $name);
        $crate::json::text::write_string($out, $value);
    }};
}

/// The same, unless the text is empty.
macro_rules! text_if_any {
    ($out:expr, $name:literal, $value:expr) => {
        if !$value.is_empty() {
            text!($out, $name, $value);
        }
    };
}

/// Appends a member whose value is a text in which no character needs an escape.
macro_rules! plain_text {
    ($out:expr, $name:literal, $value:expr) => {{
        key!($out, $name);
        $crate::audit::json::write_plain($out, $value);
    }};
}

/// Appends a time as a member.
macro_rules! time {
    ($out:expr, $name:literal, $at:expr) => {{
        key!($out, $name);
        $out.push(b'"');
        $crate::gotext::push_micro_time($out, $at);
        $out.push(b'"');
    }};
}

pub(super) use {key, plain_text, text, text_if_any, time};

/// Appends an object whose members are appended with a comma before each: the first comma becomes the brace.
pub fn object(out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
    enclose(out, *b"{}", members);
}

/// Appends an array of texts.
pub fn texts(out: &mut Vec<u8>, texts: &[String]) {
    enclose(out, *b"[]", |out| {
        for text in texts {
            out.push(b',');
            write_string(out, text);
        }
    });
}

/// The same with texts in which no character needs an escape.
pub fn plain_texts<'a>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = &'a str>) {
    enclose(out, *b"[]", |out| {
        for text in texts {
            out.push(b',');
            write_plain(out, text);
        }
    });
}

/// Appends a string in which no character needs an escape.
pub fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Appends a comma and the name of a member that others have chosen.
pub fn any_key(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    write_string(out, name);
    out.push(b':');
}

pub fn user(out: &mut Vec<u8>, user: Option<&User>) {
    object(out, |out| {
        let Some(user) = user else { return };
        text_if_any!(out, "username", &user.name);
        text_if_any!(out, "uid", &user.uid);
        if !user.groups.is_empty() {
            key!(out, "groups");
            texts(out, &user.groups);
        }
        if !user.extra.is_empty() {
            key!(out, "extra");
            object(out, |out| {
                for (name, values) in &user.extra {
                    any_key(out, name);
                    texts(out, values);
                }
            });
        }
    });
}

fn enclose(out: &mut Vec<u8>, [open, close]: [u8; 2], inner: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    inner(out);
    match out.get_mut(start) {
        Some(comma) => *comma = open,
        None => out.push(open),
    }
    out.push(close);
}
