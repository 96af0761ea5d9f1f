//! Primary expressions: names, messages, lists, maps and literals.

use smol_str::SmolStr;

use super::{EXPRESSION, Failure, Parsed, Parser};
use crate::reserved::is_reserved;
use crate::syntax::ast::{Expr, Field, Id, Literal, MapEntry};
use crate::syntax::lexer::Kind;
use crate::syntax::{mismatch, unescape};

impl<'t> Parser<'t> {
    pub(super) fn primary(&mut self) -> Result<Parsed, Failure> {
        match self.kind() {
            Kind::Dot | Kind::Identifier => self.named(),
            Kind::LeftParen => {
                self.at += 1;
                let nested = self.expr()?;
                self.expect(Kind::RightParen)?;
                Ok(nested)
            }
            Kind::LeftBracket => self.list(),
            Kind::LeftBrace => self.map(),
            _ => Ok((self.literal()?, 0)),
        }
    }

    fn named(&mut self) -> Result<Parsed, Failure> {
        let first = self.start();
        let dot = self.takes(Kind::Dot);
        if self.kind() != Kind::Identifier {
            return Err(Failure::Syntax(mismatch::no_name(self.text, first, &self.tokens[self.at])));
        }
        if self.is_message() {
            return self.message(dot);
        }
        let (start, word) = (self.start(), self.text());
        self.at += 1;
        let name: SmolStr = if dot { format!(".{word}").into() } else { word.into() };
        if self.kind() == Kind::LeftParen {
            let start = self.take();
            let (arguments, depth) = self.expressions(Kind::RightParen)?;
            if is_reserved(word) {
                return Ok((self.tell(first, format!("reserved identifier: {word}")), depth));
            }
            return Ok((self.call_or_macro(start, name, None, arguments), depth));
        }
        if is_reserved(word) {
            return Ok((self.tell(first, format!("reserved identifier: {word}")), 0));
        }
        Ok((self.ast.push(start, Expr::Ident(name)), 0))
    }

    /// Whether names with dots, and then a brace, begin here.
    fn is_message(&self) -> bool {
        let mut ahead = 1;
        while self.ahead(ahead) == Kind::Dot && self.ahead(ahead + 1) == Kind::Identifier {
            ahead += 2;
        }
        self.ahead(ahead) == Kind::LeftBrace
    }

    fn message(&mut self, dot: bool) -> Result<Parsed, Failure> {
        let mut name = if dot { ".".to_owned() } else { String::new() };
        while self.kind() != Kind::LeftBrace {
            name.push_str(self.text());
            self.at += 1;
        }
        let start = self.take();
        let (mut fields, mut depth) = (Vec::new(), 0);
        self.instead = (self.at, &[Kind::RightBrace, Kind::Comma, Kind::Question]);
        while self.kind() != Kind::RightBrace && !(fields.is_empty() && self.kind() == Kind::Comma) {
            let optional = self.takes(Kind::Question);
            let (name, _) = self.name()?;
            let colon = self.expect(Kind::Colon)?;
            let (value, deep) = self.expr()?;
            depth = depth.max(deep);
            let at = self.ast.push(colon, Expr::Unspecified);
            fields.push(Field { at, name, value, optional });
            if !self.takes(Kind::Comma) {
                break;
            }
        }
        if fields.is_empty() {
            self.takes(Kind::Comma);
        }
        self.expect_one_of(&[Kind::RightBrace, Kind::Comma])?;
        Ok((self.ast.push(start, Expr::Struct { name: name.into(), fields: fields.into() }), depth))
    }

    fn list(&mut self) -> Result<Parsed, Failure> {
        let start = self.take();
        let (mut elements, mut optional, mut depth) = (Vec::new(), Vec::new(), 0);
        self.instead = (self.at, &[Kind::RightBracket, Kind::Comma, Kind::Question]);
        while self.kind() != Kind::RightBracket && !(elements.is_empty() && self.kind() == Kind::Comma) {
            optional.push(self.takes(Kind::Question));
            let (element, deep) = self.expr()?;
            depth = depth.max(deep);
            elements.push(element);
            if !self.takes(Kind::Comma) {
                break;
            }
        }
        if elements.is_empty() {
            self.takes(Kind::Comma);
        }
        self.expect_one_of(&[Kind::RightBracket, Kind::Comma])?;
        let list = Expr::List { elements: elements.into(), optional: optional.into() };
        Ok((self.ast.push(start, list), depth))
    }

    fn map(&mut self) -> Result<Parsed, Failure> {
        let start = self.take();
        let (mut entries, mut depth) = (Vec::new(), 0);
        self.instead = (self.at, &[Kind::RightBrace, Kind::Comma, Kind::Question]);
        while self.kind() != Kind::RightBrace && !(entries.is_empty() && self.kind() == Kind::Comma) {
            let optional = self.takes(Kind::Question);
            let (key, one) = self.expr()?;
            self.expect(Kind::Colon)?;
            let (value, other) = self.expr()?;
            depth = depth.max(one).max(other);
            entries.push(MapEntry { key, value, optional });
            if !self.takes(Kind::Comma) {
                break;
            }
        }
        if entries.is_empty() {
            self.takes(Kind::Comma);
        }
        self.expect_one_of(&[Kind::RightBrace, Kind::Comma])?;
        Ok((self.ast.push(start, Expr::Map(entries.into())), depth))
    }

    /// Arguments up to the closing sign, which is taken.
    pub(super) fn expressions(&mut self, close: Kind) -> Result<(Vec<Id>, u16), Failure> {
        let (mut all, mut depth) = (Vec::new(), 0);
        self.instead = (self.at, &[Kind::RightParen]);
        if !self.takes(close) {
            loop {
                let (one, deep) = self.expr()?;
                depth = depth.max(deep);
                all.push(one);
                if !self.takes(Kind::Comma) {
                    break;
                }
            }
            self.expect(close)?;
        }
        Ok((all, depth))
    }

    fn literal(&mut self) -> Result<Id, Failure> {
        let start = self.start();
        let negative = self.takes(Kind::Minus);
        let (kind, text) = (self.kind(), self.text());
        if negative && !matches!(kind, Kind::Int | Kind::Float) {
            return Err(self.mismatch(&[Kind::Int, Kind::Float]));
        }
        let Some(read) = literal_of(kind, text, negative) else { return Err(self.mismatch(&EXPRESSION)) };
        self.at += 1;
        Ok(match read {
            Ok(literal) => self.ast.push(start, Expr::Literal(literal)),
            Err(why) => self.tell(start, why.to_owned()),
        })
    }
}

/// `None` for a token that is no literal.
fn literal_of(kind: Kind, text: &str, negative: bool) -> Option<Result<Literal, &'static str>> {
    let sign = if negative { "-" } else { "" };
    let radix = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => (format!("{sign}{digits}"), 16),
        None => (format!("{sign}{text}"), 10),
    };
    Some(match kind {
        Kind::True => Ok(Literal::Bool(true)),
        Kind::False => Ok(Literal::Bool(false)),
        Kind::Null => Ok(Literal::Null),
        Kind::Int => {
            let (digits, base) = radix(text);
            i64::from_str_radix(&digits, base).map(Literal::Int).map_err(|_| "invalid int literal")
        }
        Kind::Uint => {
            let (digits, base) = radix(&text[..text.len() - 1]);
            u64::from_str_radix(&digits, base).map(Literal::Uint).map_err(|_| "invalid uint literal")
        }
        Kind::Float => {
            let number = format!("{sign}{text}").parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Literal::Double).ok_or("invalid double literal")
        }
        Kind::String => unescape::string(text).map(|text| Literal::String(text.into())),
        Kind::Bytes => unescape::bytes(&text[1..]).map(Literal::Bytes),
        _ => return None,
    })
}
