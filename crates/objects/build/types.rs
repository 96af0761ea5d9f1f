//! Turns the descriptors of `proto/` into the table that `schema::types` holds: a Rust expression for each message.
//!
//! Assumptions of the program about `proto/` are checked here, so that a mistake there fails the build.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Debug, Write};

use prost_reflect::prost_types::FieldDescriptorProto;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value,
};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A message's fields that need a look are the bits of a `u64`.
const MAX_FIELDS: usize = 64;
/// Field numbers index a list.
const MAX_NUMBER: u32 = 1000;
/// A longer text is not stored in place by `tree::Text`.
const MAX_INLINE: usize = 23;

/// Reads the messages of `proto/`.
pub fn read(pool: &DescriptorPool) -> Result<Types> {
    let files = pool.files().filter(|file| file.package_name() != "google.protobuf");
    // Options are no types.
    let messages: Vec<MessageDescriptor> = files
        .filter(|file| file.package_name() != "rowplane")
        .flat_map(|file| file.messages().collect::<Vec<_>>())
        .collect();
    let ids = messages.iter().enumerate().map(|(id, message)| (message.full_name().to_owned(), id)).collect();
    let messages = messages.iter().map(|message| Message::read(message, &ids)).collect::<Result<_>>()?;
    Ok(Types { messages })
}

/// The messages of `proto/`; ids of messages are places in the list.
pub struct Types {
    pub messages: Vec<Message>,
}

/// Parts that are Rust expressions already end in `code`.
pub struct Message {
    pub name: String,
    package: String,
    format: String,
    pub role_code: String,
    merging_code: String,
    unions_code: String,
    pub fields: Vec<Field>,
}

pub struct Field {
    name: String,
    pub json_name: String,
    number: u32,
    kind_code: String,
    /// The message of the field, of its elements or of its values.
    pub message: Option<usize>,
    is_bytes: bool,
    pub cardinality: &'static str,
    pub pointer: bool,
    always: bool,
    omit_zero: bool,
    pub inline: bool,
    required: bool,
    default: Option<String>,
    merging_code: String,
    strategic_code: String,
    pub allowed: Vec<String>,
    go_type: Option<String>,
    go_collection: Option<String>,
    /// Rules of declarative validation, as `proto/options.proto` spells them.
    pub rules: Vec<String>,
}

/// The options of `proto/options.proto` that a descriptor has.
struct Options(DynamicMessage);

impl Options {
    fn new(options: DynamicMessage, of: &str) -> Result<Self> {
        if options.unknown_fields().next().is_some() {
            return Err(format!("{of} has an option that proto/options.proto does not declare").into());
        }
        Ok(Self(options))
    }

    fn get(&self, name: &str) -> Option<Value> {
        let mut options = self.0.extensions();
        options.find(|(option, _)| option.name() == name).map(|(_, value)| value.clone())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(|value| value.as_bool()).unwrap_or_default()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|value| value.as_str().map(str::to_owned))
    }

    fn list(&self, name: &str) -> Vec<Value> {
        self.get(name).and_then(|value| value.as_list().map(<[Value]>::to_vec)).unwrap_or_default()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

impl Message {
    fn read(message: &MessageDescriptor, ids: &HashMap<String, usize>) -> Result<Self> {
        let of = message.full_name();
        let options = Options::new(message.options(), of)?;
        let declared = &message.descriptor_proto().field;
        if declared.len() > MAX_FIELDS {
            return Err(format!("{of} has more than {MAX_FIELDS} fields").into());
        }
        let field = |declared: &FieldDescriptorProto| {
            let field = message.get_field_by_name(declared.name()).ok_or("a field without a descriptor")?;
            Field::read(&field, ids).map_err(|why| format!("{}: {why}", field.full_name()).into())
        };
        let fields: Vec<Field> = declared.iter().map(field).collect::<Result<_>>()?;
        let names: BTreeSet<&str> = fields.iter().map(|field| &*field.json_name).collect();
        Ok(Self {
            name: message.name().to_owned(),
            package: message.package_name().to_owned(),
            format: format(&options, of)?,
            role_code: role(message, &options)?,
            merging_code: merging(options.text("struct_type"), &[])?,
            unions_code: unions(&options, &names).map_err(|why| format!("{of}: {why}"))?,
            fields,
        })
    }
}

/// The variant of `Format` that has the name of the option's value.
fn format(options: &Options, of: &str) -> Result<String> {
    let Some(Value::EnumNumber(number)) = options.get("format") else { return Ok("Object".to_owned()) };
    let formats = options.0.descriptor().parent_pool().get_enum_by_name("rowplane.Format");
    let value =
        formats.and_then(|formats| formats.get_value(number)).ok_or(format!("{of} has no known format"))?;
    let words = value.name().trim_start_matches("FORMAT_").split('_');
    Ok(words.map(|word| word[..1].to_owned() + &word[1..].to_ascii_lowercase()).collect())
}

fn role(message: &MessageDescriptor, options: &Options) -> Result<String> {
    if !options.flag("kind") {
        return Ok("Part".to_owned());
    }
    let file = Options::new(message.parent_file().options(), message.full_name())?;
    let group = file.text("group").unwrap_or_default();
    Ok(match file.text("version") {
        None => "SharedKind".to_owned(),
        Some(version) if group.is_empty() => format!("Kind(GroupVersion::fixed({version:?}))"),
        Some(version) => format!("Kind(GroupVersion::fixed({:?}))", format!("{group}/{version}")),
    })
}

fn merging(word: Option<String>, keys: &[String]) -> Result<String> {
    let word = word.unwrap_or_default();
    if keys.is_empty() == (word == "map") {
        return Err("a list of type map has keys, and nothing else has".into());
    }
    Ok(match &*word {
        "" => "Unsaid".to_owned(),
        "atomic" => "Atomic".to_owned(),
        "granular" => "Granular".to_owned(),
        "set" => "Set".to_owned(),
        "map" => format!("Map(&{keys:?})"),
        other => return Err(format!("there is no way to merge named {other}").into()),
    })
}

/// `names` are those of the message's fields in JSON.
fn unions(options: &Options, names: &BTreeSet<&str>) -> Result<String> {
    let text = |message: &DynamicMessage, name: &str| {
        let value = message.get_field_by_name(name)?;
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let mut code = String::new();
    for union in options.list("union") {
        let union = union.as_message().ok_or("a union is a message")?;
        let discriminator = text(union, "discriminator");
        let members = union.get_field_by_name("members").ok_or("a union has members")?;
        let member = |value: &Value| {
            let member = value.as_message()?;
            Some((text(member, "field")?, text(member, "value").unwrap_or_default()))
        };
        let members: Vec<(String, String)> =
            members.as_list().into_iter().flatten().filter_map(member).collect();
        let mut fields = members.iter().map(|(field, _)| field).chain(&discriminator);
        if let Some(unknown) = fields.find(|field| !names.contains(&***field)) {
            return Err(format!("a union names {unknown}, which is no field").into());
        }
        write!(code, "Union {{ discriminator: {discriminator:?}, members: &{members:?} }}, ")?;
    }
    Ok(format!("&[{code}]"))
}

impl Field {
    fn read(field: &FieldDescriptor, ids: &HashMap<String, usize>) -> Result<Self> {
        let options = Options::new(field.options(), field.full_name())?;
        if field.number() > MAX_NUMBER {
            return Err(format!("the number is above {MAX_NUMBER}").into());
        }
        let (cardinality, kind) = match field.kind() {
            Kind::Message(entry) if entry.is_map_entry() => ("Map", entry.map_entry_value_field().kind()),
            kind if field.is_list() => ("List", kind),
            kind => ("Single", kind),
        };
        let message = match &kind {
            Kind::Message(message) => Some(*ids.get(message.full_name()).ok_or("an unknown message")?),
            _ => None,
        };
        let inline = options.flag("inline");
        if inline && (message.is_none() || cardinality != "Single") {
            return Err("only a struct's members can stand among those of its parent".into());
        }
        let default = options.text("default");
        if let Some(default) = &default {
            serde_json::from_str::<serde_json::Value>(default)?;
        }
        let keys = options.texts("list_map_keys");
        if let (Kind::Message(element), Some(key)) = (&kind, keys.first())
            && !keys.iter().all(|key| has_member(element, key))
        {
            return Err(format!("the elements have no such key as {key}").into());
        }
        Ok(Self {
            name: field.name().to_owned(),
            json_name: field.json_name().to_owned(),
            number: field.number(),
            kind_code: kind_code(&kind, message)?,
            message,
            is_bytes: kind == Kind::Bytes,
            cardinality,
            pointer: options.flag("pointer"),
            always: options.flag("always"),
            omit_zero: options.flag("omit_zero"),
            inline,
            required: options.flag("required"),
            default,
            merging_code: merging(options.text("list_type").or(options.text("map_type")), &keys)?,
            strategic_code: strategic(&options),
            allowed: options.texts("allowed"),
            go_type: options.text("go_type"),
            go_collection: options.text("go_collection"),
            rules: options.texts("rule"),
        })
    }
}

/// Whether the JSON of a message has the member, also by a struct whose members stand among its own.
fn has_member(message: &MessageDescriptor, name: &str) -> bool {
    message.fields().any(|field| {
        let inline = || Options(field.options()).flag("inline");
        let lends = |lender: &MessageDescriptor| has_member(lender, name);
        field.json_name() == name || inline() && field.kind().as_message().is_some_and(lends)
    })
}

fn kind_code(kind: &Kind, message: Option<usize>) -> Result<String> {
    Ok(match (kind, message) {
        (_, Some(id)) => format!("Message(MessageId({id}))"),
        (Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::String | Kind::Bytes, None) => {
            let name = format!("{kind:?}");
            name[..1].to_ascii_uppercase() + &name[1..]
        }
        (other, None) => return Err(format!("there are no fields of type {other:?}").into()),
    })
}

fn strategic(options: &Options) -> String {
    let (strategy, merge_key) = (options.text("patch_strategy"), options.text("patch_merge_key"));
    if strategy.is_none() && merge_key.is_none() {
        return "None".to_owned();
    }
    let (strategy, merge_key) = (strategy.unwrap_or_default(), merge_key.unwrap_or_default());
    format!("Some(&Strategic {{ strategy: {strategy:?}, merge_key: {merge_key:?} }})")
}

/// A member of a message's JSON: the message that declares the field, the field's index in that message, and the inlined
/// messages on the way to it.
struct Member {
    message: usize,
    index: usize,
    lenders: Vec<usize>,
}

impl Types {
    /// The table of types, as a Rust array.
    pub fn table(&self) -> Result<String> {
        let mut out = String::from("[\n");
        for id in 0..self.messages.len() {
            self.emit(id, &mut out)?;
        }
        out.push_str("]\n");
        Ok(out)
    }

    fn emit(&self, id: usize, out: &mut String) -> Result<()> {
        let Message { name, package, format, role_code, merging_code, unions_code, fields } =
            &self.messages[id];
        let mut by_number: Vec<usize> = (0..fields.len()).collect();
        by_number.sort_by_key(|&index| fields[index].number);
        let numbers = by_number.last().map_or(0, |&last| fields[last].number as usize + 1);
        let mut index = vec![0; numbers];
        for (place, field) in (1..).zip(fields) {
            index[field.number as usize] = place;
        }
        let printed = |field: &Field| field.inline || self.absence(field) != "Silent";
        let unasked = fields.iter().enumerate().filter(|(_, field)| printed(field));
        let unasked = unasked.fold(0u64, |bits, (index, _)| bits | 1 << index);
        writeln!(
            out,
            "Message {{ name: {name:?}, package: {package:?}, format: Format::{format}, role: Role::{role_code}, \
             merging: Merging::{merging_code}, unions: {unions_code}, by_number: &{by_number:?}, index: &{index:?}, \
             unasked: FieldBits({unasked}), fields: &["
        )?;
        for field in fields {
            self.emit_field(field, out)?;
        }
        out.push_str("], members: &[\n");
        for Member { message, index, lenders } in self.members(id) {
            let lenders: String = lenders.iter().map(|id| format!("MessageId({id}), ")).collect();
            writeln!(
                out,
                "Member {{ message: MessageId({message}), index: {index}, lenders: &[{lenders}] }},"
            )?;
        }
        out.push_str("] },\n");
        Ok(())
    }

    fn emit_field(&self, field: &Field, out: &mut String) -> Result<()> {
        let inline_text = if field.json_name.len() <= MAX_INLINE { "new_inline" } else { "new_static" };
        let mut member = |name: &str, value: &dyn Debug| write!(out, "{name}: {value:?}, ");
        member("Field { name", &field.name)?;
        member("number", &field.number)?;
        member("pointer", &field.pointer)?;
        member("always", &field.always)?;
        member("omit_zero", &field.omit_zero)?;
        member("inline", &field.inline)?;
        member("required", &field.required)?;
        member("default", &field.default)?;
        member("go_type", &field.go_type)?;
        member("go_collection", &field.go_collection)?;
        writeln!(
            out,
            "json_name: Text::{inline_text}({:?}), kind: FieldKind::{}, cardinality: Cardinality::{}, \
             absence: Absence::{}, merging: Merging::{}, strategic: {}, allowed: &{:?} }},",
            field.json_name,
            field.kind_code,
            field.cardinality,
            self.absence(field),
            field.merging_code,
            field.strategic_code,
            field.allowed,
        )?;
        Ok(())
    }

    /// The variant of `Absence` for a field: what Go prints where it was never set.
    fn absence(&self, field: &Field) -> &'static str {
        let format = field.message.map(|id| &*self.messages[id].format);
        let slice = field.is_bytes || format == Some("List");
        let nil = field.pointer || field.cardinality != "Single" || slice;
        match (nil, field.always) {
            (false, _) if format.is_some() => "Zero",
            (_, false) => "Silent",
            (true, true) => "Null",
            (false, true) => "Zero",
        }
    }

    /// The members of a message's JSON: its fields, and those of structs that lend theirs.
    fn members(&self, id: usize) -> Vec<Member> {
        let mut members = Vec::new();
        for (index, field) in self.messages[id].fields.iter().enumerate() {
            match field.message {
                Some(lender) if field.inline => {
                    members.extend(self.members(lender).into_iter().map(|member| Member {
                        lenders: [&[lender][..], &member.lenders].concat(),
                        ..member
                    }))
                }
                _ => members.push(Member { message: id, index, lenders: Vec::new() }),
            }
        }
        members
    }
}
