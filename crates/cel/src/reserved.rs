//! Words of the language, and names of fields as expressions spell them (`apiserver/pkg/cel/escaping.go`).
/// Words that are no names.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// `None` for names that cannot be spelled.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let known = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !name.chars().all(known) {
        return None;
    }
    let mut escaped = name.replace("__", "__underscores__");
    for (letter, word) in [('.', "__dot__"), ('-', "__dash__"), ('/', "__slash__")] {
        escaped = escaped.replace(letter, word);
    }
    Some(escaped)
}
