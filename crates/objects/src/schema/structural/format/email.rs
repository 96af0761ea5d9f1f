//! Email addresses as Go's `mail.ParseAddress` takes them: those of RFC 5322, with a name or without.

use super::network;

pub fn is_email(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.address(Group::Allowed) == Some(1) && parser.comments() && parser.rest.is_empty()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Allowed,
    Refused,
}

struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    /// How many addresses stand here: one, or those of a group.
    fn address(&mut self, group: Group) -> Option<usize> {
        self.spaces();
        if self.rest.is_empty() {
            return None;
        }
        if self.bare_address() {
            self.spaces();
            return match self.rest.starts_with('(') {
                true => (self.take('(') && self.comment()).then_some(1),
                false => Some(1),
            };
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.spaces();
        if group == Group::Allowed && self.take(':') {
            return self.members();
        }
        (self.take('<') && self.bare_address() && self.take('>')).then_some(1)
    }

    /// The addresses of a group.
    fn members(&mut self) -> Option<usize> {
        self.spaces();
        if self.take(';') {
            return self.comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.spaces();
            count += self.address(Group::Refused)?;
            if !self.comments() {
                return None;
            }
            if self.take(';') {
                return self.comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// `user@example.com`; if there is none, nothing is taken.
    fn bare_address(&mut self) -> bool {
        let before = self.rest;
        let found = self.local_part() && self.take('@') && self.domain();
        if !found {
            self.rest = before;
        }
        found
    }

    fn local_part(&mut self) -> bool {
        self.spaces();
        match self.rest.starts_with('"') {
            true => self.quoted().is_some_and(|length| length > 0),
            false => self.atom().is_some_and(is_dot_atom),
        }
    }

    fn domain(&mut self) -> bool {
        self.spaces();
        if !self.take('[') {
            return self.atom().is_some_and(is_dot_atom);
        }
        let Some((address, rest)) = self.rest.split_once(']') else { return false };
        self.rest = rest;
        network::ip(address).is_some()
    }

    /// Words, of which there is one at least.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 && !self.comments() {
                return None;
            }
            self.spaces();
            if self.rest.is_empty() {
                break;
            }
            let word = match self.rest.starts_with('"') {
                true => self.quoted().is_some(),
                false => self.atom().is_some(),
            };
            if !word {
                break;
            }
            words += 1;
        }
        (words > 0).then_some(())
    }

    /// How many characters are quoted here.
    fn quoted(&mut self) -> Option<usize> {
        let (mut length, mut escaped) = (0, false);
        for (at, c) in self.rest.char_indices().skip(1) {
            let is_space = matches!(c, ' ' | '\t');
            match c {
                c if escaped && (is_visible(c) || is_space) => (length, escaped) = (length + 1, false),
                _ if escaped => return None,
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(length);
                }
                '\\' => escaped = true,
                c if is_visible(c) || is_space => length += 1,
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self) -> Option<&str> {
        let end = self.rest.find(|c| !is_of_atom(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        (end > 0).then_some(atom)
    }

    /// Spaces and comments; false if a comment does not end.
    fn comments(&mut self) -> bool {
        self.spaces();
        while self.take('(') {
            if !self.comment() {
                return false;
            }
            self.spaces();
        }
        true
    }

    /// The rest of a comment that has begun.
    fn comment(&mut self) -> bool {
        let (mut depth, mut escaped) = (1, false);
        for (at, b) in self.rest.bytes().enumerate() {
            match b {
                _ if escaped => escaped = false,
                b'\\' if at + 1 < self.rest.len() => escaped = true,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return true;
            }
        }
        false
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

fn is_of_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}

fn is_dot_atom(atom: &str) -> bool {
    !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")
}
