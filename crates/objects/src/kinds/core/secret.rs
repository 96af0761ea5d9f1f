//! Secrets, and the keys that each type requires.

pub mod tls;

use crate::gotext::decode_base64;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, count, text_column};
use crate::kinds::behavior::rules::format::config_key;
use crate::kinds::behavior::rules::same::IMMUTABLE;
use crate::kinds::behavior::selectable::field;
use crate::kinds::core::config_map::{DATA_MAX, decoded_len, stays_immutable};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("secrets", "Secret"),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update),
    warnings: KindWarnings::same(tls::warn),
    columns: &COLUMNS,
    fields: || SelectableFields::namespaced(vec![field("type")]),
    other_version: None,
};

const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let data = At::member(object, "data");
    let mut size = 0;
    for (key, value) in data.entries() {
        errors.invalid_each(&value, key, config_key(key));
        size += decoded_len(value.text());
    }
    if size > DATA_MAX {
        errors.too_long(&data, DATA_MAX);
    }
    // `stringData` is moved to `data` before the object is stored, and takes precedence.
    let texts = At::member(object, "stringData");
    let has = |key: &str| data.value().get(key).is_some() || texts.value().get(key).is_some();
    let require = |keys: &[&str], errors: &mut Errors| {
        for key in keys.iter().filter(|key| !has(key)) {
            errors.required(&data.key(key), "");
        }
    };
    match At::member(object, "type").text() {
        "kubernetes.io/service-account-token" => {
            let metadata = At::member(object, "metadata");
            let annotations = metadata.get("annotations");
            let account = annotations.key(ACCOUNT);
            errors.present(&account, "");
        }
        "kubernetes.io/dockercfg" => json_file(&data, &texts, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => json_file(&data, &texts, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require(&["username", "password"], errors);
        }
        "kubernetes.io/ssh-auth" => {
            let key = "ssh-privatekey";
            if data.key(key).text().is_empty() && texts.key(key).text().is_empty() {
                errors.required(&data.key(key), "");
            }
        }
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"], errors),
        _ => {}
    }
}

fn json_file(data: &At<'_, '_>, texts: &At<'_, '_>, key: &str, errors: &mut Errors) {
    let place = data.key(key);
    let content = match (texts.key(key).opt_text(), place.opt_text()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(text)) => decode_base64(text).unwrap_or_default(),
        (None, None) => return errors.required(&place, ""),
    };
    let why = match serde_json::from_slice(&content) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            crate::gotext::json_kind(&other)
        ),
        Err(_) => go_json_error(&content),
    };
    errors.invalid(&place, "<secret contents redacted>", &why);
}

/// The error of `encoding/json` for an invalid text, as far as its first byte determines it.
fn go_json_error(content: &[u8]) -> String {
    let first = content.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(byte) if !b"{[\"tfn-0123456789".contains(byte) => {
            format!("invalid character {} looking for beginning of value", go_char(*byte))
        }
        _ => "unexpected end of JSON input".to_owned(),
    }
}

fn go_char(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte if byte.is_ascii() && !byte.is_ascii_control() => format!("'{}'", char::from(byte)),
        byte if byte.is_ascii() => format!("'\\x{byte:02x}'"),
        byte => format!("'{}'", char::from(byte)),
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let kind = |object| At::member(object, "type").text_or("Opaque");
    if kind(new) != kind(old) {
        errors.invalid(&At::member(new, "type"), kind(new), IMMUTABLE);
    }
    stays_immutable(new, old, &["data"], errors);
    create(new, errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Type", "What the secret is used for.").at("type"),
        text_column("Data", "Number of entries.").of(|object, _| count(&object["data"]).into()),
        AGE,
    ],
    ..PLAIN
};
