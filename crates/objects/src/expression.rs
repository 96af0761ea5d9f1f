//! Expressions of CEL, as the crate of that name reads and checks them, with the words that upstream's compilers put before
//! what is wrong.

pub mod declared;

pub use rowplane_cel::decl::Decl;
pub use rowplane_cel::reserved::{escape, is_reserved};
pub use rowplane_cel::types::Generic;
pub use rowplane_cel::{
    Authority, Authorization, Budget, Checked, Decision, Environment, Fault, Program, Question, Refusal,
    Type, Variables, program, value, worst_cost_by,
};

/// The expression, parsed and type-checked, or why it is not taken, with `compilation failed` before its errors.
pub fn check(text: &str, environment: &Environment) -> Result<Checked, Refusal> {
    rowplane_cel::check(text, environment).map_err(|refusal| match refusal {
        Refusal::Wrong(why) => Refusal::Wrong(format!("compilation failed: {why}")),
        Refusal::NoStack => Refusal::NoStack,
    })
}
