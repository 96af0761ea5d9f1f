//! The worst-case cost of an expression, by the declared sizes of values (cel-go `checker/cost.go`, Kubernetes'
//! `library/cost.go`). These numbers decide which definitions are taken: they are upstream's to the unit.

mod calls;
mod range;
mod sizes;
mod walk;

use smol_str::SmolStr;

use self::sizes::Walk;
use crate::check::Checked;
use crate::decl::Decl;
use crate::deep;

/// How much there is at most at a path: a variable, and the fields, `@items`, `@keys` and `@values` on the way.
pub type Sizes<'s> = &'s (dyn Fn(&[SmolStr]) -> Option<u64> + Sync);

/// The worst cost of an expression whose variables are all of this type.
pub fn worst_cost(checked: &Checked, of: &Decl) -> u64 {
    Walk::new(checked, &|path| walk::declared(of, path)).cost(checked.ast.root).max
}

/// The worst cost of an expression about values of these sizes; `None` if the system has no stack for it.
pub fn worst_cost_by(checked: &Checked, sizes: Sizes<'_>) -> Option<u64> {
    let cost = || Walk::new(checked, sizes).cost(checked.ast.root).max;
    if checked.is_deep() { deep::run(cost) } else { Some(cost()) }
}
