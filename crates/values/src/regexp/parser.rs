//! Reads an expression in one pass. Open groups are on a stack of their own, so that nothing recurses.

mod escapes;

use regex_syntax::hir::{Capture, Class, ClassUnicode, Dot, Hir, Look, Repetition};

use self::escapes::{class_char, counts, escaped, escaped_group, named_group};
use super::class::{Group, range};
use super::{Code, DEPTH_MAX, Error, LENGTH_MAX};

/// The most times that repetitions may repeat their innermost part.
const REPEAT_MAX: u32 = 1000;

/// Instructions of a program, as Go estimates them.
const SIZE_MAX: u64 = (128 << 20) / 40;

/// Ranges of characters of all classes together.
const RANGES_MAX: usize = 1 << 20;

pub fn parse(expression: &str) -> Result<Hir, Error> {
    if expression.len() > LENGTH_MAX {
        return Err(Error::new(Code::Large, expression));
    }
    let root = Open { flags: Flags::default(), capture: None, branches: Vec::new(), sequence: Vec::new() };
    let mut parser =
        Parser { whole: expression, groups: vec![root], flags: Flags::default(), captures: 0, ranges: 0 };
    let mut rest = expression;
    let mut last_repeat = "";
    while !rest.is_empty() {
        (rest, last_repeat) = parser.step(rest, last_repeat)?;
    }
    parser.finish()
}

#[derive(Clone, Copy, Default)]
struct Flags {
    folds_case: bool,
    multi_line: bool,
    dot_matches_newline: bool,
    prefers_few: bool,
}

/// A part of an expression.
struct Piece {
    hir: Hir,
    size: u64,
    /// How often repetitions in it repeat its innermost part.
    times: u32,
}

/// A group that has not been closed.
struct Open {
    /// The flags that hold again when the group is closed.
    flags: Flags,
    capture: Option<(u32, Option<Box<str>>)>,
    branches: Vec<Piece>,
    sequence: Vec<Piece>,
}

struct Parser<'e> {
    whole: &'e str,
    groups: Vec<Open>,
    flags: Flags,
    captures: u32,
    ranges: usize,
}

/// How often something is there.
struct Count {
    min: u32,
    max: Option<u32>,
    /// Spelled with braces.
    spelled: bool,
}

impl<'e> Parser<'e> {
    /// Reads one thing; returns what is left, and the text from the repetition on that was just read.
    fn step(&mut self, text: &'e str, last_repeat: &'e str) -> Result<(&'e str, &'e str), Error> {
        let mut chars = text.chars();
        let first = chars.next().unwrap_or_default();
        let rest = chars.as_str();
        let rest = match first {
            '(' if rest.starts_with('?') => self.perl_group(text)?,
            '(' => {
                self.captures += 1;
                self.open(Some((self.captures, None)))?;
                rest
            }
            '|' => {
                let group = self.top();
                let branch = concat(std::mem::take(&mut group.sequence));
                group.branches.push(branch);
                rest
            }
            ')' => {
                self.close()?;
                rest
            }
            '^' => self.push_look(if self.flags.multi_line { Look::StartLF } else { Look::Start }, rest),
            '$' => self.push_look(if self.flags.multi_line { Look::EndLF } else { Look::End }, rest),
            '.' => {
                let any = if self.flags.dot_matches_newline { Dot::AnyChar } else { Dot::AnyCharExceptLF };
                self.push(Hir::dot(any));
                rest
            }
            '[' => self.bracketed(text)?,
            '*' | '+' | '?' => {
                let (min, max) = match first {
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => (0, Some(1)),
                };
                let rest = self.repeat(Count { min, max, spelled: false }, text, rest, last_repeat)?;
                return Ok((rest, text));
            }
            '{' => match counts(text) {
                None => {
                    self.literal('{'.into());
                    rest
                }
                Some((counts, rest)) => {
                    let Some((min, max)) = counts else {
                        return Err(Error::new(Code::InvalidRepeatSize, before(text, rest)));
                    };
                    let rest = self.repeat(Count { min, max, spelled: true }, text, rest, last_repeat)?;
                    return Ok((rest, text));
                }
            },
            '\\' => self.escape(text)?,
            c => {
                self.literal(c.into());
                rest
            }
        };
        Ok((rest, ""))
    }

    fn top(&mut self) -> &mut Open {
        self.groups.last_mut().expect("the outermost group is never closed")
    }

    fn push(&mut self, hir: Hir) {
        self.top().sequence.push(Piece { hir, size: 1, times: 1 });
    }

    fn push_look(&mut self, look: Look, rest: &'e str) -> &'e str {
        self.push(Hir::look(look));
        rest
    }

    fn push_class(&mut self, class: ClassUnicode) -> Result<(), Error> {
        self.count_ranges(class.ranges().len())?;
        self.push(Hir::class(Class::Unicode(class)));
        Ok(())
    }

    fn count_ranges(&mut self, ranges: usize) -> Result<(), Error> {
        self.ranges += ranges;
        if self.ranges > RANGES_MAX { Err(Error::new(Code::Large, self.whole)) } else { Ok(()) }
    }

    /// A code point; a surrogate is in no text.
    fn literal(&mut self, code: u32) {
        let Some(c) = char::from_u32(code) else { return self.push(Hir::fail()) };
        if self.flags.folds_case {
            let mut class = ClassUnicode::new(range(code, code));
            class.case_fold_simple();
            return self.push(Hir::class(Class::Unicode(class)));
        }
        self.push(Hir::literal(c.to_string().into_bytes()));
    }

    fn open(&mut self, capture: Option<(u32, Option<Box<str>>)>) -> Result<(), Error> {
        if self.groups.len() > DEPTH_MAX {
            return Err(Error::new(Code::NestingDepth, self.whole));
        }
        self.groups.push(Open { flags: self.flags, capture, branches: Vec::new(), sequence: Vec::new() });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.groups.len() < 2 {
            return Err(Error::new(Code::UnexpectedParen, self.whole));
        }
        let group = self.groups.pop().expect("two groups");
        self.flags = group.flags;
        let mut piece = alternation(group.branches, group.sequence);
        if let Some((index, name)) = group.capture {
            piece.hir = Hir::capture(Capture { index, name, sub: Box::new(piece.hir) });
            piece.size += 2;
        }
        self.fits(&piece)?;
        self.top().sequence.push(piece);
        Ok(())
    }

    fn finish(mut self) -> Result<Hir, Error> {
        if self.groups.len() > 1 {
            return Err(Error::new(Code::MissingParen, self.whole));
        }
        let group = self.groups.pop().expect("the outermost group");
        let piece = alternation(group.branches, group.sequence);
        self.fits(&piece)?;
        Ok(piece.hir)
    }

    fn fits(&self, piece: &Piece) -> Result<(), Error> {
        if piece.size > SIZE_MAX { Err(Error::new(Code::Large, self.whole)) } else { Ok(()) }
    }

    fn repeat(
        &mut self,
        count: Count,
        text: &'e str,
        mut rest: &'e str,
        last_repeat: &'e str,
    ) -> Result<&'e str, Error> {
        let mut greedy = !self.flags.prefers_few;
        if let Some(behind) = rest.strip_prefix('?') {
            (rest, greedy) = (behind, !greedy);
        }
        if !last_repeat.is_empty() {
            return Err(Error::new(Code::InvalidRepeatOp, before(last_repeat, rest)));
        }
        let Some(piece) = self.top().sequence.pop() else {
            return Err(Error::new(Code::MissingRepeatArgument, before(text, rest)));
        };
        let times = match (count.spelled, count.max) {
            (true, Some(0)) => 1,
            (true, max) => piece.times.saturating_mul(max.unwrap_or(count.min).max(1)),
            (false, _) => piece.times,
        };
        if times > REPEAT_MAX && (count.min >= 2 || count.max.is_some_and(|max| max >= 2)) {
            return Err(Error::new(Code::InvalidRepeatSize, before(text, rest)));
        }
        let copies = u64::from(count.max.unwrap_or(count.min).max(1));
        let size = piece.size.saturating_mul(copies).saturating_add(copies);
        let repetition = Repetition { min: count.min, max: count.max, greedy, sub: Box::new(piece.hir) };
        let piece = Piece { hir: Hir::repetition(repetition), size, times };
        self.fits(&piece)?;
        self.top().sequence.push(piece);
        Ok(rest)
    }

    /// `(?…`: a named group, one that does not capture, or flags.
    fn perl_group(&mut self, text: &'e str) -> Result<&'e str, Error> {
        let named = [("(?P<", 5), ("(?<", 4)];
        if let Some((start, _)) =
            named.iter().find(|(start, min)| text.starts_with(start) && text.len() >= *min)
        {
            let Some(end) = text.find('>') else { return Err(Error::new(Code::InvalidNamedCapture, text)) };
            let name = &text[start.len()..end];
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(Error::new(Code::InvalidNamedCapture, &text[..=end]));
            }
            self.captures += 1;
            self.open(Some((self.captures, Some(name.into()))))?;
            return Ok(&text[end + 1..]);
        }
        let (mut flags, mut set, mut seen) = (self.flags, true, false);
        let mut chars = text[2..].chars();
        while let Some(c) = chars.next() {
            match c {
                'i' => flags.folds_case = set,
                'm' => flags.multi_line = set,
                's' => flags.dot_matches_newline = set,
                'U' => flags.prefers_few = set,
                '-' if set => {
                    (set, seen) = (false, false);
                    continue;
                }
                ':' | ')' if set || seen => {
                    if c == ':' {
                        self.open(None)?;
                    }
                    self.flags = flags;
                    return Ok(chars.as_str());
                }
                _ => return Err(Error::new(Code::InvalidPerlOp, before(text, chars.as_str()))),
            }
            seen = true;
        }
        Err(Error::new(Code::InvalidPerlOp, text))
    }

    /// `\…` outside of brackets.
    fn escape(&mut self, text: &'e str) -> Result<&'e str, Error> {
        match text.as_bytes().get(1) {
            Some(b'A') => return Ok(self.push_look(Look::Start, &text[2..])),
            Some(b'z') => return Ok(self.push_look(Look::End, &text[2..])),
            Some(b'b') => return Ok(self.push_look(Look::WordAscii, &text[2..])),
            Some(b'B') => return Ok(self.push_look(Look::WordAsciiNegate, &text[2..])),
            Some(b'C') => return Err(Error::new(Code::InvalidEscape, &text[..2])),
            Some(b'Q') => {
                let (literal, rest) = text[2..].split_once(r"\E").unwrap_or((&text[2..], ""));
                literal.chars().for_each(|c| self.literal(c.into()));
                return Ok(rest);
            }
            _ => {}
        }
        if let Some((group, rest)) = escaped_group(text)? {
            self.push_class(group.into_class(self.flags.folds_case))?;
            return Ok(rest);
        }
        let (code, rest) = escaped(text)?;
        self.literal(code);
        Ok(rest)
    }

    /// `[…]`.
    fn bracketed(&mut self, whole: &'e str) -> Result<&'e str, Error> {
        let mut rest = &whole[1..];
        let negated = rest.starts_with('^');
        rest = &rest[usize::from(negated)..];
        let mut class = ClassUnicode::empty();
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            if let Some((group, behind)) = named_group(rest)? {
                self.add_group(&mut class, group)?;
                rest = behind;
                continue;
            }
            if let Some((group, behind)) = escaped_group(rest)? {
                self.add_group(&mut class, group)?;
                rest = behind;
                continue;
            }
            rest = self.add_range(&mut class, rest, whole)?;
        }
        if negated {
            class.negate();
        }
        self.push_class(class)?;
        Ok(&rest[1..])
    }

    fn add_group(&mut self, class: &mut ClassUnicode, group: Group) -> Result<(), Error> {
        let group = group.into_class(self.flags.folds_case);
        self.count_ranges(group.ranges().len())?;
        class.union(&group);
        Ok(())
    }

    /// A character of a class, or two and all between them.
    fn add_range(&self, class: &mut ClassUnicode, text: &'e str, whole: &'e str) -> Result<&'e str, Error> {
        let (first, mut rest) = class_char(text, whole)?;
        let mut last = first;
        if rest.len() >= 2 && rest.starts_with('-') && !rest[1..].starts_with(']') {
            (last, rest) = class_char(&rest[1..], whole)?;
            if last < first {
                return Err(Error::new(Code::InvalidCharRange, before(text, rest)));
            }
        }
        let mut added = ClassUnicode::new(range(first, last));
        if self.flags.folds_case {
            added.case_fold_simple();
        }
        class.union(&added);
        Ok(rest)
    }
}

fn concat(pieces: Vec<Piece>) -> Piece {
    let size = pieces.iter().fold(0_u64, |size, piece| size.saturating_add(piece.size));
    let times = pieces.iter().map(|piece| piece.times).max().unwrap_or(1);
    Piece { hir: Hir::concat(pieces.into_iter().map(|piece| piece.hir).collect()), size: size.max(1), times }
}

fn alternation(mut branches: Vec<Piece>, last: Vec<Piece>) -> Piece {
    branches.push(concat(last));
    let size = branches.iter().fold(0_u64, |size, piece| size.saturating_add(piece.size + 1));
    let times = branches.iter().map(|piece| piece.times).max().unwrap_or(1);
    Piece { hir: Hir::alternation(branches.into_iter().map(|piece| piece.hir).collect()), size, times }
}

/// The part of a text that stands before the rest of it.
fn before<'t>(text: &'t str, rest: &str) -> &'t str {
    &text[..text.len() - rest.len()]
}
