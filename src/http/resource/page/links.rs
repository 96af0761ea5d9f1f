//! Finds the links of HTML while it passes, as Go's tokenizer would find them. All else passes as it is.

use std::io::{self, Write};
use std::ops::Range;

use memchr::memchr;

/// The function that turns a link, as it stands in the page, into another. The result must not hold what ends an attribute.
pub type Rewrite = Box<dyn Fn(&str) -> String + Send>;

/// The attributes of elements that are URLs.
const LINKS: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];
/// Elements whose content is text, whatever it looks like.
const RAW: [&str; 10] =
    ["iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"];
/// A longer tag passes as it is.
const LONGEST_TAG: usize = 64 << 10;

/// Passes HTML on to `out`.
pub struct Links<W> {
    out: W,
    rewrite: Rewrite,
    state: State,
    tag: Tag,
    recent: Recent,
    /// The bytes that are to be passed on.
    passed: Vec<u8>,
    /// How many bytes have come.
    text: u64,
}

#[derive(Clone, Copy)]
enum State {
    Text,
    /// After `<`.
    Open,
    /// After `</`.
    Close,
    /// After `<!`, and perhaps a dash.
    Declaration {
        dash: bool,
    },
    Comment,
    /// Everything to the next `>`.
    Ignored,
    Tag(Part),
    /// In an element of `RAW`. A script within a comment within a script ends neither.
    Raw {
        element: &'static str,
        in_comment: bool,
        in_script: bool,
    },
}

#[derive(Clone, Copy)]
enum Part {
    Name,
    Gap,
    Key,
    AfterKey,
    BeforeValue,
    Value(Option<u8>),
}

/// A tag that has begun.
#[derive(Default)]
struct Tag {
    /// From its `<` on.
    text: Vec<u8>,
    /// The attributes that are links.
    attributes: &'static [&'static str],
    raw: Option<&'static str>,
    is_start: bool,
    begins: usize,
    key: Range<usize>,
    links: Vec<Range<usize>>,
}

/// The last bytes, in small letters.
#[derive(Default)]
struct Recent([u8; 12]);

impl Recent {
    fn push(&mut self, byte: u8) {
        self.0.copy_within(1.., 0);
        self.0[11] = byte.to_ascii_lowercase();
    }

    fn ends_with(&self, parts: [&str; 2]) -> bool {
        let rest = self.0.strip_suffix(parts[1].as_bytes());
        rest.is_some_and(|rest| rest.ends_with(parts[0].as_bytes()))
    }

    /// Whether nothing else has come since the beginning.
    fn is(&self, text: &[u8]) -> bool {
        self.0.strip_suffix(text).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0c)
}

impl Tag {
    /// Takes a byte. Returns the part that the next one is in, `None` after the end.
    fn push(&mut self, part: Part, byte: u8) -> Option<Part> {
        let here = self.text.len();
        self.text.push(byte);
        let part = match (part, byte) {
            (Part::Value(None), b'>') => {
                self.note(here);
                return None;
            }
            (Part::Name, b'>') => {
                self.name(here);
                return None;
            }
            (Part::Value(Some(quote)), _) if byte != quote => part,
            (Part::Value(None), _) if !is_space(byte) => part,
            (Part::Value(_), _) => {
                self.note(here);
                Part::Gap
            }
            (_, b'>') => return None,
            (Part::Name, _) if is_space(byte) || byte == b'/' => {
                self.name(here);
                Part::Gap
            }
            (Part::Name, _) => Part::Name,
            (Part::Key, b'=') => {
                self.key = self.begins..here;
                Part::BeforeValue
            }
            (Part::Key, b'/') | (Part::Gap | Part::AfterKey, b'/') => Part::Gap,
            (Part::Key, _) if is_space(byte) => {
                self.key = self.begins..here;
                Part::AfterKey
            }
            (Part::Key, _) => Part::Key,
            (Part::AfterKey, b'=') => Part::BeforeValue,
            (Part::Gap | Part::AfterKey | Part::BeforeValue, _) if is_space(byte) => part,
            (Part::Gap | Part::AfterKey, _) => {
                self.begins = here;
                Part::Key
            }
            (Part::BeforeValue, b'"' | b'\'') => {
                self.begins = here + 1;
                Part::Value(Some(byte))
            }
            (Part::BeforeValue, _) => {
                self.begins = here;
                Part::Value(None)
            }
        };
        Some(part)
    }

    fn name(&mut self, end: usize) {
        if !self.is_start {
            return;
        }
        let name = self.text.get(1..end).unwrap_or_default();
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        self.attributes = LINKS.iter().find(|(known, _)| is(known)).map_or(&[], |(_, attributes)| attributes);
        self.raw = RAW.into_iter().find(|known| is(known));
    }

    fn note(&mut self, end: usize) {
        let key = self.text.get(self.key.clone()).unwrap_or_default();
        if self.attributes.iter().any(|known| key.eq_ignore_ascii_case(known.as_bytes())) {
            self.links.push(self.begins..end);
        }
    }

    /// Moves the text to `passed`, with other links.
    fn pass(&mut self, rewrite: &Rewrite, passed: &mut Vec<u8>) {
        let mut from = 0;
        for link in self.links.drain(..) {
            let Some(Ok(text)) = self.text.get(link.clone()).map(str::from_utf8) else { continue };
            passed.extend_from_slice(&self.text[from..link.start]);
            passed.extend_from_slice(rewrite(text).as_bytes());
            from = link.end;
        }
        passed.extend_from_slice(&self.text[from..]);
        self.text.clear();
    }
}

impl<W: Write> Links<W> {
    pub fn new(out: W, rewrite: Rewrite) -> Self {
        let (tag, recent) = (Tag::default(), Recent::default());
        Self { out, rewrite, state: State::Text, tag, recent, passed: Vec::new(), text: 0 }
    }

    /// How many bytes of text have come.
    pub fn text(&self) -> u64 {
        self.text
    }

    pub fn inner(&mut self) -> &mut W {
        &mut self.out
    }

    /// A tag that has no end passes as it is.
    pub fn finish(mut self) -> io::Result<W> {
        if matches!(self.state, State::Open) {
            self.out.write_all(b"<")?;
        }
        self.out.write_all(&self.tag.text)?;
        Ok(self.out)
    }

    fn push(&mut self, byte: u8) {
        self.state = match self.state {
            State::Text => {
                self.passed.push(byte);
                State::Text
            }
            State::Open => return self.opened(byte),
            State::Tag(part) => return self.tagged(part, byte),
            State::Close if byte.is_ascii_alphabetic() => {
                self.passed.push(byte);
                self.tag = Tag::default();
                State::Tag(Part::Name)
            }
            State::Declaration { dash } => {
                self.passed.push(byte);
                match (dash, byte) {
                    (_, b'>') => State::Text,
                    (false, b'-') => State::Declaration { dash: true },
                    (true, b'-') => {
                        self.recent = Recent::default();
                        State::Comment
                    }
                    _ => State::Ignored,
                }
            }
            State::Close | State::Ignored => {
                self.passed.push(byte);
                if byte == b'>' { State::Text } else { State::Ignored }
            }
            State::Comment => {
                self.passed.push(byte);
                let Self { recent, .. } = self;
                let ends = recent.ends_with(["-", "-"]) || recent.ends_with(["--", "!"]);
                if byte == b'>' && (ends || recent.is(b"") || recent.is(b"-")) {
                    State::Text
                } else {
                    recent.push(byte);
                    State::Comment
                }
            }
            State::Raw { element, in_comment, in_script } => {
                self.passed.push(byte);
                self.in_raw(element, in_comment, in_script, byte)
            }
        };
    }

    /// After `<`.
    fn opened(&mut self, byte: u8) {
        if byte.is_ascii_alphabetic() {
            self.tag = Tag { text: vec![b'<', byte], is_start: true, ..Tag::default() };
            self.state = State::Tag(Part::Name);
            return;
        }
        self.passed.push(b'<');
        if byte == b'<' {
            return;
        }
        self.passed.push(byte);
        self.state = match byte {
            b'/' => State::Close,
            b'!' => State::Declaration { dash: false },
            b'?' => State::Ignored,
            _ => State::Text,
        };
    }

    fn tagged(&mut self, part: Part, byte: u8) {
        let next = self.tag.push(part, byte);
        if let Some(part) = next
            && self.tag.text.len() < LONGEST_TAG
        {
            self.state = State::Tag(part);
            return;
        }
        self.tag.pass(&self.rewrite, &mut self.passed);
        self.state = match (next, self.tag.raw) {
            (Some(part), _) => {
                // The places of what is left are no places in the text.
                (self.tag.is_start, self.tag.attributes) = (false, &[]);
                State::Tag(part)
            }
            (None, Some(element)) => {
                self.recent = Recent::default();
                State::Raw { element, in_comment: false, in_script: false }
            }
            (None, None) => State::Text,
        };
    }

    fn in_raw(&mut self, element: &'static str, in_comment: bool, in_script: bool, byte: u8) -> State {
        let (mut in_comment, mut in_script) = (in_comment, in_script);
        let is_word = is_space(byte) || byte == b'/' || byte == b'>';
        if is_word && element != "plaintext" && self.recent.ends_with(["</", element]) {
            if in_script {
                in_script = false;
            } else if byte == b'>' {
                return State::Text;
            } else {
                self.tag = Tag::default();
                return State::Tag(Part::Gap);
            }
        }
        if is_word && in_comment && self.recent.ends_with(["<", "script"]) {
            in_script = true;
        }
        self.recent.push(byte);
        if element == "script" {
            in_comment |= self.recent.ends_with(["<!", "--"]);
            let ends = self.recent.ends_with(["--", ">"]);
            (in_comment, in_script) = (in_comment && !ends, in_script && !ends);
        }
        State::Raw { element, in_comment, in_script }
    }
}

impl<W: Write> Write for Links<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.text += piece.len() as u64;
        let mut rest = piece;
        while let Some((byte, behind)) = rest.split_first() {
            match self.state {
                State::Text => {
                    let (text, tag) = rest.split_at(memchr(b'<', rest).unwrap_or(rest.len()));
                    self.passed.extend_from_slice(text);
                    rest = tag.get(1..).unwrap_or_default();
                    if !tag.is_empty() {
                        self.state = State::Open;
                    }
                }
                _ => {
                    self.push(*byte);
                    rest = behind;
                }
            }
        }
        self.out.write_all(&self.passed)?;
        self.passed.clear();
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
