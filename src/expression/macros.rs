//! What stands for loops and bindings (cel-go `parser/macro.go`, `ext/{comprehensions,lists,bindings}.go`).
//!
//! The crate has macros too, but not all, and tells their mistakes in other words. Those of optionals are the checker's
//! ([`super::calls`]), for they stand for their target twice.

use std::sync::LazyLock;

use cel::common::ast::operators::{
    ADD, CONDITIONAL, EQUALS, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, NOT_STRICTLY_FALSE,
};
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr};
use cel::parser::{Macro, MacroExprHelper, Parser};
use cel::{Env, ParseError};

use super::DEPTH;

const ACCUMULATOR: &str = "@result";
const OLD_ACCUMULATOR: &str = "__result__";
const INSERT: &str = "cel.@mapInsert";
const SORTED: &str = "@__sortBy_input__";

static WITH_BINDINGS: LazyLock<Env> = LazyLock::new(|| environment(true));
static WITHOUT: LazyLock<Env> = LazyLock::new(|| environment(false));

/// What reads expressions; `bindings` says whether `cel.bind` is a word.
pub fn parser(bindings: bool) -> Parser {
    let parser = if bindings { WITH_BINDINGS.parser() } else { WITHOUT.parser() };
    parser.max_recursion_depth(DEPTH).enable_optional_syntax(true).enable_ident_escape_syntax(true)
}

/// What a loop makes.
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

/// Name, count of variables and arguments, and what comes of it.
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

fn environment(bindings: bool) -> Env {
    let mut environment = Env::default();
    let mut macros = vec![Macro::global("has", 1, has), Macro::receiver("sortBy", 2, sort_by)];
    for (name, variables, count, kind) in LOOPS {
        macros.push(Macro::receiver(name, count, move |helper, target, arguments| {
            let (target, arguments) = (target.take().unwrap_or_default(), std::mem::take(arguments));
            kind.expand(variables, helper, target, arguments).map(Some)
        }));
    }
    if bindings {
        macros.push(Macro::receiver("bind", 3, bind));
    }
    for added in macros {
        let known = environment.add_macro(added);
        debug_assert!(known.is_ok(), "{known:?}");
    }
    environment
}

impl Loop {
    fn expand(
        self,
        variables: usize,
        helper: &mut MacroExprHelper<'_>,
        iter_range: IdedExpr,
        mut arguments: Vec<IdedExpr>,
    ) -> Result<IdedExpr, ParseError> {
        let rest = arguments.split_off(variables);
        let why = match (self, variables) {
            (Loop::Filter | Loop::List, 1) => "argument is not an identifier",
            _ => "argument must be a simple name",
        };
        let (iter_var, iter_var2) = names(helper, &arguments, why)?;
        let body = match <[IdedExpr; 2]>::try_from(rest) {
            Ok([filter, body]) => (Some(filter), body),
            Err(rest) => (None, rest.into_iter().next().unwrap_or_default()),
        };
        let (accu_init, loop_cond, loop_step) = self.parts(helper, &iter_var, body);
        let mut result = ident(helper, ACCUMULATOR);
        if let Loop::ExistsOne = self {
            let one = integer(helper, 1);
            result = call(helper, EQUALS, vec![result, one]);
        }
        let accu_var = ACCUMULATOR.to_owned();
        let all = ComprehensionExpr {
            iter_range,
            iter_var,
            iter_var2,
            accu_var,
            accu_init,
            loop_cond,
            loop_step,
            result,
        };
        Ok(helper.next_expr(Expr::Comprehension(Box::new(all))))
    }

    /// What is there before, whether to go on, and what each round makes of it.
    fn parts(
        self,
        helper: &mut MacroExprHelper<'_>,
        variable: &str,
        (filter, body): (Option<IdedExpr>, IdedExpr),
    ) -> (IdedExpr, IdedExpr, IdedExpr) {
        let so_far = ident(helper, ACCUMULATOR);
        let (init, condition, step) = match self {
            Loop::All => {
                let same = ident(helper, ACCUMULATOR);
                let step = call(helper, LOGICAL_AND, vec![so_far, body]);
                (boolean(helper, true), call(helper, NOT_STRICTLY_FALSE, vec![same]), step)
            }
            Loop::Exists => {
                let same = ident(helper, ACCUMULATOR);
                let step = call(helper, LOGICAL_OR, vec![so_far, body]);
                let not = call(helper, LOGICAL_NOT, vec![same]);
                (boolean(helper, false), call(helper, NOT_STRICTLY_FALSE, vec![not]), step)
            }
            Loop::ExistsOne => {
                let one = integer(helper, 1);
                let more = call(helper, ADD, vec![so_far, one]);
                (integer(helper, 0), boolean(helper, true), unless(helper, body, more))
            }
            Loop::Filter => {
                let it = ident(helper, variable);
                let more = with(helper, so_far, it);
                (list(helper, Vec::new()), boolean(helper, true), unless(helper, body, more))
            }
            Loop::List => {
                let step = with(helper, so_far, body);
                (list(helper, Vec::new()), boolean(helper, true), step)
            }
            Loop::Map | Loop::Entry => {
                let mut arguments = vec![so_far];
                if let Loop::Map = self {
                    arguments.push(ident(helper, variable));
                }
                arguments.push(body);
                let step = call(helper, INSERT, arguments);
                (helper.next_expr(Expr::Map(MapExpr::default())), boolean(helper, true), step)
            }
        };
        match filter {
            Some(filter) => (init, condition, unless(helper, filter, step)),
            None => (init, condition, step),
        }
    }
}

/// The names of one variable or two.
fn names(
    helper: &MacroExprHelper<'_>,
    arguments: &[IdedExpr],
    why: &str,
) -> Result<(String, Option<String>), ParseError> {
    let name = |of: &IdedExpr| match &of.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(helper.new_error(of.id, why)),
    };
    let names = arguments.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    if let [one, two] = &names[..]
        && one == two
    {
        return Err(helper.new_error(arguments[1].id, format!("duplicate variable name: {one}")));
    }
    let is_own = |name: &String| [ACCUMULATOR, OLD_ACCUMULATOR].contains(&name.as_str());
    if let Some(at) = names.iter().position(is_own) {
        return Err(helper.new_error(arguments[at].id, "iteration variable overwrites accumulator variable"));
    }
    let mut names = names.into_iter();
    Ok((names.next().unwrap_or_default(), names.next()))
}

fn has(
    helper: &mut MacroExprHelper<'_>,
    _: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let argument = arguments.pop().unwrap_or_default();
    match argument.expr {
        Expr::Select(mut select) => {
            select.test = true;
            Ok(Some(helper.next_expr(Expr::Select(select))))
        }
        _ => Err(helper.new_error(argument.id, "invalid argument to has() macro")),
    }
}

/// `list.sortBy(name, key)`: the list by the keys of its elements.
fn sort_by(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let target = target.take().unwrap_or_default();
    if matches!(target.expr, Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_)) {
        let why =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(helper.new_error(target.id, why));
    }
    let sorted = ident(helper, SORTED);
    let keys = Loop::List.expand(1, helper, sorted, std::mem::take(arguments))?;
    let sorted = Some(Box::new(ident(helper, SORTED)));
    let func_name = "@sortByAssociatedKeys".to_owned();
    let result = helper.next_expr(Expr::Call(CallExpr { func_name, target: sorted, args: vec![keys] }));
    Ok(Some(binding(helper, SORTED, target, result)))
}

/// `cel.bind(name, value, expression)`.
fn bind(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let of_cel = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "cel");
    if !target.as_ref().is_some_and(of_cel) {
        return Ok(None);
    }
    let (result, value) = (arguments.pop().unwrap_or_default(), arguments.pop().unwrap_or_default());
    let variable = arguments.pop().unwrap_or_default();
    match &variable.expr {
        Expr::Ident(name) => Ok(Some(binding(helper, name, value, result))),
        _ => Err(helper.new_error(variable.id, "cel.bind() variable names must be simple identifiers")),
    }
}

/// An expression in which a name stands for a value: a loop over nothing.
fn binding(helper: &mut MacroExprHelper<'_>, name: &str, value: IdedExpr, result: IdedExpr) -> IdedExpr {
    let all = ComprehensionExpr {
        iter_range: list(helper, Vec::new()),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: boolean(helper, false),
        loop_step: ident(helper, name),
        result,
    };
    helper.next_expr(Expr::Comprehension(Box::new(all)))
}

/// `condition ? more : what was there`.
fn unless(helper: &mut MacroExprHelper<'_>, condition: IdedExpr, more: IdedExpr) -> IdedExpr {
    let same = ident(helper, ACCUMULATOR);
    call(helper, CONDITIONAL, vec![condition, more, same])
}

fn with(helper: &mut MacroExprHelper<'_>, so_far: IdedExpr, last: IdedExpr) -> IdedExpr {
    let last = list(helper, vec![last]);
    call(helper, ADD, vec![so_far, last])
}

fn list(helper: &mut MacroExprHelper<'_>, elements: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::List(ListExpr::new(elements)))
}

fn ident(helper: &mut MacroExprHelper<'_>, name: &str) -> IdedExpr {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn boolean(helper: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn integer(helper: &mut MacroExprHelper<'_>, value: i64) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
}

fn call(helper: &mut MacroExprHelper<'_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}
