//! Calls that stand for loops and bindings (cel-go `parser/macro.go`, `ext/{comprehensions,lists,bindings}.go`).
//!
//! `optMap` and `optFlatMap` stay calls, for they stand for their target twice: the checker and the planner expand them.

use smol_str::SmolStr;

use super::ast::{Ast, Comprehension, Expr, Id, Literal};
use crate::operators::{
    ADD, CONDITIONAL, EQUALS, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, MAP_INSERT, NOT_STRICTLY_FALSE,
};

const ACCUMULATOR: &str = "@result";
const OLD_ACCUMULATOR: &str = "__result__";
const SORTED: &str = "@__sortBy_input__";

/// The node at which a macro's call is wrong, and the error.
pub type Wrong = (Id, String);

/// A call that may be a macro's.
pub struct Call<'a> {
    pub ast: &'a mut Ast,
    /// The position of the call, which all nodes made from it get, too.
    pub start: u32,
    pub target: Option<Id>,
    pub arguments: &'a [Id],
    pub bindings: bool,
}

/// The kind of a loop, by its result.
#[derive(Clone, Copy)]
enum Loop {
    All,
    Exists,
    ExistsOne,
    Filter,
    List,
    Map,
    Entry,
}

/// The name of each macro, the numbers of its variables and of its arguments, and its kind of loop.
const LOOPS: [(&str, usize, usize, Loop); 16] = [
    ("all", 1, 2, Loop::All),
    ("exists", 1, 2, Loop::Exists),
    ("exists_one", 1, 2, Loop::ExistsOne),
    ("filter", 1, 2, Loop::Filter),
    ("map", 1, 2, Loop::List),
    ("map", 1, 3, Loop::List),
    ("all", 2, 3, Loop::All),
    ("exists", 2, 3, Loop::Exists),
    ("existsOne", 2, 3, Loop::ExistsOne),
    ("exists_one", 2, 3, Loop::ExistsOne),
    ("transformList", 2, 3, Loop::List),
    ("transformList", 2, 4, Loop::List),
    ("transformMap", 2, 3, Loop::Map),
    ("transformMap", 2, 4, Loop::Map),
    ("transformMapEntry", 2, 3, Loop::Entry),
    ("transformMapEntry", 2, 4, Loop::Entry),
];

impl Call<'_> {
    /// The tree that the call stands for; `None` for one that is no macro's.
    pub fn expand(&mut self, function: &str) -> Option<Result<Id, Wrong>> {
        let Some(target) = self.target else {
            let has = function == "has" && self.arguments.len() == 1;
            return has.then(|| self.has());
        };
        let count = self.arguments.len();
        if let Some(known) = LOOPS.iter().find(|known| known.0 == function && known.2 == count) {
            return Some(self.comprehension(target, known.1, known.3));
        }
        match (function, count) {
            ("sortBy", 2) => Some(self.sort_by(target)),
            ("bind", 3) if self.bindings && self.is_cel(target) => Some(self.bind()),
            ("optMap" | "optFlatMap", 2) => self.unnamed(function).map(Err),
            _ => None,
        }
    }

    fn is_cel(&self, target: Id) -> bool {
        matches!(self.ast.expr(target), Expr::Ident(name) if name == "cel")
    }

    fn push(&mut self, expr: Expr) -> Id {
        self.ast.push(self.start, expr)
    }

    fn ident(&mut self, name: &str) -> Id {
        self.push(Expr::Ident(name.into()))
    }

    fn literal(&mut self, value: Literal) -> Id {
        self.push(Expr::Literal(value))
    }

    fn call(&mut self, function: &str, arguments: Vec<Id>) -> Id {
        self.push(Expr::Call { function: function.into(), target: None, arguments: arguments.into() })
    }

    fn list(&mut self, elements: Vec<Id>) -> Id {
        let optional = vec![false; elements.len()].into();
        self.push(Expr::List { elements: elements.into(), optional })
    }

    /// A variable of an optional's that is no name.
    fn unnamed(&self, function: &str) -> Option<Wrong> {
        let at = self.arguments[0];
        match self.ast.expr(at) {
            Expr::Ident(_) => None,
            _ => Some((at, format!("{function}() variable name must be a simple identifier"))),
        }
    }

    fn has(&mut self) -> Result<Id, Wrong> {
        let argument = self.arguments[0];
        match self.ast.expr(argument) {
            Expr::Select { operand, field, .. } => {
                let test = Expr::Select { operand: *operand, field: field.clone(), test: true };
                Ok(self.push(test))
            }
            _ => Err((argument, "invalid argument to has() macro".to_owned())),
        }
    }

    /// The names of one variable or two.
    fn names(&self, count: usize, kind: Loop) -> Result<(SmolStr, Option<SmolStr>), Wrong> {
        let why = match (kind, count) {
            (Loop::Filter | Loop::List, 1) => "argument is not an identifier",
            _ => "argument must be a simple name",
        };
        let mut names = Vec::with_capacity(count);
        for at in &self.arguments[..count] {
            match self.ast.expr(*at) {
                Expr::Ident(name) => names.push(name.clone()),
                _ => return Err((*at, why.to_owned())),
            }
        }
        if let [one, two] = &names[..]
            && one == two
        {
            return Err((self.arguments[1], format!("duplicate variable name: {one}")));
        }
        let is_own = |name: &SmolStr| [ACCUMULATOR, OLD_ACCUMULATOR].contains(&name.as_str());
        if let Some(at) = names.iter().position(is_own) {
            let why = "iteration variable overwrites accumulator variable".to_owned();
            return Err((self.arguments[at], why));
        }
        let mut names = names.into_iter();
        Ok((names.next().unwrap_or_default(), names.next()))
    }

    fn comprehension(&mut self, range: Id, variables: usize, kind: Loop) -> Result<Id, Wrong> {
        let (first, second) = self.names(variables, kind)?;
        let (filter, body) = match self.arguments[variables..] {
            [body] => (None, body),
            [filter, body, ..] => (Some(filter), body),
            [] => (None, range),
        };
        let (init, condition, step) = self.parts(kind, &first, filter, body);
        let mut result = self.ident(ACCUMULATOR);
        if let Loop::ExistsOne = kind {
            let one = self.literal(Literal::Int(1));
            result = self.call(EQUALS, vec![result, one]);
        }
        let accumulator = ACCUMULATOR.into();
        let all = Comprehension { range, first, second, accumulator, init, condition, step, result };
        Ok(self.push(Expr::Comprehension(Box::new(all))))
    }

    /// The initial accumulator of a loop, its condition to go on, and its step.
    fn parts(&mut self, kind: Loop, variable: &SmolStr, filter: Option<Id>, body: Id) -> (Id, Id, Id) {
        let so_far = self.ident(ACCUMULATOR);
        let (init, condition, step) = match kind {
            Loop::All => {
                let same = self.ident(ACCUMULATOR);
                let step = self.call(LOGICAL_AND, vec![so_far, body]);
                (Literal::Bool(true), self.call(NOT_STRICTLY_FALSE, vec![same]), step)
            }
            Loop::Exists => {
                let same = self.ident(ACCUMULATOR);
                let step = self.call(LOGICAL_OR, vec![so_far, body]);
                let not = self.call(LOGICAL_NOT, vec![same]);
                (Literal::Bool(false), self.call(NOT_STRICTLY_FALSE, vec![not]), step)
            }
            Loop::ExistsOne => {
                let one = self.literal(Literal::Int(1));
                let more = self.call(ADD, vec![so_far, one]);
                let step = self.unless(body, more);
                (Literal::Int(0), self.literal(Literal::Bool(true)), step)
            }
            Loop::Filter | Loop::List => {
                let added = if let Loop::Filter = kind { self.ident(variable) } else { body };
                let added = self.list(vec![added]);
                let mut step = self.call(ADD, vec![so_far, added]);
                if let Loop::Filter = kind {
                    step = self.unless(body, step);
                }
                return self.gathering(step, filter, |call| call.list(Vec::new()));
            }
            Loop::Map | Loop::Entry => {
                let mut arguments = vec![so_far];
                if let Loop::Map = kind {
                    arguments.push(self.ident(variable));
                }
                arguments.push(body);
                let step = self.call(MAP_INSERT, arguments);
                return self.gathering(step, filter, |call| call.push(Expr::Map(Box::default())));
            }
        };
        (self.literal(init), condition, step)
    }

    /// A loop that goes through everything and makes a list or a map.
    fn gathering(&mut self, step: Id, filter: Option<Id>, init: impl Fn(&mut Self) -> Id) -> (Id, Id, Id) {
        let step = match filter {
            Some(filter) => self.unless(filter, step),
            None => step,
        };
        (init(self), self.literal(Literal::Bool(true)), step)
    }

    /// `condition ? more : what was there`.
    fn unless(&mut self, condition: Id, more: Id) -> Id {
        let same = self.ident(ACCUMULATOR);
        self.call(CONDITIONAL, vec![condition, more, same])
    }

    /// `list.sortBy(name, key)`: the list by the keys of its elements.
    fn sort_by(&mut self, target: Id) -> Result<Id, Wrong> {
        if matches!(self.ast.expr(target), Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. }) {
            let why =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err((target, why.to_owned()));
        }
        let sorted = self.ident(SORTED);
        let keys = self.comprehension(sorted, 1, Loop::List)?;
        let sorted = Some(self.ident(SORTED));
        let function = "@sortByAssociatedKeys".into();
        let result = self.push(Expr::Call { function, target: sorted, arguments: [keys].into() });
        Ok(self.binding(SORTED.into(), target, result))
    }

    /// `cel.bind(name, value, expression)`.
    fn bind(&mut self) -> Result<Id, Wrong> {
        let [variable, value, result] = self.arguments[..] else { return Ok(0) };
        match self.ast.expr(variable) {
            Expr::Ident(name) => {
                let name = name.clone();
                Ok(self.binding(name, value, result))
            }
            _ => Err((variable, "cel.bind() variable names must be simple identifiers".to_owned())),
        }
    }

    /// An expression in which a name stands for a value: a loop over nothing.
    fn binding(&mut self, name: SmolStr, init: Id, result: Id) -> Id {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        let (first, second) = ("#unused".into(), None);
        let all = Comprehension { range, first, second, accumulator: name, init, condition, step, result };
        self.push(Expr::Comprehension(Box::new(all)))
    }
}
