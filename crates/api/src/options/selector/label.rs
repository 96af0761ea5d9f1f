//! Label selectors: `a=b,c in (d,e),!f` (apimachinery `labels.Parse`).

mod lexer;
mod structured;

use crate::causes::Cause;
use crate::causes::aggregate;
use crate::gotext;
use crate::kinds::behavior::format;

use lexer::{Token, tokens};

/// All requirements must match; without requirements, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
}

/// Values are sorted, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Parses the query parameter. The error is the whole message of upstream's 400.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        parser.selector().map(|requirements| Self { requirements })
    }

    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object matches. `lookup` returns the value of a label of the object.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(lookup(&requirement.key)))
    }
}

impl Requirement {
    /// The number of texts with which the label is compared.
    pub fn comparisons(&self) -> usize {
        match &self.operator {
            Operator::In(values) | Operator::NotIn(values) => values.len(),
            _ => 1,
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let integer = || value.and_then(|v| gotext::parse_int(v).ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|v| values.iter().any(|w| w == v)),
            Operator::NotIn(values) => value.is_none_or(|v| values.iter().all(|w| w != v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(bound) => integer().is_some_and(|v| v > *bound),
            Operator::LessThan(bound) => integer().is_some_and(|v| v < *bound),
        }
    }
}

#[derive(Clone, Copy)]
enum Binary {
    In,
    NotIn,
    Equals,
    NotEquals,
    GreaterThan,
    LessThan,
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                token if token.identifier().is_some() || token == Token::Not => {}
                Token::End => return Ok(requirements),
                other => {
                    return Err(format!("found '{other}', expected: !, identifier, or 'end of string'"));
                }
            }
            let requirement =
                self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Comma => self.expect_term()?,
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn expect_term(&self) -> Result<(), String> {
        match self.peek() {
            Token::Not => Ok(()),
            token if token.identifier().is_some() => Ok(()),
            other => Err(format!("found '{other}', expected: identifier after ','")),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == Token::Not;
        if negated {
            self.next();
        }
        let token = self.next();
        let key = token.identifier().ok_or_else(|| format!("found '{token}', expected: identifier"))?;
        check_key(key)?;
        let operator = match self.peek() {
            _ if negated => Operator::DoesNotExist,
            Token::End | Token::Comma => Operator::Exists,
            _ => self.comparison(key)?,
        };
        Ok(Requirement { key: key.to_owned(), operator })
    }

    fn comparison(&mut self, key: &str) -> Result<Operator, String> {
        let operator = match self.next() {
            Token::In => Binary::In,
            Token::NotIn => Binary::NotIn,
            Token::Equals | Token::DoubleEquals => Binary::Equals,
            Token::NotEquals => Binary::NotEquals,
            Token::GreaterThan => Binary::GreaterThan,
            Token::LessThan => Binary::LessThan,
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let mut values = match operator {
            Binary::In | Binary::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        values.sort_unstable();
        values.dedup();
        build(key, operator, values)
    }

    fn values(&mut self) -> Result<Vec<&'a str>, String> {
        match self.next() {
            Token::Open => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        match self.peek() {
            Token::Close => {
                self.next();
                Ok(vec![""])
            }
            Token::Comma => self.value_list(),
            token if token.identifier().is_some() => self.value_list(),
            other => Err(format!("found '{other}', expected: ',', ')' or identifier")),
        }
    }

    /// Reads a list of values and the closing parenthesis; a missing value is the empty string.
    fn value_list(&mut self) -> Result<Vec<&'a str>, String> {
        let mut values = Vec::new();
        loop {
            let token = self.next();
            if let Some(value) = token.identifier() {
                values.push(value);
                match self.peek() {
                    Token::Comma => {}
                    Token::Close => break,
                    other => return Err(format!("found '{other}', expected: ',' or ')'")),
                }
            } else if token == Token::Comma {
                if values.is_empty() || matches!(self.peek(), Token::Close | Token::Comma) {
                    values.push("");
                }
                if self.peek() == Token::Close {
                    break;
                }
            } else {
                return Err(format!("found '{token}', expected: ',', or identifier"));
            }
        }
        self.next();
        Ok(values)
    }

    fn exact_value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok("");
        }
        let token = self.next();
        token.identifier().ok_or_else(|| format!("found '{token}', expected: identifier"))
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let messages = format::label_key(key);
    if messages.is_empty() {
        return Ok(());
    }
    // Upstream has no path here, and prints a nil path.
    Err(aggregate(&[Cause::invalid("<nil>", gotext::quote(key), &messages.join("; "))]))
}

fn build(key: &str, operator: Binary, values: Vec<&str>) -> Result<Operator, String> {
    let bound = values.first().and_then(|value| gotext::parse_int(value).ok());
    let ordered = matches!(operator, Binary::GreaterThan | Binary::LessThan);
    let mut causes = Vec::new();
    if ordered && bound.is_none() {
        let value = gotext::quote(values.first().copied().unwrap_or_default());
        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
        causes.push(Cause::invalid("values[0]", value, why));
    }
    for (i, value) in values.iter().enumerate() {
        let messages = format::label_value(value);
        if !messages.is_empty() {
            let field = format!("values[{i}][{key}]");
            causes.push(Cause::invalid(field, gotext::quote(value), &messages.join("; ")));
        }
    }
    if !causes.is_empty() {
        return Err(aggregate(&causes));
    }
    let bound = bound.unwrap_or_default();
    let values = values.into_iter().map(str::to_owned).collect();
    Ok(match operator {
        Binary::In | Binary::Equals => Operator::In(values),
        Binary::NotIn | Binary::NotEquals => Operator::NotIn(values),
        Binary::GreaterThan => Operator::GreaterThan(bound),
        Binary::LessThan => Operator::LessThan(bound),
    })
}
