//! Repeated keys in a document, in go-yaml's words.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};

use super::scalar::is_a_string;
use crate::gotext::quote;

/// The repeated keys, each with the line of its value; none if the document is not YAML.
pub fn repeated_keys(document: &str) -> Vec<String> {
    let mut scan = Scan::default();
    for next in Parser::new_from_str(document) {
        let Ok((event, span)) = next else { return Vec::new() };
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, ..) => scan.node(line, Some(key(text, style))),
            Event::Alias(_) | Event::UnresolvedAlias(_) => scan.node(line, None),
            Event::MappingStart(..) => scan.open(line, Some(HashSet::new())),
            Event::SequenceStart(..) => scan.open(line, None),
            Event::MappingEnd | Event::SequenceEnd => scan.close(),
            Event::DocumentEnd => break,
            _ => {}
        }
    }
    if scan.untold > 0 {
        scan.found.push(format!("and {} more", scan.untold));
    }
    scan.found
}

#[derive(Default)]
struct Scan {
    open: Vec<Collection>,
    found: Vec<String>,
    bytes: usize,
    untold: usize,
}

/// How many repetitions are reported at most, and after how many bytes of text no more are. All are counted.
const TOLD_MAX: usize = 256;
const BYTES_MAX: usize = 256 * 1024;

struct Collection {
    /// The line where it starts.
    line: usize,
    /// The keys so far; `None` for a sequence.
    keys: Option<HashSet<String>>,
    /// The key whose value comes next.
    due: Option<Option<String>>,
}

impl Scan {
    fn open(&mut self, line: usize, keys: Option<HashSet<String>>) {
        self.open.push(Collection { line, keys, due: None });
    }

    fn close(&mut self) {
        if let Some(closed) = self.open.pop() {
            self.node(closed.line, None);
        }
    }

    fn tell(&mut self, line: usize, key: &str) {
        if self.found.len() >= TOLD_MAX || self.bytes >= BYTES_MAX {
            self.untold += 1;
            return;
        }
        let text = format!("line {line}: key {key} already set in map");
        self.bytes += text.len();
        self.found.push(text);
    }

    /// Handles a complete node. `key` is its text as a map key.
    fn node(&mut self, line: usize, key: Option<String>) {
        let Some(parent) = self.open.last_mut() else { return };
        let Some(keys) = &mut parent.keys else { return };
        match parent.due.take() {
            None => parent.due = Some(key),
            Some(Some(due)) if keys.contains(&due) => {
                self.tell(line, &due);
            }
            Some(Some(due)) if due != MERGE => _ = keys.insert(due),
            Some(_) => {}
        }
    }
}

const MERGE: &str = "<<";

/// A key in Go's syntax.
fn key(text: Cow<'_, str>, style: ScalarStyle) -> String {
    let plain = style == ScalarStyle::Plain;
    if plain && (text == MERGE || !is_a_string(&text)) { text.into_owned() } else { quote(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repetition_is_told_with_the_line_of_its_value() {
        let cases = [
            ("a: 1\nb: 2\n", vec![]),
            ("a: 1\nb:\n  a: 1\n", vec![]),
            ("spec:\n  paused: true\n  paused: false\n", vec!["line 3: key \"paused\" already set in map"]),
            ("{\"a\":1,\"a\":2,\"a\":3}", vec!["line 1: key \"a\" already set in map"; 2]),
            (
                "a:\n- b: 1\n  b: 2\na:\n  c: 1\n",
                vec!["line 3: key \"b\" already set in map", "line 5: key \"a\" already set in map"],
            ),
            ("9: a\n9: b\n'9': c\n", vec!["line 2: key 9 already set in map"]),
            ("a: [", vec![]),
        ];
        for (document, want) in cases {
            assert_eq!(repeated_keys(document), want, "{document}");
        }
    }
}
