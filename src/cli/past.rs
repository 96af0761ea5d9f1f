//! Commands that look back and undo: clients of `/asof/` and `/history/` (docs/time.md).

pub mod asof;
pub mod blame;
pub mod diff;
pub mod history;
mod kinds;
pub(super) mod kubeconfig;
mod leaves;
pub mod session;
pub mod undo;
mod unified;
pub mod when;
