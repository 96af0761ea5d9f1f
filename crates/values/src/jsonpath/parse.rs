//! From a template to nodes. Nested texts (filters, unions, quoted keys) are parsed as templates of their own.

use super::{Filter, NoPath, Node, Slice};

/// How deep templates nest. Upstream has no bound but its stack.
const MOST_NESTED: usize = 32;

/// Bytes of a path: beyond them nobody wants a column.
const LONGEST: usize = 64 * 1024;

/// The nodes of a template: a list for each pair of braces, and the texts between.
pub fn template(text: &str, depth: usize) -> Result<Vec<Node>, NoPath> {
    if depth > MOST_NESTED || text.len() > LONGEST {
        return refuse("the path is too long or nests too deep");
    }
    let mut parser = Parser { text, start: 0, at: 0, depth };
    let mut nodes = Vec::new();
    while let Some(open) = parser.text[parser.at..].find('{') {
        parser.at += open;
        let before = parser.consume();
        if !before.is_empty() {
            nodes.push(Node::Text(before.to_owned()));
        }
        parser.at += 1;
        parser.consume();
        nodes.push(Node::List(parser.action()?));
    }
    if parser.at < text.len() {
        nodes.push(Node::Text(text[parser.at..].to_owned()));
    }
    Ok(nodes)
}

fn refuse<T>(why: impl Into<String>) -> Result<T, NoPath> {
    Err(NoPath(why.into()))
}

struct Parser<'t> {
    text: &'t str,
    /// The first byte that no node holds yet.
    start: usize,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn consume(&mut self) -> &'t str {
        let text = &self.text[self.start..self.at];
        self.start = self.at;
        text
    }

    fn eats(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
            self.consume();
        }
        found
    }

    /// The nodes of a part within braces, up to and with the closing one.
    fn action(&mut self) -> Result<Vec<Node>, NoPath> {
        let mut nodes = Vec::new();
        loop {
            if self.eats("}") {
                return Ok(nodes);
            }
            if self.eats("[?(") {
                self.filter(&mut nodes)?;
                continue;
            }
            if self.eats("..") {
                self.recursive(&mut nodes)?;
                continue;
            }
            match self.next() {
                None | Some('\r' | '\n') => return refuse("unclosed action"),
                // The object itself: nothing to do.
                Some(' ' | '@' | '$') => {
                    self.consume();
                }
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => nodes.push(self.field()),
                Some(c) if c == '+' || c == '-' || is_digit(c) => nodes.push(self.number()?),
                Some(c) if is_alphanumeric(c) => nodes.push(self.identifier()),
                Some(c) => return refuse(format!("unrecognized character in action: {c:?}")),
            }
        }
    }

    fn identifier(&mut self) -> Node {
        while self.peek().is_some_and(|c| !is_terminator(c)) {
            self.next();
        }
        match self.consume() {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            _ => Node::Identifier,
        }
    }

    fn recursive(&mut self, nodes: &mut Vec<Node>) -> Result<(), NoPath> {
        if nodes.last() == Some(&Node::Recursive) {
            return refuse("invalid multiple recursive descent");
        }
        nodes.push(Node::Recursive);
        if self.peek().is_some_and(is_alphanumeric) {
            nodes.push(self.field());
        }
        Ok(())
    }

    /// A number whose first character has been read.
    fn number(&mut self) -> Result<Node, NoPath> {
        while self.peek().is_some_and(|c| c == '.' || is_digit(c)) {
            self.next();
        }
        let text = self.consume();
        if let Ok(integer) = text.parse() {
            return Ok(Node::Integer(integer));
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Node::Float(float)),
            _ => refuse(format!("cannot parse number {text}")),
        }
    }

    /// The nodes of a part within brackets, of which the first has been read.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), NoPath> {
        loop {
            match self.next() {
                None | Some('\n') => return refuse("unterminated array"),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let text = self.consume();
        let text = &text[1..text.len() - 1];
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let member = |part: &str| self.nested(&format!("[{}]", part.trim_matches(' ')));
            let members: Result<Vec<Vec<Node>>, NoPath> = text.split(',').map(member).collect();
            nodes.push(Node::Union(members?.into_iter().map(Node::List).collect()));
            return Ok(());
        }
        let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = quoted.filter(|key| !key.contains('\'')) {
            nodes.extend(self.nested(&format!(".{key}"))?);
            return Ok(());
        }
        nodes.push(Node::Slice(slice(text)?));
        Ok(())
    }

    /// The nodes of a template of its own, up to the first closing brace.
    fn nested(&self, text: &str) -> Result<Vec<Node>, NoPath> {
        match template(&format!("{{{text}}}"), self.depth + 1)?.into_iter().next() {
            Some(Node::List(nodes)) => Ok(nodes),
            _ => refuse("an action without nodes"),
        }
    }

    fn filter(&mut self, nodes: &mut Vec<Node>) -> Result<(), NoPath> {
        let text = self.filter_text()?;
        nodes.push(Node::Filter(Box::new(match comparison(text) {
            None => Filter { left: Node::List(self.nested(text)?), compared: None },
            Some((left, operator, right)) => Filter {
                left: Node::List(self.nested(left)?),
                compared: Some((operator.to_owned(), Node::List(self.nested(right)?))),
            },
        })));
        Ok(())
    }

    /// The text in a filter's parentheses. Only the first pair of quotes counts: nothing within it ends the text.
    fn filter_text(&mut self) -> Result<&'t str, NoPath> {
        let mut opened: Option<char> = None;
        let mut closed = false;
        loop {
            match self.next() {
                None | Some('\n') => return refuse("unterminated filter"),
                Some(c @ ('"' | '\'')) => match opened {
                    None => opened = Some(c),
                    Some(pair) => closed |= c == pair && !self.is_escaped(),
                },
                Some(')') if opened.is_some() == closed => break,
                Some(_) => {}
            }
        }
        if self.next() != Some(']') {
            return refuse("unclosed array expect ]");
        }
        let text = self.consume();
        Ok(&text[..text.len() - 2])
    }

    /// Whether a backslash stands before the character that was read last, which is one byte.
    fn is_escaped(&self) -> bool {
        self.at >= 2 && self.text.as_bytes()[self.at - 2] == b'\\'
    }

    fn quoted(&mut self, quote: char) -> Result<Node, NoPath> {
        loop {
            match self.next() {
                None | Some('\n') => return refuse("unterminated quoted string"),
                Some(c) if c == quote && !self.is_escaped() => break,
                Some(_) => {}
            }
        }
        let text = self.consume();
        match unquoted(&text[1..text.len() - 1], quote) {
            Some(text) => Ok(Node::Text(text)),
            None => refuse(format!("unquote string {text} error invalid syntax")),
        }
    }

    /// The name that follows a point.
    fn field(&mut self) -> Node {
        self.consume();
        while let Some(c) = self.peek().filter(|c| !is_terminator(*c)) {
            self.next();
            if c == '\\' {
                self.next();
            }
        }
        match self.consume() {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }
}

/// `left`, operator and `right` of a filter, if it compares.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let (left, rest) = text.split_at(text.find(is_operator)?);
    let end = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
    // Something has to follow, be it the last character of the operator.
    let end = if end == rest.len() { end - 1 } else { end };
    let (operator, right) = rest.split_at(end);
    (!left.is_empty() && !operator.is_empty()).then_some((left, operator, right))
}

fn slice(text: &str) -> Result<Slice, NoPath> {
    let invalid = || NoPath(format!("invalid array index {text}"));
    let mut parts = text.split(':');
    let (from, to, step) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.next().is_some() || ![Some(from), to, step].into_iter().flatten().all(is_number) {
        return Err(invalid());
    }
    let number = |text: &str| match text {
        "" => Ok(None),
        text => match text.parse::<i64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => refuse(format!("array index {text} is not a number")),
        },
    };
    let from = number(from)?;
    let (to, is_index) = match to {
        Some(to) => (number(to)?, false),
        None => (Some(from.unwrap_or_default().wrapping_add(1)), true),
    };
    Ok(Slice { from, to, is_index, step: number(step.unwrap_or_default())? })
}

/// The text within quotes, with escapes as in `strconv.UnquoteChar`; `None` for a wrong escape or a bare quote.
fn unquoted(text: &str, quote: char) -> Option<String> {
    if !text.contains(['\\', quote]) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            c if c == quote => return None,
            '\\' => rest = escape(rest, quote, &mut bytes)?,
            c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(crate::gotext::utf8(&bytes).into_owned())
}

/// Reads what follows a backslash; the answer is the rest.
fn escape<'t>(text: &'t str, quote: char, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let c = text.chars().next()?;
    let rest = &text[c.len_utf8()..];
    let number = |digits: usize, radix: u32, text: &'t str| {
        let (number, rest) = text.split_at_checked(digits)?;
        let number = number.bytes().all(|b| b.is_ascii_hexdigit()).then_some(number)?;
        Some((u32::from_str_radix(number, radix).ok()?, rest))
    };
    let simple = match c {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        '\'' | '"' if c == quote => quote as u8,
        'x' => {
            let (byte, rest) = number(2, 16, rest)?;
            bytes.push(byte as u8);
            return Some(rest);
        }
        '0'..='7' => {
            let (byte, rest) = number(3, 8, text)?;
            bytes.push(u8::try_from(byte).ok()?);
            return Some(rest);
        }
        'u' | 'U' => {
            let (code, rest) = number(if c == 'u' { 4 } else { 8 }, 16, rest)?;
            bytes.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        _ => return None,
    };
    bytes.push(simple);
    Some(rest)
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || !c.is_ascii() && c.is_numeric()
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphabetic() || is_digit(c)
}
