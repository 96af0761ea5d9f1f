//! Whether the text of a set is in the form in which JSON is printed.

/// Whether the text of an object that holds nothing but objects would be the same if it were read, sorted by name at every
/// level, and printed. In doubt it would not: text with blanks or rare characters is not looked at more closely.
pub(super) fn is_sorted(text: &[u8]) -> bool {
    let mut reader = Reader { rest: text, names: Vec::new() };
    reader.object().is_some() && reader.rest.is_empty()
}

struct Reader<'t> {
    rest: &'t [u8],
    /// The last name of each open object, as it is spelled; empty before the first.
    names: Vec<&'t [u8]>,
}

impl<'t> Reader<'t> {
    fn object(&mut self) -> Option<()> {
        self.open()?;
        while let Some(is_first) = self.names.last().map(|last| last.is_empty()) {
            match (self.next()?, is_first) {
                (b'}', _) => drop(self.names.pop()),
                (b'"', true) => self.member()?,
                (b',', false) => {
                    self.take(b'"')?;
                    self.member()?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        self.take(b'{')?;
        self.names.push(b"");
        Some(())
    }

    /// Reads a member behind the quote that opens its name, until its value has been opened.
    fn member(&mut self) -> Option<()> {
        let name = self.name()?;
        let last = self.names.last_mut()?;
        if !unescaped(last).lt(unescaped(name)) {
            return None;
        }
        *last = name;
        self.take(b':')?;
        self.open()
    }

    fn name(&mut self) -> Option<&'t [u8]> {
        let mut end = 0;
        loop {
            match *self.rest.get(end)? {
                b'"' => break,
                b'\\' if matches!(self.rest.get(end + 1)?, b'"' | b'\\') => end += 2,
                b'\\' | b'<' | b'>' | b'&' | 0..=0x1f | 0x7f.. => return None,
                _ => end += 1,
            }
        }
        let name = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(name)
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }
}

/// The bytes that a name stands for.
fn unescaped(name: &[u8]) -> impl Iterator<Item = &u8> {
    let mut bytes = name.iter();
    std::iter::from_fn(move || match bytes.next()? {
        b'\\' => bytes.next(),
        byte => Some(byte),
    })
}

#[cfg(test)]
mod tests {
    use super::is_sorted;

    #[test]
    fn text_is_sorted_if_printing_it_again_changes_nothing() {
        for text in [
            "{}",
            r#"{"f:a":{".":{},"f:b":{},"k:{\"a\":10}":{},"k:{\"a\":1}":{},"k:{\"a\":2}":{}},"f:b":{}}"#,
            r#"{"k:{\"name\":\"a\"}":{},"k:{\"name\":\"ab\"}":{},"v:\"\\\\\"":{}}"#,
        ] {
            assert!(is_sorted(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "{",
            "{}}",
            "{} ",
            "[]",
            r#"{"a":1}"#,
            r#"{"a":{},}"#,
            r#"{,"a":{}}"#,
            r#"{"":{}}"#,
            r#"{"b":{},"a":{}}"#,
            r#"{"a":{},"a":{}}"#,
            r#"{"a": {}}"#,
            r#"{"a\u0041":{}}"#,
            r#"{"a<":{}}"#,
            r#"{"é":{}}"#,
            r#"{"a":{}"#,
            // A quote is less than `$`, though its escape is not.
            r#"{"v:$":{},"v:\"":{}}"#,
            "{\"a",
        ] {
            assert!(!is_sorted(text.as_bytes()), "{text}");
        }
    }
}
