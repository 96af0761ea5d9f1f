//! Expressions of CEL: whether they can be read, and whether what they say fits what there is to be said something about.
//!
//! Reading is the `cel` crate's. Types are checked here as cel-go checks them, against an [`Environment`] and the functions
//! of `expression/functions.txt`, which `tests/upstream/expressions` has written down from kube-apiserver's own. What an
//! expression would cost is not estimated.

mod calls;
mod checker;
mod environment;
mod escape;
mod functions;
mod literals;
mod macros;
mod source;
mod substitution;
mod types;

use std::io;
use std::marker::PhantomData;
use std::thread;

pub use environment::Environment;
pub use escape::{escape, is_reserved};
pub use types::{Generic, Type};

use checker::Checker;
use source::{Problem, Problems};

/// Deeper ones are refused; upstream reads 250 levels.
const DEPTH: u16 = 96;
/// Longer ones are not looked at: every operator of a chain may cost a frame of the parser's.
const LONGEST: usize = 16 * 1024;
/// Enough for the longest, of which only that becomes memory what is used.
const STACK: usize = 128 << 20;

/// An expression that fits.
#[derive(Debug)]
pub struct Checked {
    pub result: Type,
    /// The variables that it speaks of.
    pub uses: Vec<String>,
}

/// Shows that its holder runs on a stack which is large enough for every expression that is looked at. It cannot leave
/// its thread.
#[derive(Clone, Copy, Debug)]
pub struct DeepStack(PhantomData<*const ()>);

/// Runs `work` on a thread with such a stack and waits for it. There is one thread for all expressions of an object; an
/// error means that the system had none to give.
pub fn on_deep_stack<R: Send>(work: impl FnOnce(DeepStack) -> R + Send) -> io::Result<R> {
    on_stack_of(STACK, work)
}

fn on_stack_of<R: Send>(size: usize, work: impl FnOnce(DeepStack) -> R + Send) -> io::Result<R> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("expressions".to_owned()).stack_size(size);
        let worker = builder.spawn_scoped(scope, || work(DeepStack(PhantomData)))?;
        Ok(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// What an expression evaluates to, or what is wrong with it, as cel-go prints it. `None` for an expression that is too
/// long to be looked at.
pub fn check(text: &str, environment: &Environment, _: DeepStack) -> Option<Result<Checked, String>> {
    (text.len() <= LONGEST).then(|| read_and_check(text, environment))
}

fn read_and_check(text: &str, environment: &Environment) -> Result<Checked, String> {
    let failed = |problems: &Problems| format!("compilation failed: {}", problems.show(text));
    let parser = macros::parser(environment.bindings);
    let (expression, positions) = parser.parse_with_source_info(text).map_err(|errors| {
        let mut problems = Problems::default();
        errors.errors.into_iter().for_each(|error| problems.push(Problem::of_parser(error)));
        failed(&problems)
    })?;
    let mut checker = Checker::new(environment);
    let result = checker.check(&expression);
    let checked = checker.finish(&expression, result);
    checked.map_err(|problems| failed(&Problems::placed(problems, text, &positions)))
}

#[cfg(test)]
mod tests;
