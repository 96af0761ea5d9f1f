//! Error recovery: parsing goes on behind an error, as ANTLR's default strategy does, and each error is told once.

use super::automaton::{Automaton, Edge, GRAMMAR, Rule, StateId, StateKind};
use super::{Kind, Kinds, Token, escaped};
use crate::source::Problem;

/// cel-go's limits of attempts to recover, and of problems.
const ATTEMPTS: usize = 30;
const MOST: usize = 100;
/// No text has so many rules within each other.
const DEEPEST: usize = 8000;

struct Frame {
    /// The state of the caller that called the rule, and the one behind the call.
    caller: StateId,
    follow: StateId,
    precedence: u8,
}

pub struct Recovery<'t> {
    automaton: &'static Automaton,
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    state: StateId,
    frames: Vec<Frame>,
    problems: Vec<Problem>,
    attempts: usize,
    /// Whether something was told and no token has fitted since.
    recovering: bool,
    /// The token of the last recovery, and the states in which it began there: the next one in such a state skips a token.
    last: Option<(usize, Vec<StateId>)>,
}

/// The syntax error that ends a rule early.
enum Wrong {
    Mismatch,
    NoBranch { start: usize, at: usize },
}

impl<'t> Recovery<'t> {
    pub fn new(text: &'t str, tokens: &'t [Token]) -> Self {
        let automaton = &*GRAMMAR;
        Self {
            automaton,
            text,
            tokens,
            at: 0,
            state: automaton.start(Rule::Start),
            frames: Vec::new(),
            problems: Vec::new(),
            attempts: 0,
            recovering: false,
            last: None,
        }
    }

    pub fn run(mut self) -> Vec<Problem> {
        while self.attempts <= ATTEMPTS && self.problems.len() < MOST && self.frames.len() < DEEPEST {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(wrong) => {
                    self.report(wrong);
                    self.recover();
                    if !self.leave() {
                        break;
                    }
                }
            }
        }
        self.problems
    }

    fn kind(&self, ahead: usize) -> Kind {
        self.tokens.get(self.at + ahead).map_or(Kind::End, |token| token.kind)
    }

    fn consume(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// Leaves a rule; false behind the first.
    fn leave(&mut self) -> bool {
        let Some(frame) = self.frames.pop() else { return false };
        self.state = frame.follow;
        true
    }

    /// One edge; false at the end.
    fn step(&mut self) -> Result<bool, Wrong> {
        let state = &self.automaton.states[self.state];
        match state.kind {
            StateKind::Stop => return Ok(self.leave()),
            StateKind::Block | StateKind::LoopEntry | StateKind::LoopBack => {
                self.sync()?;
                let branch = if state.edges.len() == 1 { 0 } else { self.predict()? };
                self.state = state.edges[branch].target();
                return Ok(true);
            }
            StateKind::Plain => {}
        }
        match state.edges[0] {
            Edge::Free(to) | Edge::Binding(_, to) => self.state = to,
            Edge::Rule { rule, precedence, follow } => {
                self.frames.push(Frame { caller: self.state, follow, precedence });
                self.state = self.automaton.start(rule);
            }
            Edge::Token(kinds, to) => {
                if kinds.has(self.kind(0)) {
                    self.matched();
                    self.consume();
                } else {
                    self.recover_inline(to)?;
                }
                self.state = to;
            }
        }
        Ok(true)
    }

    fn matched(&mut self) {
        self.recovering = false;
        self.last = None;
    }

    /// Looks, before a choice, whether any branch can begin with the token.
    fn sync(&mut self) -> Result<(), Wrong> {
        if self.recovering {
            return Ok(());
        }
        let (next, ends) = self.automaton.next(self.state);
        if ends || next.has(self.kind(0)) {
            return Ok(());
        }
        if self.automaton.states[self.state].kind == StateKind::LoopBack {
            self.unwanted();
            let until = self.expected(self.state).with(self.recovery_set());
            self.consume_until(until);
            return Ok(());
        }
        if self.drop_one() { Ok(()) } else { Err(Wrong::Mismatch) }
    }

    /// The kinds of tokens that may come next, by this rule and all that have called it.
    fn expected(&self, state: StateId) -> Kinds {
        let (mut expected, mut ends) = self.automaton.next(state);
        for frame in self.frames.iter().rev() {
            if !ends {
                return expected;
            }
            let (more, behind) = self.automaton.next(frame.follow);
            expected = expected.with(more);
            ends = behind;
        }
        if ends { expected.with(Kinds::of(&[Kind::End])) } else { expected }
    }

    fn recovery_set(&self) -> Kinds {
        self.frames.iter().fold(Kinds::default(), |all, frame| {
            let Edge::Rule { follow, .. } = self.automaton.states[frame.caller].edges[0] else { return all };
            all.with(self.automaton.next(follow).0)
        })
    }

    fn consume_until(&mut self, until: Kinds) {
        while self.kind(0) != Kind::End && !until.has(self.kind(0)) {
            self.consume();
        }
    }

    /// If the token behind fits, this one is too many.
    fn drop_one(&mut self) -> bool {
        let fits = self.expected(self.state).has(self.kind(1));
        if fits {
            self.unwanted();
            self.consume();
            self.matched();
        }
        fits
    }

    fn recover_inline(&mut self, to: StateId) -> Result<(), Wrong> {
        self.attempt();
        if self.drop_one() {
            self.consume();
            return Ok(());
        }
        if self.expected(to).has(self.kind(0)) {
            if !self.recovering {
                let expected = self.expected(self.state).names();
                let found = self.shown(self.at);
                self.tell(self.at, format!("missing {expected} at {found}"));
            }
            return Ok(());
        }
        Err(Wrong::Mismatch)
    }

    fn attempt(&mut self) {
        if self.attempts == ATTEMPTS {
            self.push(self.at, format!("error recovery attempt limit exceeded: {ATTEMPTS}"));
        }
        self.attempts += 1;
    }

    fn unwanted(&mut self) {
        if !self.recovering {
            let expected = self.expected(self.state).names();
            let found = self.shown(self.at);
            self.tell(self.at, format!("extraneous input {found} expecting {expected}"));
        }
    }

    fn report(&mut self, wrong: Wrong) {
        if self.recovering {
            return;
        }
        match wrong {
            Wrong::Mismatch => {
                let expected = self.expected(self.state).names();
                let found = self.shown(self.at);
                self.tell(self.at, format!("mismatched input {found} expecting {expected}"));
            }
            Wrong::NoBranch { start, at } => {
                let text = escaped(&self.text[self.tokens[start].span.start..self.tokens[at].span.end]);
                let text = if self.tokens[start].kind == Kind::End { "<EOF>" } else { &*text };
                let word =
                    text.strip_prefix(|_: char| true).filter(|word| ["true", "false", "null"].contains(word));
                let message = match word {
                    Some(word) => format!("mismatched input '{word}' expecting IDENTIFIER"),
                    None => format!("no viable alternative at input '{text}'"),
                };
                self.tell(at, message);
            }
        }
    }

    fn tell(&mut self, at: usize, message: String) {
        self.recovering = true;
        self.push(at, message);
    }

    fn push(&mut self, at: usize, message: String) {
        let start = self.tokens[at].span.start as u32;
        self.problems.push(Problem::at(start, format!("Syntax error: {message}")));
    }

    fn shown(&self, at: usize) -> String {
        match self.tokens[at].kind {
            Kind::End => "'<EOF>'".to_owned(),
            _ => format!("'{}'", escaped(&self.text[self.tokens[at].span.clone()])),
        }
    }

    /// Moves to where a rule around can go on.
    fn recover(&mut self) {
        self.attempt();
        let stuck =
            self.last.as_ref().is_some_and(|(at, states)| *at == self.at && states.contains(&self.state));
        if stuck {
            self.consume();
        }
        let states = match self.last.take() {
            Some((at, mut states)) => {
                states.push(self.state);
                (at, states).1
            }
            None => vec![self.state],
        };
        self.last = Some((self.at, states));
        let until = self.recovery_set();
        self.consume_until(until);
    }

    fn precedence(&self) -> u8 {
        self.frames.last().map_or(0, |frame| frame.precedence)
    }

    /// The branch of the current state to take.
    fn predict(&self) -> Result<usize, Wrong> {
        let state = &self.automaton.states[self.state];
        let token = self.kind(0);
        let branches: Vec<StateId> = state.edges.iter().map(|edge| edge.target()).collect();
        let is_loop = matches!(state.kind, StateKind::LoopEntry | StateKind::LoopBack);
        if is_loop && self.binds(branches[0]) {
            return Ok(usize::from(!self.enters(branches[0], token)));
        }
        let firsts: Vec<(Kinds, bool)> = branches.iter().map(|branch| self.first(*branch)).collect();
        let fitting: Vec<usize> = (0..branches.len()).filter(|at| firsts[*at].0.has(token)).collect();
        let is_optional =
            branches.len() == 2 && (is_loop || self.automaton.states[branches[1]].kind == StateKind::Plain);
        if is_optional && firsts[0].0.0 & firsts[1].0.0 == 0 {
            return Ok(usize::from(!firsts[0].0.has(token)));
        }
        match fitting[..] {
            [one] => Ok(one),
            [] => match firsts.iter().position(|(_, ends)| *ends) {
                Some(ending) => Ok(ending),
                None => Err(Wrong::NoBranch { start: self.at, at: self.at }),
            },
            _ => self.look_ahead(&branches),
        }
    }

    /// Whether the branches of a loop are operators that bind.
    fn binds(&self, body: StateId) -> bool {
        let first = self.automaton.states[body].edges.first().map(|edge| edge.target());
        first.is_some_and(|branch| matches!(self.automaton.states[branch].edges[..], [Edge::Binding(..)]))
    }

    fn enters(&self, body: StateId, token: Kind) -> bool {
        self.automaton.states[body].edges.iter().any(|edge| {
            let Edge::Binding(least, to) = self.automaton.states[edge.target()].edges[0] else {
                return false;
            };
            least >= self.precedence() && self.automaton.next(to).0.has(token)
        })
    }

    /// The kinds of tokens that a branch can begin with, whichever rules call this one, and whether the branch may end the
    /// rule without one.
    fn first(&self, branch: StateId) -> (Kinds, bool) {
        let (mut kinds, ends) = self.automaton.next(branch);
        if ends {
            let (mut open, mut seen) = (vec![self.automaton.states[branch].rule], Vec::new());
            while let Some(rule) = open.pop() {
                if seen.contains(&rule) {
                    continue;
                }
                seen.push(rule);
                for follow in self.automaton.follows(rule) {
                    let (more, behind) = self.automaton.next(follow);
                    kinds = kinds.with(more);
                    if behind {
                        open.push(self.automaton.states[follow].rule);
                    }
                }
            }
        }
        (kinds, ends)
    }

    /// Goes along all branches until one is left; of several that never differ, the first.
    fn look_ahead(&self, branches: &[StateId]) -> Result<usize, Wrong> {
        let mut paths = Paths::default();
        for (branch, state) in branches.iter().enumerate() {
            paths.close(self.automaton, Path { branch, state: *state, calls: Vec::new(), outside: false });
        }
        for at in self.at..self.tokens.len() {
            let mut next = Paths::default();
            for path in &paths.all {
                for edge in &self.automaton.states[path.state].edges {
                    if let Edge::Token(kinds, to) = edge
                        && kinds.has(self.tokens[at].kind)
                    {
                        next.close(self.automaton, Path { state: *to, ..path.clone() });
                    }
                }
            }
            let Some(first) = next.all.iter().map(|path| path.branch).min() else {
                let outside = paths.all.iter().filter(|path| path.outside).map(|path| path.branch).min();
                return outside.ok_or(Wrong::NoBranch { start: self.at, at });
            };
            if next.all.iter().all(|path| path.branch == first) || next.is_undecidable() {
                return Ok(first);
            }
            paths = next;
        }
        Ok(paths.all.iter().map(|path| path.branch).min().unwrap_or_default())
    }
}

/// A place in the automaton that a branch leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Path {
    branch: usize,
    state: StateId,
    /// The states at which the callers of called rules go on, the innermost last.
    calls: Vec<StateId>,
    /// Whether it has left the rule that it began in.
    outside: bool,
}

#[derive(Default)]
struct Paths {
    all: Vec<Path>,
}

impl Paths {
    /// Adds a path, and all that it leads to without a token.
    fn close(&mut self, automaton: &Automaton, path: Path) {
        if self.all.contains(&path) {
            return;
        }
        self.all.push(path.clone());
        let state = &automaton.states[path.state];
        if state.kind == StateKind::Stop {
            let mut path = path;
            match path.calls.pop() {
                Some(follow) => self.close(automaton, Path { state: follow, ..path }),
                None => automaton.follows(state.rule).for_each(|follow| {
                    self.close(automaton, Path { state: follow, outside: true, ..path.clone() });
                }),
            }
            return;
        }
        for edge in &state.edges {
            match edge {
                Edge::Token(..) => {}
                Edge::Free(to) | Edge::Binding(_, to) => {
                    self.close(automaton, Path { state: *to, ..path.clone() })
                }
                Edge::Rule { rule, follow, .. } => {
                    let mut path = path.clone();
                    path.calls.push(*follow);
                    self.close(automaton, Path { state: automaton.start(*rule), ..path });
                }
            }
        }
    }

    /// Whether every place that is reached is reached by several branches.
    fn is_undecidable(&self) -> bool {
        self.all.iter().all(|path| {
            let alike = |other: &&Path| other.state == path.state && other.calls == path.calls;
            self.all.iter().filter(alike).any(|other| other.branch != path.branch)
        })
    }
}
