//! The problems that strict decoding finds in a text: unknown members and repeated members.
//!
//! The text is searched only if it is known to have problems. Order and texts are those of `sigs.k8s.io/json`.

use std::collections::HashSet;

use super::{Cardinality, Field, FieldKind, Format, GoShape, MessageId, Types};
use crate::gotext::quote;
use crate::json::Node;
use crate::tree::Text;

/// Upstream reports at most this many problems of a text.
const MAX_PROBLEMS: usize = 100;
/// After this many bytes of messages no more are reported, since they contain names that the client chose.
const MAX_BYTES: usize = 256 * 1024;

/// The problems of an object; without a shape, only its repeated members.
pub fn problems(shape: Option<&GoShape>, object: &Node) -> Vec<String> {
    Walker::new(shape, MapKeys::Told).problems_of(shape, object)
}

/// Like [`problems`], as upstream's converter (`FromUnstructured`) reports them: sorted, and without keys of maps in
/// the paths.
pub fn converter_problems(shape: Option<&GoShape>, object: &Node) -> Vec<String> {
    let mut found = Walker::new(shape, MapKeys::LeftOut).problems_of(shape, object);
    found.sort();
    found
}

/// The problems of a list of objects that have these members. The values of the members are not checked.
pub fn list_problems(known: &'static [&'static str], list: &Node) -> Vec<String> {
    let mut walker = Walker::new(None, MapKeys::Told);
    walker.value(Expected::ListOf(known), list);
    walker.found
}

/// Repeated members, wherever they occur.
pub fn duplicates(value: &Node) -> Vec<String> {
    let mut walker = Walker::new(None, MapKeys::Told);
    walker.value(Expected::Anything, value);
    walker.found
}

struct Walker<'a> {
    /// `None` if the types of all values are unknown.
    types: Option<&'a Types>,
    path: String,
    map_keys: MapKeys,
    found: Vec<String>,
    bytes: usize,
}

/// Whether paths contain the keys of maps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MapKeys {
    Told,
    LeftOut,
}

/// The type into which upstream decodes a value.
#[derive(Clone, Copy)]
enum Expected<'a> {
    Message(MessageId),
    /// The list or map in a field.
    Field(&'a Field),
    ListOf(&'a [&'a str]),
    Object(&'a [&'a str]),
    Anything,
}

impl<'a> Expected<'a> {
    fn of(kind: FieldKind) -> Self {
        match kind {
            FieldKind::Message(id) => Self::Message(id),
            // A scalar has no members.
            _ => Self::Anything,
        }
    }
}

impl<'a> Walker<'a> {
    fn new(shape: Option<&'a GoShape>, map_keys: MapKeys) -> Self {
        let types = shape.map(|shape| &*shape.types);
        Self { types, path: String::new(), map_keys, found: Vec::new(), bytes: 0 }
    }

    fn problems_of(mut self, shape: Option<&GoShape>, object: &Node) -> Vec<String> {
        self.value(shape.map_or(Expected::Anything, |shape| Expected::Message(shape.message)), object);
        self.found
    }

    fn value(&mut self, expected: Expected<'a>, node: &Node) {
        match (expected, node) {
            (_, Node::Scalar | Node::Number(_)) => {}
            (Expected::Message(id), Node::Object(members)) => self.message(id, members),
            (Expected::Message(id), Node::Array(items)) => {
                let Some(message) = self.types.map(|types| types.message(id)) else { return };
                if message.format == Format::List {
                    self.items(Expected::of(message.fields[0].kind), items);
                }
            }
            (Expected::Field(field), Node::Array(items)) => self.items(Expected::of(field.kind), items),
            (Expected::Field(field), Node::Object(entries)) => {
                self.entries(Expected::of(field.kind), entries)
            }
            (Expected::ListOf(known), Node::Array(items)) => self.items(Expected::Object(known), items),
            (Expected::Object(known), Node::Object(members)) => self.object(known, members),
            (Expected::ListOf(_), Node::Object(_)) | (Expected::Object(_), Node::Array(_)) => {}
            (Expected::Anything, Node::Array(items)) => self.items(Expected::Anything, items),
            (Expected::Anything, Node::Object(entries)) => self.entries(Expected::Anything, entries),
        }
    }

    fn message(&mut self, id: MessageId, members: &[(Text, Node)]) {
        let Some(types) = self.types else { return };
        let message = types.message(id);
        // Messages of other formats have decoders of their own, which are not strict.
        if message.format != Format::Object {
            return;
        }
        let mut seen = HashSet::new();
        for (name, value) in members {
            let member = message.find(types, name, 0);
            let claim = message.has_claims() && matches!(name.as_str(), "kind" | "apiVersion");
            if member.is_none() && !claim {
                self.tell("unknown", name);
                continue;
            }
            if !seen.insert(name) {
                self.tell("duplicate", name);
            }
            let Some(member) = member else { continue };
            let field = types.field(&message.members[member]);
            let expected = match field.cardinality {
                Cardinality::Single => Expected::of(field.kind),
                Cardinality::List | Cardinality::Map => Expected::Field(field),
            };
            self.below(name, expected, value);
        }
    }

    fn object(&mut self, known: &[&str], members: &[(Text, Node)]) {
        let mut seen = HashSet::new();
        for (name, value) in members {
            if !known.contains(&name.as_str()) {
                self.tell("unknown", name);
                continue;
            }
            if !seen.insert(name) {
                self.tell("duplicate", name);
            }
            self.below(name, Expected::Anything, value);
        }
    }

    fn entries(&mut self, expected: Expected<'a>, entries: &[(Text, Node)]) {
        let mut seen = HashSet::new();
        for (name, value) in entries {
            if !seen.insert(name) {
                self.tell("duplicate", name);
            }
            match self.map_keys {
                MapKeys::Told => self.below(name, expected, value),
                MapKeys::LeftOut => self.value(expected, value),
            }
        }
    }

    fn items(&mut self, expected: Expected<'a>, items: &[Node]) {
        for (index, item) in items.iter().enumerate() {
            let end = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            self.value(expected, item);
            self.path.truncate(end);
        }
    }

    fn below(&mut self, name: &str, expected: Expected<'a>, value: &Node) {
        let end = self.path.len();
        if end > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.value(expected, value);
        self.path.truncate(end);
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn tell(&mut self, what: &str, name: &str) {
        if self.found.len() >= MAX_PROBLEMS || self.bytes >= MAX_BYTES {
            return;
        }
        let text = format!("{what} field {}", quote(&self.path_of(name)));
        if !self.found.contains(&text) {
            self.bytes += text.len();
            self.found.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin;
    use crate::schema::kind::Kind;
    use crate::schema::names::Gvk;

    fn kind(gvk: Gvk) -> Kind {
        builtin::kind(&gvk).expect("a kind")
    }

    fn found(text: &str) -> String {
        let node = Node::parse(text.as_bytes()).expect("JSON");
        kind(Gvk::fixed("apps/v1", "Deployment")).problems(&node).join(", ")
    }

    #[test]
    fn problems_are_told_in_the_order_of_the_text() {
        let cases = [
            (r#"{"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":1}}"#, ""),
            (r#"{"spec":{"foo":1}}"#, r#"unknown field "spec.foo""#),
            (r#"{"spec":{"Replicas":1}}"#, r#"unknown field "spec.Replicas""#),
            (
                r#"{"spec":{"template":{"spec":{"containers":[{"name":"a"},{"foo":{"foo":1}}]}},"bar":1},"zoo":1}"#,
                r#"unknown field "spec.template.spec.containers[1].foo", unknown field "spec.bar", unknown field "zoo""#,
            ),
            (
                r#"{"spec":{"paused":true,"x":1,"paused":false,"x":2}}"#,
                r#"unknown field "spec.x", duplicate field "spec.paused""#,
            ),
            (
                r#"{"metadata":{"labels":{"a":"1","a":"2"},"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]}}"#,
                r#"duplicate field "metadata.labels.a""#,
            ),
            (
                r#"{"spec":{"template":{"spec":{"volumes":[{"configMap":{"name":"a","nam":"b","name":"c"}}]}}}}"#,
                r#"unknown field "spec.template.spec.volumes[0].configMap.nam", duplicate field "spec.template.spec.volumes[0].configMap.name""#,
            ),
            (r#"{"a\"b":1}"#, r#"unknown field "a\"b""#),
        ];
        for (text, want) in cases {
            assert_eq!(found(text), want, "{text}");
        }
    }

    #[test]
    fn the_converter_sorts_and_leaves_out_keys_of_maps() {
        let text =
            br#"{"zoo":1,"spec":{"devices":[{"attributes":{"a":{"x":1}},"capacity":{"b":{"VALUE":"1"}}}]}}"#;
        let node = Node::parse(text).expect("JSON");
        let found = kind(Gvk::fixed("resource.k8s.io/v1", "ResourceSlice")).converter_problems(&node);
        let want = ["spec.devices[0].attributes.x", "spec.devices[0].capacity.VALUE", "zoo"];
        assert_eq!(found, want.map(|path| format!("unknown field {path:?}")));
    }

    #[test]
    fn what_no_kind_says_is_only_searched_for_duplicates() {
        let node =
            Node::parse(br#"{"a":[{"b":1,"b":2},{"b":1}],"c":{"d":{"e":1,"e":1,"e":1}}}"#).expect("JSON");
        assert_eq!(duplicates(&node), [r#"duplicate field "a[0].b""#, r#"duplicate field "c.d.e""#]);
    }

    #[test]
    fn lists_of_objects_say_where() {
        let text = br#"[{"op":"add","path":"/a","foo":1},{"op":"add","path":"/b","path":"/c","value":{"a":1,"a":2}}]"#;
        let found = list_problems(&["op", "path", "value"], &Node::parse(text).expect("JSON"));
        let want = [
            r#"unknown field "[0].foo""#,
            r#"duplicate field "[1].path""#,
            r#"duplicate field "[1].value.a""#,
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_hundred_problems_are_enough() {
        let members: Vec<String> = (0..150).map(|n| format!("\"x{n}\":1")).collect();
        let node = Node::parse(format!("{{{}}}", members.join(",")).as_bytes()).expect("JSON");
        assert_eq!(kind(Gvk::fixed("v1", "ConfigMap")).problems(&node).len(), MAX_PROBLEMS);
    }
}
