//! `format`: texts of well-known forms, and what is wrong with others (`apiserver/pkg/cel/library/format.go`).

use std::sync::LazyLock;

use rowplane_values::regexp::Regexp;

use super::opaque::Opaque;
use super::urls::Url;
use crate::time::Timestamp;
use crate::value::{Error, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Label,
    Subdomain,
    Label1035,
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

/// A form of text. Names that something is generated from may end with dashes.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    function: &'static str,
    name: &'static str,
    kind: Kind,
    prefix: bool,
    /// The length that upstream assumes for the format's regular expression when it counts the cost of a validation.
    pub pattern: u64,
}

const fn named(function: &'static str, name: &'static str, kind: Kind, pattern: u64) -> Format {
    Format { function, name, kind, prefix: false, pattern }
}

const fn prefix(function: &'static str, name: &'static str, kind: Kind, pattern: u64) -> Format {
    Format { function, name, kind, prefix: true, pattern }
}

const FORMATS: [Format; 13] = [
    named("dns1123Label", "DNS1123Label", Kind::Label, 30),
    named("dns1123Subdomain", "DNS1123Subdomain", Kind::Subdomain, 60),
    named("dns1035Label", "DNS1035Label", Kind::Label1035, 30),
    named("qualifiedName", "QualifiedName", Kind::QualifiedName, 60),
    prefix("dns1123LabelPrefix", "DNS1123LabelPrefix", Kind::Label, 30),
    prefix("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", Kind::Subdomain, 60),
    prefix("dns1035LabelPrefix", "DNS1035LabelPrefix", Kind::Label1035, 30),
    named("labelValue", "LabelValue", Kind::LabelValue, 40),
    named("uri", "URI", Kind::Uri, 1103),
    named("uuid", "uuid", Kind::Uuid, 70),
    named("byte", "byte", Kind::Byte, 84),
    named("date", "date", Kind::Date, 71),
    named("datetime", "datetime", Kind::DateTime, 71),
];

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Patterns that are used again and again.
struct Patterns {
    label: Regexp,
    subdomain: Regexp,
    label_1035: Regexp,
    key: Regexp,
    value: Regexp,
    uuid: Regexp,
    clock: Regexp,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let of = |pattern: &str| Regexp::compile(&format!("^(?:{pattern})$")).expect("a pattern");
    Patterns {
        label: of(LABEL),
        subdomain: of(SUBDOMAIN),
        label_1035: of(LABEL_1035),
        key: of(KEY),
        value: of(VALUE),
        uuid: of("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
        clock: of("([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"),
    }
});

impl Format {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The errors of a text that does not have the format.
    fn problems(&self, text: &str) -> Vec<String> {
        let masked;
        let text = if self.prefix && text.len() > 1 && text.ends_with('-') {
            masked = format!("{}a", text.get(..text.len() - 2).unwrap_or_default());
            &masked
        } else {
            text
        };
        let told = |valid: bool, why: &str| if valid { Vec::new() } else { vec![why.to_owned()] };
        match self.kind {
            Kind::Label => label(text),
            Kind::Subdomain => subdomain(text),
            Kind::Label1035 => label_1035(text),
            Kind::QualifiedName => qualified_name(text),
            Kind::LabelValue => label_value(text),
            Kind::Uri => Url::parse(text).err().into_iter().collect(),
            Kind::Uuid => told(PATTERNS.uuid.is_match(text), "does not match the UUID format"),
            Kind::Byte => told(is_base64(text), "invalid base64"),
            Kind::Date => told(Timestamp::parse_date(text).is_some(), "invalid date"),
            Kind::DateTime => told(is_date_time(text), "invalid datetime"),
        }
    }
}

fn too_long(text: &str, most: usize, unit: &str) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} {unit}"))
}

fn unmatched(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn label(text: &str) -> Vec<String> {
    let mut told: Vec<String> = too_long(text, 63, "characters").into_iter().collect();
    if !PATTERNS.label.is_match(text) {
        told.push(if PATTERNS.subdomain.is_match(text) {
            "must not contain dots".to_owned()
        } else {
            let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                        start and end with an alphanumeric character";
            unmatched(rule, LABEL, &["my-name", "123-abc"])
        });
    }
    told
}

fn subdomain(text: &str) -> Vec<String> {
    subdomain_in(text, "characters")
}

fn subdomain_in(text: &str, unit: &str) -> Vec<String> {
    let mut told: Vec<String> = too_long(text, 253, unit).into_iter().collect();
    if !PATTERNS.subdomain.is_match(text) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                    must start and end with an alphanumeric character";
        told.push(unmatched(rule, SUBDOMAIN, &["example.com"]));
    }
    told
}

fn label_1035(text: &str) -> Vec<String> {
    let mut told: Vec<String> = too_long(text, 63, "characters").into_iter().collect();
    if !PATTERNS.label_1035.is_match(text) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                    character, and end with an alphanumeric character";
        told.push(unmatched(rule, LABEL_1035, &["my-name", "abc-123"]));
    }
    told
}

fn qualified_name(text: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let parts: Vec<&str> = text.split('/').collect();
    let (mut told, name) = match parts[..] {
        [name] => (Vec::new(), name),
        ["", name] => (vec!["prefix part must be non-empty".to_owned()], name),
        [prefix, name] => {
            let told = subdomain_in(prefix, "bytes").into_iter().map(|why| format!("prefix part {why}"));
            (told.collect(), name)
        }
        _ => {
            let why = unmatched(KEY_RULE, KEY, &examples);
            let end = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {why} {end}")];
        }
    };
    if name.is_empty() {
        told.push("name part must be non-empty".to_owned());
    }
    told.extend(too_long(name, 63, "bytes").map(|why| format!("name part {why}")));
    if !PATTERNS.key.is_match(name) {
        told.push(format!("name part {}", unmatched(KEY_RULE, KEY, &examples)));
    }
    told
}

fn label_value(text: &str) -> Vec<String> {
    let mut told: Vec<String> = too_long(text, 63, "bytes").into_iter().collect();
    if !PATTERNS.value.is_match(text) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                    must start and end with an alphanumeric character";
        told.push(unmatched(rule, VALUE, &["MyValue", "my_value", "12345"]));
    }
    told
}

/// Whole groups of four letters, with padding; nothing is not base64.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let letters = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && letters
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    match (parts.next(), parts.next()) {
        (Some(date), Some(clock)) => Timestamp::parse_date(date).is_some() && is_clock(clock),
        _ => false,
    }
}

fn is_clock(text: &str) -> bool {
    let below = |at: usize, most: u32| {
        text.get(at..at + 2).and_then(|two| two.parse::<u32>().ok()).is_some_and(|number| number <= most)
    };
    PATTERNS.clock.is_match(text) && below(0, 23) && below(3, 59) && below(6, 59)
}

fn value<'a>(of: Format) -> Value<'a> {
    Value::Opaque(Opaque::Format(of).into())
}

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    let named = |name: &str| FORMATS.iter().find(|format| format.function == name).copied();
    if function == "format.named" {
        let found = named(arguments.first()?.as_str()?);
        return Some(Ok(found.map_or_else(Value::none, |format| Value::some(value(format)))));
    }
    if let Some(name) = function.strip_prefix("format.") {
        return named(name).map(|format| Ok(value(format)));
    }
    let (Value::Opaque(opaque), Value::String(text)) = (arguments.first()?, arguments.get(1)?) else {
        return None;
    };
    let Opaque::Format(format) = &**opaque else { return None };
    let told = format.problems(text);
    Some(Ok(if told.is_empty() { Value::none() } else { Value::some(Value::texts(told)) }))
}
