//! Expressions of CEL as Kubernetes has them: read, checked, evaluated, with what they cost, in cel-go's words.
//!
//! [`check()`] reads an expression and finds its types in an [`Environment`]; [`program()`] makes a [`Program`] of what it
//! found, which is evaluated over values that borrow the object they are of.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

mod arithmetic;
mod check;
pub mod decl;
mod deep;
pub mod environment;
mod estimate;
pub mod functions;
mod library;
mod operators;
mod pattern;
mod program;
pub mod reserved;
pub mod rules;
mod source;
mod syntax;
mod time;
pub mod types;
pub mod value;

pub use check::Checked;
pub use environment::Environment;
pub use estimate::{worst_cost, worst_cost_by};
pub use library::authorization::{Authority, Authorization, Decision, Question};
pub use program::{Budget, Fault, Program, Variables};
pub use types::Type;

use source::Problem;
use syntax::parser::{DEEPEST, Failure, Parser};
use syntax::{ast::Ast, lexer, mismatch};

/// Texts of more letters are not looked at.
const LONGEST: usize = 100_000;
/// Trees that are deeper are worked on where there is more stack.
const SHALLOW: u16 = 64;

/// Why an expression is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The errors in the expression, as cel-go prints them.
    Wrong(String),
    /// The system has no thread with a stack that is deep enough for it now.
    NoStack,
}

/// The expression, parsed and type-checked, or why it is not taken.
pub fn check(text: &str, environment: &Environment) -> Result<Checked, Refusal> {
    let wrong = |problems| Refusal::Wrong(source::show(problems, text));
    let ast = parse(text, environment.bindings).map_err(wrong)?;
    if ast.depth(ast.root) <= SHALLOW {
        return check::check(ast, environment).map_err(wrong);
    }
    deep::run(|| check::check(ast, environment)).ok_or(Refusal::NoStack)?.map_err(wrong)
}

/// A plan for a checked expression; the error is that of a constant part, as of `int('a')`.
pub fn program(checked: &Checked, environment: &Environment) -> Result<Program, String> {
    program::plan(checked, environment)
}

fn parse(text: &str, bindings: bool) -> Result<Ast, Vec<Problem>> {
    let letters = text.chars().count();
    if letters > LONGEST {
        let why = format!("expression code point size exceeds limit: size: {letters}, limit {LONGEST}");
        return Err(vec![Problem::of_all(why)]);
    }
    let (tokens, unrecognized) = lexer::tokens(text);
    let mut problems: Vec<Problem> =
        unrecognized.iter().map(|lost| mismatch::unrecognized(text, &lost.span)).collect();
    match Parser::new(text, &tokens, bindings).parse() {
        Ok((ast, wrong)) => {
            problems.extend(wrong.into_iter().map(|wrong| Problem::at(wrong.start, wrong.message)));
            if problems.is_empty() { Ok(ast) } else { Err(problems) }
        }
        Err(failure) => {
            problems.push(match failure {
                Failure::Syntax(problem) => problem,
                Failure::TooDeep => {
                    Problem::of_all(format!("expression recursion limit exceeded: {DEEPEST}"))
                }
                Failure::TooDeepTree => Problem::of_all("max recursion depth exceeded".to_owned()),
            });
            Err(problems)
        }
    }
}
