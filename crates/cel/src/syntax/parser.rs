//! From tokens to a tree, by recursive descent. Depth is bounded as cel-go bounds it: no rule of its grammar is entered
//! more than [`DEEPEST`] times within itself, and no tree has more operators, selections and calls below each other.

mod primary;

use smol_str::SmolStr;

use super::ast::{Ast, Expr, Id, Literal};
use super::lexer::{Kind, Token};
use super::{macros, mismatch};
use crate::operators;
use crate::source::Problem;

pub const DEEPEST: u16 = 250;

/// Something wrong with a node of a tree that was read.
#[derive(Debug)]
pub struct Wrong {
    pub start: u32,
    pub message: String,
}

#[derive(Debug)]
pub enum Failure {
    /// A token that does not fit.
    Syntax(Problem),
    /// A rule within itself too often.
    TooDeep,
    /// Branches below each other, too many together.
    TooDeepTree,
}

pub struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    bindings: bool,
    ast: Ast,
    wrong: Vec<Wrong>,
    /// Tokens that may stand in place of an expression, and where.
    instead: (usize, &'static [Kind]),
    /// How often each rule is entered.
    exprs: u16,
    relations: u16,
    calcs: u16,
}

const NAMES: [Kind; 2] = [Kind::Identifier, Kind::Escaped];

/// The kinds of tokens that an expression may begin with.
const EXPRESSION: [Kind; 15] = [
    Kind::LeftBracket,
    Kind::LeftBrace,
    Kind::LeftParen,
    Kind::Dot,
    Kind::Minus,
    Kind::Exclamation,
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
    Kind::Identifier,
];

/// A node, and how many branches that cel-go counts are below each other in it.
type Parsed = (Id, u16);

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, tokens: &'t [Token], bindings: bool) -> Self {
        let ast = Ast::default();
        let wrong = Vec::new();
        let instead = (usize::MAX, &[][..]);
        Self { text, tokens, at: 0, bindings, ast, wrong, instead, exprs: 0, relations: 0, calcs: 0 }
    }

    pub fn parse(mut self) -> Result<(Ast, Vec<Wrong>), Failure> {
        let (root, depth) = self.expr()?;
        self.expect(Kind::End)?;
        if depth > DEEPEST {
            return Err(Failure::TooDeepTree);
        }
        self.ast.root = root;
        Ok((self.ast, self.wrong))
    }

    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    fn ahead(&self, count: usize) -> Kind {
        self.tokens.get(self.at + count).map_or(Kind::End, |token| token.kind)
    }

    fn start(&self) -> u32 {
        self.tokens[self.at].span.start as u32
    }

    fn text(&self) -> &'t str {
        &self.text[self.tokens[self.at].span.clone()]
    }

    /// The position of the current token, which is taken.
    fn take(&mut self) -> u32 {
        let start = self.start();
        self.at += 1;
        start
    }

    /// Takes a token of this kind, if it is the next one. A branch: rustc 1.95.0 loses the addition of `usize::from(bool)` here
    /// when it optimizes, and then no call with two arguments can be read.
    fn takes(&mut self, kind: Kind) -> bool {
        if self.kind() != kind {
            return false;
        }
        self.at += 1;
        true
    }

    fn expect(&mut self, kind: Kind) -> Result<u32, Failure> {
        self.expect_one_of(&[kind])
    }

    /// Takes a token of the first kind; the other kinds would have been taken before.
    fn expect_one_of(&mut self, kinds: &[Kind]) -> Result<u32, Failure> {
        match self.kind() {
            kind if kind != kinds[0] => Err(self.mismatch(kinds)),
            Kind::End => Ok(self.start()),
            _ => Ok(self.take()),
        }
    }

    /// The error that the current token is of none of these kinds.
    fn mismatch(&self, kinds: &[Kind]) -> Failure {
        let (at, instead) = self.instead;
        let instead = if at == self.at { instead } else { &[] };
        let (tokens, is_outermost) = (&self.tokens[self.at..], self.exprs == 1);
        Failure::Syntax(mismatch::mismatch(self.text, tokens, &[kinds, instead].concat(), is_outermost))
    }

    fn tell(&mut self, start: u32, message: String) -> Id {
        self.wrong.push(Wrong { start, message });
        self.ast.push(start, Expr::Unspecified)
    }

    fn deeper(count: &mut u16) -> Result<(), Failure> {
        *count += 1;
        if *count > DEEPEST { Err(Failure::TooDeep) } else { Ok(()) }
    }

    fn expr(&mut self) -> Result<Parsed, Failure> {
        Self::deeper(&mut self.exprs)?;
        let (condition, mut depth) = self.logical(false)?;
        let mut id = condition;
        if self.kind() == Kind::Question {
            let start = self.take();
            let yes = self.logical(false)?;
            self.expect(Kind::Colon)?;
            let no = self.expr()?;
            depth = depth.max(yes.1).max(no.1) + 1;
            id = self.call(start, operators::CONDITIONAL, vec![condition, yes.0, no.0]);
        }
        self.exprs -= 1;
        Ok((id, depth))
    }

    /// `a || b || c`, or `a && b && c`.
    fn logical(&mut self, and: bool) -> Result<Parsed, Failure> {
        let (sign, function) =
            if and { (Kind::And, operators::LOGICAL_AND) } else { (Kind::Or, operators::LOGICAL_OR) };
        let next = |parser: &mut Self| if and { parser.relation() } else { parser.logical(true) };
        let (first, mut depth) = next(self)?;
        let (mut terms, mut signs) = (vec![first], Vec::new());
        while self.kind() == sign {
            signs.push(self.take());
            let (term, deep) = next(self)?;
            depth = depth.max(deep);
            terms.push(term);
        }
        Ok((self.balanced(function, &terms, &signs), depth))
    }

    /// A tree as flat as may be.
    fn balanced(&mut self, function: &str, terms: &[Id], signs: &[u32]) -> Id {
        let [one] = terms else {
            let middle = signs.len() / 2;
            let left = self.balanced(function, &terms[..=middle], &signs[..middle]);
            let right = self.balanced(function, &terms[middle + 1..], &signs[middle + 1..]);
            return self.call(signs[middle], function, vec![left, right]);
        };
        *one
    }

    fn relation(&mut self) -> Result<Parsed, Failure> {
        Self::deeper(&mut self.relations)?;
        let (mut left, mut depth) = self.calc(1)?;
        while let Some(function) = relation_of(self.kind()) {
            let start = self.take();
            Self::deeper(&mut self.relations)?;
            let (right, deep) = self.calc(1)?;
            self.relations -= 1;
            depth = depth.max(deep) + 1;
            left = self.call(start, function, vec![left, right]);
        }
        self.relations -= 1;
        Ok((left, depth))
    }

    /// Sums and products; operators that bind less than `least` are left.
    fn calc(&mut self, least: u8) -> Result<Parsed, Failure> {
        Self::deeper(&mut self.calcs)?;
        let (mut left, mut depth) = self.unary()?;
        while let Some((function, binds)) = calc_of(self.kind()).filter(|(_, binds)| *binds >= least) {
            let start = self.take();
            let (right, deep) = self.calc(binds + 1)?;
            depth = depth.max(deep) + 1;
            left = self.call(start, function, vec![left, right]);
        }
        self.calcs -= 1;
        Ok((left, depth))
    }

    fn unary(&mut self) -> Result<Parsed, Failure> {
        let sign = self.kind();
        let function = match sign {
            Kind::Exclamation => operators::LOGICAL_NOT,
            Kind::Minus if !matches!(self.ahead(1), Kind::Int | Kind::Float) => operators::NEGATE,
            _ => return self.member(),
        };
        let start = self.take();
        let mut count = 1;
        while self.takes(sign) {
            count += 1;
        }
        let (member, depth) = self.member()?;
        Ok((if count % 2 == 0 { member } else { self.call(start, function, vec![member]) }, depth))
    }

    fn member(&mut self) -> Result<Parsed, Failure> {
        let (mut id, mut depth) = self.primary()?;
        loop {
            (id, depth) = match self.kind() {
                Kind::Dot => self.dot(id, depth)?,
                Kind::LeftBracket => {
                    let start = self.take();
                    self.instead = (self.at, &[Kind::Question]);
                    let optional = self.takes(Kind::Question);
                    let (index, deep) = self.expr()?;
                    self.expect(Kind::RightBracket)?;
                    let function = if optional { operators::OPT_INDEX } else { operators::INDEX };
                    (self.call(start, function, vec![id, index]), depth.max(deep) + 1)
                }
                _ => break,
            };
        }
        Ok((id, depth))
    }

    /// `.name`, `.?name` or `.name(arguments)`.
    fn dot(&mut self, operand: Id, depth: u16) -> Result<Parsed, Failure> {
        let start = self.take();
        let optional = self.takes(Kind::Question);
        let at = self.start();
        if !optional && !NAMES.contains(&self.kind()) {
            return Err(Failure::Syntax(mismatch::no_name(self.text, start, &self.tokens[self.at])));
        }
        let (name, escaped) = self.name()?;
        if optional {
            let field = self.ast.push(at, Expr::Literal(Literal::String(name)));
            return Ok((self.call(start, operators::OPT_SELECT, vec![operand, field]), depth + 1));
        }
        if !escaped && self.kind() == Kind::LeftParen {
            let start = self.take();
            let (arguments, deep) = self.expressions(Kind::RightParen)?;
            let id = self.call_or_macro(start, name, Some(operand), arguments);
            return Ok((id, depth.max(deep) + 1));
        }
        Ok((self.ast.push(start, Expr::Select { operand, field: name, test: false }), depth + 1))
    }

    /// A name, and whether it stands in backquotes.
    fn name(&mut self) -> Result<(SmolStr, bool), Failure> {
        let text = self.text();
        let name = match self.kind() {
            Kind::Identifier => (text.into(), false),
            Kind::Escaped => (text[1..text.len() - 1].into(), true),
            _ => return Err(self.mismatch(&NAMES)),
        };
        self.at += 1;
        Ok(name)
    }

    fn call(&mut self, start: u32, function: &str, arguments: Vec<Id>) -> Id {
        let call = Expr::Call { function: function.into(), target: None, arguments: arguments.into() };
        self.ast.push(start, call)
    }

    fn call_or_macro(&mut self, start: u32, function: SmolStr, target: Option<Id>, arguments: Vec<Id>) -> Id {
        let (ast, bindings) = (&mut self.ast, self.bindings);
        let mut call = macros::Call { ast, start, target, arguments: &arguments, bindings };
        match call.expand(&function) {
            None => self.ast.push(start, Expr::Call { function, target, arguments: arguments.into() }),
            Some(Ok(expanded)) => expanded,
            Some(Err((at, message))) => {
                let at = self.ast.start(at);
                self.tell(at, message)
            }
        }
    }
}

fn relation_of(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Less => operators::LESS,
        Kind::LessEquals => operators::LESS_EQUALS,
        Kind::GreaterEquals => operators::GREATER_EQUALS,
        Kind::Greater => operators::GREATER,
        Kind::Equals => operators::EQUALS,
        Kind::NotEquals => operators::NOT_EQUALS,
        Kind::In => operators::IN,
        _ => return None,
    })
}

/// The function of an operator, and how much it binds.
fn calc_of(kind: Kind) -> Option<(&'static str, u8)> {
    Some(match kind {
        Kind::Star => (operators::MULTIPLY, 2),
        Kind::Slash => (operators::DIVIDE, 2),
        Kind::Percent => (operators::MODULO, 2),
        Kind::Plus => (operators::ADD, 1),
        Kind::Minus => (operators::SUBTRACT, 1),
        _ => return None,
    })
}
