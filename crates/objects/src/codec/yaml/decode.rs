//! The events of a document, put together to a value in one pass (go-yaml's `parser` and `decoder`).

use super::Document;
use super::aliases::{Aliases, Anchored};
use super::events::{Event, Events};
use super::mapping::{Mapping, Repetitions};
use super::node::{Form, Measure, Node, Origin};
use super::resolve::{self, Resolved};
use crate::tree::{Number, Text, Value};

/// How deeply collections nest at most, as in JSON. Upstream's limit is 10,000.
const MAX_DEPTH: usize = 127;

/// The first document of a text; null if there is none. The error is upstream's whole text.
pub(super) fn first_document(text: &[u8]) -> Result<Document, String> {
    let mut events = Events::of(text);
    let mut decoder = Decoder::default();
    loop {
        let (event, line) = events.next()?;
        if !decoder.event(event, usize::try_from(line).unwrap_or(usize::MAX).saturating_add(1))? {
            return decoder.finish();
        }
    }
}

/// A collection that has not ended.
struct Open {
    line: usize,
    anchor: Option<String>,
    /// How much had been decoded and told before it.
    before: Measure,
    content: Content,
}

enum Content {
    Sequence { items: Vec<Value>, members: Option<Vec<Vec<Origin>>> },
    Mapping(Mapping),
}

#[derive(Default)]
struct Decoder {
    open: Vec<Open>,
    depth: usize,
    whole: Value,
    aliases: Aliases,
    repetitions: Repetitions,
    /// Why the document cannot be decoded. The rest is only parsed then, since an error of the parser comes first.
    failed: Option<String>,
    /// Why the value is no JSON, which go-yaml's caller finds out: keys first, then numbers.
    unsupported_key: Option<String>,
    unsupported_value: Option<String>,
}

impl Decoder {
    /// Takes in an event; false at the end of the document.
    fn event(&mut self, event: Event, line: usize) -> Result<bool, String> {
        match event {
            Event::DocumentStart(Some(version)) if version != (1, 1) => {
                return Err("yaml: found incompatible YAML document".to_owned());
            }
            Event::DocumentStart(_) => {}
            Event::End => return Ok(false),
            Event::Alias(anchor) => {
                if !self.aliases.knows(&anchor) {
                    return Err(format!("yaml: unknown anchor '{anchor}' referenced"));
                }
                self.step(|decoder| decoder.alias(&anchor, line));
            }
            Event::Scalar { anchor, tag, text, is_plain } => {
                self.declare(anchor.as_deref());
                let tag = tag.unwrap_or_default();
                self.step(|decoder| decoder.scalar(anchor, &tag, text, is_plain, line));
            }
            Event::SequenceStart(anchor) => self.start(anchor, line, false)?,
            Event::MappingStart(anchor) => self.start(anchor, line, true)?,
            Event::CollectionEnd => {
                self.depth -= 1;
                self.step(Self::end);
            }
        }
        Ok(true)
    }

    fn finish(self) -> Result<Document, String> {
        match self.failed.or(self.unsupported_key).or(self.unsupported_value) {
            Some(why) => Err(why),
            None => Ok(Document { value: self.whole, repeated: self.repetitions.told() }),
        }
    }

    /// Does a step unless an earlier one has failed.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<(), String>) {
        if self.failed.is_none() {
            self.failed = step(self).err();
        }
    }

    fn declare(&mut self, anchor: Option<&str>) {
        if let Some(anchor) = anchor {
            self.aliases.declare(anchor);
        }
    }

    fn measure(&self) -> Measure {
        Measure { nodes: self.aliases.nodes, bytes: self.aliases.bytes, told: self.repetitions.len() }
    }

    fn start(&mut self, anchor: Option<String>, line: usize, is_mapping: bool) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("yaml: line {line}: exceeded max depth of {MAX_DEPTH}"));
        }
        self.declare(anchor.as_deref());
        self.step(|decoder| {
            let before = decoder.measure();
            decoder.aliases.count(1, 0)?;
            let content = if is_mapping {
                Content::Mapping(Mapping::default())
            } else {
                let merged = decoder.parent().is_some_and(Mapping::is_merging);
                Content::Sequence { items: Vec::new(), members: merged.then(Vec::new) }
            };
            decoder.open.push(Open { line, anchor, before, content });
            Ok(())
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(Open { line, anchor, before, content }) = self.open.pop() else { return Ok(()) };
        let (value, form) = match content {
            Content::Sequence { items, members } => {
                let members = members.unwrap_or_default();
                (Value::Array(items), Form::Sequence { members, is_alias: false })
            }
            Content::Mapping(mapping) => {
                let (value, members) = mapping.end();
                (value, Form::Mapping { members })
            }
        };
        self.complete(Node { value, line, form }, anchor, before)
    }

    fn scalar(
        &mut self,
        anchor: Option<String>,
        tag: &str,
        text: String,
        is_plain: bool,
        line: usize,
    ) -> Result<(), String> {
        let before = self.measure();
        if resolve::is_merge(&text, tag, is_plain) && self.awaits_key() {
            return self.place(Node { value: Value::Null, line, form: Form::Merge });
        }
        self.aliases.count(1, text.len())?;
        let resolved =
            if tag.is_empty() && !is_plain { Resolved::Text } else { resolve::resolve(tag, &text)? };
        let mut form = Form::Scalar;
        let value = match resolved {
            Resolved::Null => Value::Null,
            Resolved::Bool(value) => Value::Bool(value),
            Resolved::Int(value) => Value::Number(value.into()),
            Resolved::Uint(value) => Value::Number(value.into()),
            Resolved::Float(value) => {
                form = Form::Float(value);
                Number::from_f64(value).map_or(Value::Null, |mut number| {
                    crate::json::whole(&mut number);
                    Value::Number(number)
                })
            }
            Resolved::Bytes(bytes) => Value::String(crate::gotext::utf8(&bytes).as_ref().into()),
            Resolved::Text | Resolved::Timestamp => Value::String(Text::from(text)),
        };
        self.complete(Node { value, line, form }, anchor, before)
    }

    fn parent(&self) -> Option<&Mapping> {
        match self.open.last()?.content {
            Content::Mapping(ref mapping) => Some(mapping),
            Content::Sequence { .. } => None,
        }
    }

    fn awaits_key(&self) -> bool {
        self.parent().is_some_and(Mapping::awaits_key)
    }

    fn alias(&mut self, name: &str, line: usize) -> Result<(), String> {
        let anchored = self.aliases.expand(name)?;
        if self.depth + anchored.depth > MAX_DEPTH {
            return Err(format!("yaml: line {line}: exceeded max depth of {MAX_DEPTH}"));
        }
        self.repetitions.again(anchored.repeated.clone());
        let Anchored { value, form, .. } = &*anchored;
        let form = match form {
            Form::Sequence { .. } => Form::Sequence { members: Vec::new(), is_alias: true },
            form => form.clone(),
        };
        let value = value.clone();
        self.place(Node { value, line, form })
    }

    /// Keeps a node for aliases, and puts it where it belongs.
    fn complete(&mut self, node: Node, anchor: Option<String>, before: Measure) -> Result<(), String> {
        if let Some(anchor) = anchor {
            let repeated = self.repetitions.since(before.told);
            self.aliases.keep(anchor, &node, before, repeated);
        }
        self.place(node)
    }

    fn place(&mut self, node: Node) -> Result<(), String> {
        if let Form::Float(value) = node.form
            && !value.is_finite()
            && !self.awaits_key()
        {
            self.unsupported_value.get_or_insert_with(|| resolve::not_finite(value));
        }
        match self.open.last_mut().map(|parent| &mut parent.content) {
            None => self.whole = node.value,
            Some(Content::Sequence { items, members }) => {
                if let Some(members) = members {
                    members.push(match node.form {
                        Form::Mapping { members } => members,
                        _ => Vec::new(),
                    });
                }
                items.push(node.value);
            }
            Some(Content::Mapping(mapping)) => {
                mapping.add(node, &mut self.repetitions, &mut self.unsupported_key)?;
            }
        }
        Ok(())
    }
}
