//! What an expression may cost at most, by what is declared of the sizes of values (cel-go `checker/cost.go`, Kubernetes'
//! `library/cost.go`). These numbers decide which definitions are taken: they are upstream's to the unit.

mod calls;
mod range;
mod walk;

use crate::check::Checked;
use crate::decl::Decl;

/// The worst cost of an expression whose variables are all of this type.
pub fn worst_cost(checked: &Checked, of: &Decl) -> u64 {
    walk::Walk::new(checked, of).cost(checked.ast.root).max
}
