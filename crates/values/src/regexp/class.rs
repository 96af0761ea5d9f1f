//! Classes of characters, and how an expression names them.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// Ranges of ASCII by their name between `[:` and `:]`.
const NAMED: [(&str, &[(char, char)]); 14] = [
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("ascii", &[('\0', '\x7f')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\x1f'), ('\x7f', '\x7f')]),
    ("digit", &[('0', '9')]),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("word", &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

/// Characters, and whether it is all others that are meant.
pub struct Group {
    class: ClassUnicode,
    negated: bool,
}

impl Group {
    /// `\d`, `\s`, `\w` and their opposites. Go's are ASCII.
    pub fn perl(letter: char) -> Option<Self> {
        let class = match letter.to_ascii_lowercase() {
            'd' => class(&[('0', '9')]),
            's' => class(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
            'w' => class(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
            _ => return None,
        };
        Some(Self { class, negated: letter.is_ascii_uppercase() })
    }

    /// The group that is named between `[:` and `:]`.
    pub fn named(name: &str) -> Option<Self> {
        let (negated, name) = match name.strip_prefix('^') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let (_, ranges) = NAMED.iter().find(|(known, _)| *known == name)?;
        Some(Self { class: class(ranges), negated })
    }

    /// The group that is named behind `\p`, or in its braces: a category or a script.
    pub fn unicode(name: &str, negated: bool) -> Option<Self> {
        let (negated, name) = match name.strip_prefix('^') {
            Some(name) => (!negated, name),
            None => (negated, name),
        };
        let plain: String =
            name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect::<String>().to_ascii_lowercase();
        match &*plain {
            "any" => return Some(Self { class: class(&[('\0', char::MAX)]), negated }),
            "ascii" => return Some(Self { class: class(&[('\0', '\x7f')]), negated }),
            "assigned" => return Some(Self { class: property("gc", "Cn")?, negated: !negated }),
            _ => {}
        }
        if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let class = property("gc", &plain).or_else(|| property("sc", &plain))?;
        Some(Self { class, negated })
    }

    /// Its characters, with their other cases where case does not matter.
    pub fn into_class(self, folds_case: bool) -> ClassUnicode {
        let mut class = self.class;
        if folds_case {
            class.case_fold_simple();
        }
        if self.negated {
            class.negate();
        }
        class
    }
}

fn class(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(first, last)| ClassUnicodeRange::new(*first, *last)))
}

fn property(property: &str, value: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(&format!(r"\p{{{property}={value}}}")).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A category of one character, or of none.
        HirKind::Literal(one) => {
            let one = std::str::from_utf8(&one.0).ok()?;
            Some(class(&one.chars().map(|c| (c, c)).collect::<Vec<_>>()))
        }
        _ => None,
    }
}

/// Code points from one to another, of which no text holds the surrogates.
pub fn range(first: u32, last: u32) -> Option<ClassUnicodeRange> {
    let first = if (0xD800..0xE000).contains(&first) { 0xE000 } else { first };
    let last = if (0xD800..0xE000).contains(&last) { 0xD7FF } else { last };
    (first <= last).then(|| Some(ClassUnicodeRange::new(char::from_u32(first)?, char::from_u32(last)?)))?
}
