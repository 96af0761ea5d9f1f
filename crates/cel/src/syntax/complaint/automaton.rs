//! The grammar as an automaton: a state for each place between two signs, as ANTLR builds it.

use std::sync::LazyLock;

use super::{Kind, Kinds};

pub type StateId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldList,
    OptField,
    MapList,
    EscapeIdent,
    OptExpr,
    Literal,
}

/// A part of a rule.
enum Part {
    Token(Kind),
    Any(&'static [Kind]),
    Rule(Rule, u8),
    Maybe(Vec<Part>),
    /// Any number of one of these.
    Many(Vec<Vec<Part>>),
    /// One or more.
    More(Vec<Part>),
    OneOf(Vec<Vec<Part>>),
    /// Only where operators bind no more than that.
    Binding(u8),
}

#[derive(Clone, Copy, Debug)]
pub enum Edge {
    Free(StateId),
    Token(Kinds, StateId),
    Rule { rule: Rule, precedence: u8, follow: StateId },
    Binding(u8, StateId),
}

impl Edge {
    pub fn target(self) -> StateId {
        match self {
            Self::Free(to) | Self::Token(_, to) | Self::Binding(_, to) => to,
            Self::Rule { follow, .. } => follow,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    Plain,
    /// The start of branches.
    Block,
    /// The start of a loop, before its first round.
    LoopEntry,
    /// The end of a round, at which the next round of the loop may begin.
    LoopBack,
    /// The end of a rule.
    Stop,
}

#[derive(Debug)]
pub struct State {
    pub rule: Rule,
    pub kind: StateKind,
    pub edges: Vec<Edge>,
}

#[derive(Debug, Default)]
pub struct Automaton {
    pub states: Vec<State>,
    starts: Vec<StateId>,
    stops: Vec<StateId>,
}

/// The automaton of cel-go's grammar.
pub static GRAMMAR: LazyLock<Automaton> = LazyLock::new(|| {
    let mut automaton = Automaton::default();
    let rules = rules();
    for (rule, _) in &rules {
        let start = automaton.state(*rule, StateKind::Plain);
        let stop = automaton.state(*rule, StateKind::Stop);
        automaton.starts.push(start);
        automaton.stops.push(stop);
    }
    for (rule, parts) in rules {
        let mut at = automaton.start(rule);
        for part in &parts {
            at = automaton.add(rule, at, part);
        }
        let stop = automaton.stops[rule as usize];
        automaton.states[at].edges.push(Edge::Free(stop));
    }
    automaton
});

impl Automaton {
    pub fn start(&self, rule: Rule) -> StateId {
        self.starts[rule as usize]
    }

    fn state(&mut self, rule: Rule, kind: StateKind) -> StateId {
        self.states.push(State { rule, kind, edges: Vec::new() });
        self.states.len() - 1
    }

    fn link(&mut self, from: StateId, edge: Edge) -> StateId {
        self.states[from].edges.push(edge);
        edge.target()
    }

    /// Adds a part behind a state; the state behind the part.
    fn add(&mut self, rule: Rule, from: StateId, part: &Part) -> StateId {
        let plain = |automaton: &mut Self| automaton.state(rule, StateKind::Plain);
        match part {
            Part::Token(kind) => {
                let to = plain(self);
                self.link(from, Edge::Token(Kinds::of(&[*kind]), to))
            }
            Part::Any(kinds) => {
                let to = plain(self);
                self.link(from, Edge::Token(Kinds::of(kinds), to))
            }
            Part::Rule(of, precedence) => {
                let follow = plain(self);
                self.link(from, Edge::Rule { rule: *of, precedence: *precedence, follow })
            }
            Part::Binding(least) => {
                let to = plain(self);
                self.link(from, Edge::Binding(*least, to))
            }
            Part::Maybe(parts) => {
                let (block, end) = (self.state(rule, StateKind::Block), plain(self));
                self.link(from, Edge::Free(block));
                self.branch(rule, block, parts, end);
                self.link(block, Edge::Free(end))
            }
            Part::OneOf(branches) => {
                let (block, end) = (self.state(rule, StateKind::Block), plain(self));
                self.link(from, Edge::Free(block));
                branches.iter().for_each(|parts| self.branch(rule, block, parts, end));
                end
            }
            Part::Many(branches) => {
                let (entry, back) =
                    (self.state(rule, StateKind::LoopEntry), self.state(rule, StateKind::LoopBack));
                let (body, end) = (self.state(rule, StateKind::Block), plain(self));
                self.link(from, Edge::Free(entry));
                branches.iter().for_each(|parts| self.branch(rule, body, parts, back));
                for loops in [entry, back] {
                    self.link(loops, Edge::Free(body));
                    self.link(loops, Edge::Free(end));
                }
                end
            }
            Part::More(parts) => {
                let (body, back) =
                    (self.state(rule, StateKind::Block), self.state(rule, StateKind::LoopBack));
                let end = plain(self);
                self.link(from, Edge::Free(body));
                self.branch(rule, body, parts, back);
                self.link(back, Edge::Free(body));
                self.link(back, Edge::Free(end))
            }
        }
    }

    fn branch(&mut self, rule: Rule, from: StateId, parts: &[Part], end: StateId) {
        let mut at = self.state(rule, StateKind::Plain);
        self.link(from, Edge::Free(at));
        for part in parts {
            at = self.add(rule, at, part);
        }
        self.link(at, Edge::Free(end));
    }

    /// The kinds of tokens that may come next from a state, and whether its rule may end there.
    pub fn next(&self, state: StateId) -> (Kinds, bool) {
        let mut seen = vec![false; self.states.len()];
        let mut kinds = Kinds::default();
        let ends = self.look(state, &mut seen, &mut kinds);
        (kinds, ends)
    }

    fn look(&self, state: StateId, seen: &mut Vec<bool>, kinds: &mut Kinds) -> bool {
        if std::mem::replace(&mut seen[state], true) {
            return false;
        }
        if self.states[state].kind == StateKind::Stop {
            return true;
        }
        let mut ends = false;
        for edge in &self.states[state].edges {
            ends |= match edge {
                Edge::Token(more, _) => {
                    *kinds = kinds.with(*more);
                    false
                }
                Edge::Free(to) | Edge::Binding(_, to) => self.look(*to, seen, kinds),
                Edge::Rule { rule, follow, .. } => {
                    let mut inside = vec![false; self.states.len()];
                    // No rule of the grammar is empty but those that may end are looked behind.
                    self.look(self.start(*rule), &mut inside, kinds) && self.look(*follow, seen, kinds)
                }
            };
        }
        ends
    }

    /// The states behind all calls of a rule.
    pub fn follows(&self, rule: Rule) -> impl Iterator<Item = StateId> + '_ {
        self.states.iter().flat_map(|state| &state.edges).filter_map(move |edge| match edge {
            Edge::Rule { rule: of, follow, .. } if *of == rule => Some(*follow),
            _ => None,
        })
    }
}

fn rules() -> Vec<(Rule, Vec<Part>)> {
    use Part::{Any, Binding, Many, Maybe, More, OneOf, Rule as Call, Token};
    let call = |rule| Call(rule, 0);
    let dot = || Maybe(vec![Token(Kind::Dot)]);
    let optional = || Maybe(vec![Token(Kind::Question)]);
    let comma = || Maybe(vec![Token(Kind::Comma)]);
    let arguments = || Maybe(vec![call(Rule::ExprList)]);
    let entries = |key: Rule| {
        let entry = move || vec![call(key), Token(Kind::Colon), call(Rule::Expr)];
        let more = [Token(Kind::Comma)].into_iter().chain(entry()).collect();
        entry().into_iter().chain([Many(vec![more])]).collect::<Vec<_>>()
    };
    let chain = |of: Rule, sign: Kind| vec![call(of), Many(vec![vec![Token(sign), call(of)]])];
    let separated = |of: Rule| vec![call(of), Many(vec![vec![Token(Kind::Comma), call(of)]])];
    let relations: &[Kind] = &[
        Kind::Less,
        Kind::LessEquals,
        Kind::GreaterEquals,
        Kind::Greater,
        Kind::Equals,
        Kind::NotEquals,
        Kind::In,
    ];
    let ternary = vec![Token(Kind::Question), call(Rule::Or), Token(Kind::Colon), call(Rule::Expr)];
    let products: &[Kind] = &[Kind::Star, Kind::Slash, Kind::Percent];
    let sums: &[Kind] = &[Kind::Plus, Kind::Minus];
    let member_call = vec![
        Binding(2),
        Token(Kind::Dot),
        Token(Kind::Identifier),
        Token(Kind::LeftParen),
        arguments(),
        Token(Kind::RightParen),
    ];
    let index =
        vec![Binding(1), Token(Kind::LeftBracket), optional(), call(Rule::Expr), Token(Kind::RightBracket)];
    let braces = |inner: Rule| [Maybe(vec![call(inner)]), comma(), Token(Kind::RightBrace)];
    let message = [
        dot(),
        Token(Kind::Identifier),
        Many(vec![vec![Token(Kind::Dot), Token(Kind::Identifier)]]),
        Token(Kind::LeftBrace),
    ];
    let list =
        vec![Token(Kind::LeftBracket), Maybe(vec![call(Rule::ListInit)]), comma(), Token(Kind::RightBracket)];
    let global =
        vec![dot(), Token(Kind::Identifier), Token(Kind::LeftParen), arguments(), Token(Kind::RightParen)];
    let minus = || Maybe(vec![Token(Kind::Minus)]);
    let one = |kind| vec![Token(kind)];
    vec![
        (Rule::Start, vec![call(Rule::Expr), Token(Kind::End)]),
        (Rule::Expr, vec![call(Rule::Or), Maybe(ternary)]),
        (Rule::Or, chain(Rule::And, Kind::Or)),
        (Rule::And, chain(Rule::Relation, Kind::And)),
        (
            Rule::Relation,
            vec![call(Rule::Calc), Many(vec![vec![Binding(1), Any(relations), Call(Rule::Relation, 2)]])],
        ),
        (
            Rule::Calc,
            vec![
                call(Rule::Unary),
                Many(vec![
                    vec![Binding(2), Any(products), Call(Rule::Calc, 3)],
                    vec![Binding(1), Any(sums), Call(Rule::Calc, 2)],
                ]),
            ],
        ),
        (
            Rule::Unary,
            vec![OneOf(vec![
                vec![call(Rule::Member)],
                vec![More(one(Kind::Exclamation)), call(Rule::Member)],
                vec![More(one(Kind::Minus)), call(Rule::Member)],
            ])],
        ),
        (
            Rule::Member,
            vec![
                call(Rule::Primary),
                Many(vec![
                    vec![Binding(3), Token(Kind::Dot), optional(), call(Rule::EscapeIdent)],
                    member_call,
                    index,
                ]),
            ],
        ),
        (
            Rule::Primary,
            vec![OneOf(vec![
                vec![dot(), Token(Kind::Identifier)],
                global,
                vec![Token(Kind::LeftParen), call(Rule::Expr), Token(Kind::RightParen)],
                list,
                [Token(Kind::LeftBrace)].into_iter().chain(braces(Rule::MapList)).collect(),
                message.into_iter().chain(braces(Rule::FieldList)).collect(),
                vec![call(Rule::Literal)],
            ])],
        ),
        (Rule::ExprList, separated(Rule::Expr)),
        (Rule::ListInit, separated(Rule::OptExpr)),
        (Rule::FieldList, entries(Rule::OptField)),
        (Rule::OptField, vec![optional(), call(Rule::EscapeIdent)]),
        (Rule::MapList, entries(Rule::OptExpr)),
        (Rule::EscapeIdent, vec![OneOf(vec![one(Kind::Identifier), one(Kind::Escaped)])]),
        (Rule::OptExpr, vec![optional(), call(Rule::Expr)]),
        (
            Rule::Literal,
            vec![OneOf(vec![
                vec![minus(), Token(Kind::Int)],
                one(Kind::Uint),
                vec![minus(), Token(Kind::Float)],
                one(Kind::String),
                one(Kind::Bytes),
                one(Kind::True),
                one(Kind::False),
                one(Kind::Null),
            ])],
        ),
    ]
}
