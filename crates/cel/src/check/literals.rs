//! Texts that functions could not read, seen before they are called (cel-go `cel/validator.go`, `ext/formatting.go`).

use rowplane_values::gotext::parse_duration;

use crate::source::Problem;
use crate::syntax::ast::{Ast, Expr, Id, Literal};

pub fn check(ast: &Ast, id: Id, problems: &mut Vec<Problem>) {
    if let Expr::Call { function, arguments, .. } = ast.expr(id)
        && let Some(at) = literal_of(function, arguments)
        && let Expr::Literal(Literal::String(text)) = ast.expr(at)
        && !is_readable(function, text)
    {
        problems.push(Problem::at(ast.start(at), format!("invalid {function} argument")));
    }
    ast.expr(id).children().into_iter().for_each(|child| check(ast, child, problems));
}

/// The argument that has to be readable.
fn literal_of(function: &str, arguments: &[Id]) -> Option<Id> {
    match function {
        "duration" | "timestamp" | "matches" => arguments.first().copied(),
        _ => None,
    }
}

fn is_readable(function: &str, text: &str) -> bool {
    match function {
        "duration" => parse_duration(text).is_ok(),
        "timestamp" => crate::time::Timestamp::parse(text).is_some(),
        _ => crate::pattern::Pattern::new(text).is_ok(),
    }
}
