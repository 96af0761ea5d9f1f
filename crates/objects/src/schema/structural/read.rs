//! Reads structural schemas.

use std::sync::Arc;

use super::check::{Bound, Check};
use super::coerce::coerce_default;
use super::intern::InternTable;
use super::prune::Pruner;
use super::{
    Additional, Format, ListType, MAX_DEPTH, Node, NotStructural, Properties, SchemaNode, ValueType,
};
use crate::regexp::Room;
use crate::schema::types::GoShape;
use crate::tree::{Map, Text, Value};

/// A whole schema: its object has kind, apiVersion and metadata whatever it says.
pub fn root(schema: &Map, metadata: &GoShape, known: &mut InternTable) -> Result<Node, NotStructural> {
    let mut reader = Reader { path: Vec::new(), metadata, known, room: Arc::default() };
    let root = SchemaNode { embedded: true, ..reader.node(schema)? };
    Ok(reader.share(root))
}

struct Reader<'r> {
    /// The path to the schema that is being read.
    path: Vec<String>,
    metadata: &'r GoShape,
    known: &'r mut InternTable,
    /// For the programs of patterns that no schema has had before.
    room: Arc<Room>,
}

impl Reader<'_> {
    fn node(&mut self, schema: &Map) -> Result<SchemaNode, NotStructural> {
        if self.path.len() > MAX_DEPTH {
            return Err(NotStructural::TooDeep);
        }
        crate::tree::work::count(1 + schema.len());
        let value_type = self.value_type(schema)?;
        let int_or_string = self.flag(schema, "x-kubernetes-int-or-string")?;
        let format: Text = self.text(schema, "format")?.into();
        Ok(SchemaNode {
            value_type,
            odd_type: match value_type {
                ValueType::Odd => Some(self.text(schema, "type")?.into()),
                _ => None,
            },
            nullable: self.flag(schema, "nullable")?,
            preserves_unknown: self.flag(schema, "x-kubernetes-preserve-unknown-fields")?,
            embedded: self.flag(schema, "x-kubernetes-embedded-resource")?,
            int_or_string,
            is_atomic_map: self.text(schema, "x-kubernetes-map-type")? == "atomic",
            known_format: Format::of(if int_or_string { ValueType::Any } else { value_type }, &format),
            format,
            properties: self.properties(schema)?,
            additional: self.additional(schema)?,
            items: self.schema(schema, "items")?,
            // A null is no default.
            default: schema.get("default").filter(|default| !default.is_null()).cloned().map(Arc::new),
            list_type: self.list_type(schema)?,
            checks: self.checks(schema)?,
        })
    }

    /// A default loses what its own schema does not know.
    fn share(&mut self, mut node: SchemaNode) -> Node {
        if let Some(default) = node.default.take() {
            let mut pruned = (*default).clone();
            Pruner::default().value(Some(&node), &mut pruned, node.unknown_members());
            coerce_default(&node, &mut pruned, self.metadata);
            node.default = Some(if pruned == *default { default } else { Arc::new(pruned) });
        }
        self.known.node(node)
    }

    fn value_type(&self, schema: &Map) -> Result<ValueType, NotStructural> {
        self.text(schema, "type").map(ValueType::named)
    }

    fn properties(&mut self, schema: &Map) -> Result<Properties, NotStructural> {
        let properties = match schema.get("properties") {
            None | Some(Value::Null) => return Ok(Properties::default()),
            Some(properties) => properties.as_object(),
        };
        let properties = properties.ok_or_else(|| self.misfit("properties", "an object"))?;
        let mut read = Vec::with_capacity(properties.len());
        for (name, property) in properties {
            let property = property.as_object().ok_or_else(|| self.misfit("properties", "schemas"))?;
            read.push((name.clone(), self.below(name, property)?));
        }
        read.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Properties(read.into()))
    }

    fn additional(&mut self, schema: &Map) -> Result<Additional, NotStructural> {
        Ok(match schema.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unsaid,
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            Some(_) => match self.schema(schema, "additionalProperties")? {
                Some(schema) => Additional::Schema(schema),
                None => Additional::Unsaid,
            },
        })
    }

    fn schema(&mut self, schema: &Map, member: &'static str) -> Result<Option<Node>, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(below)) => self.below(member, below).map(Some),
            Some(_) => Err(self.misfit(member, "a schema")),
        }
    }

    fn schemas(&mut self, schema: &Map, member: &'static str) -> Result<Box<[Node]>, NotStructural> {
        let list = self.list(schema, member, "a list of schemas")?;
        let mut read = Vec::with_capacity(list.len());
        for one in list {
            let one = one.as_object().ok_or_else(|| self.misfit(member, "a list of schemas"))?;
            read.push(self.below(member, one)?);
        }
        Ok(read.into())
    }

    fn below(&mut self, name: &str, schema: &Map) -> Result<Node, NotStructural> {
        self.path.push(name.to_owned());
        let read = self.node(schema)?;
        self.path.pop();
        Ok(self.share(read))
    }

    fn list_type(&self, schema: &Map) -> Result<ListType, NotStructural> {
        Ok(match self.text(schema, "x-kubernetes-list-type")? {
            "set" => ListType::Set,
            "map" => ListType::Map(self.texts(schema, "x-kubernetes-list-map-keys")?),
            _ => ListType::Atomic,
        })
    }

    /// In the order of [`Check`].
    fn checks(&mut self, schema: &Map) -> Result<Box<[Check]>, NotStructural> {
        let mut checks = Vec::new();
        for (member, check) in
            [("anyOf", Check::AnyOf as fn(_) -> _), ("oneOf", Check::OneOf), ("allOf", Check::AllOf)]
        {
            let schemas = self.schemas(schema, member)?;
            checks.extend((!schemas.is_empty()).then(|| check(schemas)));
        }
        checks.extend(self.schema(schema, "not")?.map(Check::Not));
        checks.extend(self.integer(schema, "maxLength")?.map(Check::MaxLength));
        checks.extend(self.integer(schema, "minLength")?.map(Check::MinLength));
        let pattern = self.text(schema, "pattern")?;
        checks.extend((!pattern.is_empty()).then(|| Check::Pattern(self.known.pattern(pattern, &self.room))));
        checks.extend(self.number(schema, "multipleOf")?.map(Check::MultipleOf));
        let exclusive = self.flag(schema, "exclusiveMinimum")?;
        checks.extend(self.number(schema, "minimum")?.map(|bound| Check::Minimum { bound, exclusive }));
        let exclusive = self.flag(schema, "exclusiveMaximum")?;
        checks.extend(self.number(schema, "maximum")?.map(|bound| Check::Maximum { bound, exclusive }));
        checks.extend(self.integer(schema, "minItems")?.map(Check::MinItems));
        checks.extend(self.integer(schema, "maxItems")?.map(Check::MaxItems));
        let members = self.list(schema, "enum", "a list")?;
        checks.extend((!members.is_empty()).then(|| Check::Enum(members.into())));
        checks.extend(self.integer(schema, "minProperties")?.map(Check::MinProperties));
        checks.extend(self.integer(schema, "maxProperties")?.map(Check::MaxProperties));
        let required = self.texts(schema, "required")?;
        checks.extend((!required.is_empty()).then(|| Check::Required(required)));
        Ok(checks.into())
    }

    fn list<'s>(
        &self,
        schema: &'s Map,
        member: &'static str,
        want: &'static str,
    ) -> Result<&'s [Value], NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.misfit(member, want)),
        }
    }

    fn texts(&self, schema: &Map, member: &'static str) -> Result<Box<[Text]>, NotStructural> {
        let texts = self.list(schema, member, "a list of strings")?.iter().map(Value::as_str);
        let texts: Option<Box<[Text]>> = texts.map(|text| text.map(Into::into)).collect();
        texts.ok_or_else(|| self.misfit(member, "a list of strings"))
    }

    fn text<'s>(&self, schema: &'s Map, member: &'static str) -> Result<&'s str, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(""),
            Some(value) => value.as_str().ok_or_else(|| self.misfit(member, "a string")),
        }
    }

    fn flag(&self, schema: &Map, member: &'static str) -> Result<bool, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.misfit(member, "a boolean")),
        }
    }

    fn integer(&self, schema: &Map, member: &'static str) -> Result<Option<i64>, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or_else(|| self.misfit(member, "an integer")),
        }
    }

    fn number(&self, schema: &Map, member: &'static str) -> Result<Option<Bound>, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(Bound(number))),
                None => Err(self.misfit(member, "a number")),
            },
        }
    }

    fn misfit(&self, member: &'static str, want: &'static str) -> NotStructural {
        NotStructural::Misfit { path: self.path.join("."), member, want }
    }
}
