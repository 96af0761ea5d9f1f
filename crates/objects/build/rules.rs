//! Turns the rules of fields in `proto/` into the tables of declarative validation that
//! `kinds::behavior::rules::declarative` walks along: a Rust static for each struct with rules.

use std::fmt::Write;

use crate::types::{Field, Message, Types};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Rules after which no other is asked of the field.
const STOPS: [&str; 6] = ["required", "optional", "forbidden", "immutable", "update", "maxItems"];

/// The statics `S<id>` of all structs with rules, and `KINDS`: the ids of kinds with theirs.
pub fn tables(types: &Types) -> Result<String> {
    let ruled = ruled(types);
    let (mut out, mut kinds) = (String::new(), String::new());
    for (id, message) in types.messages.iter().enumerate().filter(|(id, _)| ruled[*id]) {
        emit(id, message, &ruled, &mut out).map_err(|why| format!("{}: {why}", message.name))?;
        if message.role_code != "Part" {
            write!(kinds, "({id}, &S{id}), ")?;
        }
    }
    writeln!(out, "static KINDS: &[(usize, &Struct)] = &[{kinds}];")?;
    Ok(out)
}

/// Whether each message has rules that can find anything, in itself or below.
fn ruled(types: &Types) -> Vec<bool> {
    let mut ruled = vec![false; types.messages.len()];
    loop {
        let next: Vec<bool> = types
            .messages
            .iter()
            .map(|message| message.fields.iter().any(|field| asks(field, &ruled)))
            .collect();
        if next == ruled {
            return ruled;
        }
        ruled = next;
    }
}

/// Whether a field has a rule, or a struct with rules. That a field is optional finds nothing by itself.
fn asks(field: &Field, ruled: &[bool]) -> bool {
    field.rules.iter().any(|rule| rule != "optional") || field.message.is_some_and(|id| ruled[id])
}

fn emit(id: usize, message: &Message, ruled: &[bool], out: &mut String) -> Result<()> {
    let union = fields_with("unionMember", message);
    let discriminators = fields_with("modeDiscriminator", message);
    let mut modes = String::new();
    for field in &message.fields {
        for (value, rule) in
            field.rules.iter().filter_map(|rule| rule.strip_prefix("ifMode(")?.split_once(")="))
        {
            let by = discriminators.first().ok_or("a mode without a discriminator")?;
            let (member, required) = (name(field), rule == "required");
            write!(
                modes,
                "Mode {{ member: {member:?}, by: {by:?}, value: {value:?}, required: {required} }}, "
            )?;
        }
    }
    writeln!(out, "static S{id}: Struct = Struct {{ union: &{union:?}, modes: &[{modes}], members: &[")?;
    for field in message.fields.iter().filter(|field| asks(field, ruled)) {
        emit_member(field, ruled, out).map_err(|why| format!("{}: {why}", field.json_name))?;
    }
    out.push_str("] };\n");
    Ok(())
}

fn fields_with<'m>(rule: &str, message: &'m Message) -> Vec<&'m str> {
    message.fields.iter().filter(|field| field.rules.iter().any(|own| own == rule)).map(name).collect()
}

/// The name of the field in JSON; empty if the members of its struct stand among those of its parent.
fn name(field: &Field) -> &str {
    if field.inline { "" } else { &field.json_name }
}

fn emit_member(field: &Field, ruled: &[bool], out: &mut String) -> Result<()> {
    let shape = match field.cardinality {
        "Single" if field.pointer => "Pointer",
        "Single" if field.message.is_some() => "Struct",
        "Single" => "Scalar",
        other => other,
    };
    let of_member = |rule: &&String| {
        *rule != "unionMember" && *rule != "modeDiscriminator" && !rule.starts_with("ifMode(")
    };
    let (mut stops, mut rules) = (String::new(), String::new());
    for rule in field.rules.iter().filter(of_member) {
        let code = code(rule, field)?;
        let into =
            if STOPS.contains(&rule.split('=').next().unwrap_or(rule)) { &mut stops } else { &mut rules };
        write!(into, "{code}, ")?;
    }
    let keys = field.rules.iter().find_map(|rule| keys(rule));
    let keys = keys.map_or("None".to_owned(), |keys| format!("Some(&{keys:?})"));
    let inside =
        field.message.filter(|id| ruled[*id]).map_or("None".to_owned(), |id| format!("Some(&S{id})"));
    let name = name(field);
    writeln!(
        out,
        "Member {{ name: {name:?}, shape: Shape::{shape}, keys: {keys}, stops: &[{stops}], rules: &[{rules}], \
         inside: {inside} }},"
    )?;
    Ok(())
}

/// The fields that tell elements of a list apart; none if they are texts that have to differ.
fn keys(rule: &str) -> Option<Vec<&str>> {
    match rule.strip_prefix("unique")? {
        "" => Some(Vec::new()),
        names => Some(names.strip_prefix('=')?.split(',').collect()),
    }
}

/// The rule as a Rust expression.
fn code(rule: &str, field: &Field) -> Result<String> {
    if let Some(keys) = keys(rule) {
        return Ok(format!("Rule::Unique(&{keys:?})"));
    }
    let (name, argument) = rule.split_once('=').unwrap_or((rule, ""));
    Ok(match (name, argument) {
        ("required", "") => "Rule::Required".to_owned(),
        ("optional", "") => "Rule::Optional".to_owned(),
        ("forbidden", "") => "Rule::Forbidden".to_owned(),
        ("immutable", "") => "Rule::Immutable".to_owned(),
        ("update", "NoSet" | "NoUnset" | "NoModify") => format!("Rule::{argument}"),
        ("minimum", number) => format!("Rule::Minimum({})", number.parse::<i64>()?),
        ("maximum", number) => format!("Rule::Maximum({})", number.parse::<i64>()?),
        ("maxItems", number) => format!("Rule::MaxItems({})", number.parse::<usize>()?),
        ("maxLength", number) => format!("Rule::MaxLength({})", number.parse::<usize>()?),
        ("maxBytes", number) => format!("Rule::MaxBytes({})", number.parse::<usize>()?),
        ("enum", "") if !field.allowed.is_empty() => {
            let mut allowed = field.allowed.clone();
            allowed.sort();
            format!("Rule::Enum(&{allowed:?})")
        }
        ("format", format) => {
            let format = format.strip_prefix("k8s-").ok_or("an unknown format")?;
            format!("Rule::Format(format::{})", format.replace('-', "_"))
        }
        ("eachVal", rule) => format!("Rule::EachVal(&{})", code(rule, field)?),
        ("eachKey", rule) => format!("Rule::EachKey(&{})", code(rule, field)?),
        _ => return Err(format!("an unknown rule {rule}").into()),
    })
}
