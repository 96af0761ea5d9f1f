//! Commands that look back and undo: clients of `/asof/` and `/history/` (docs/time.md).

pub mod asof;
pub mod blame;
pub mod diff;
pub mod history;
pub(super) mod kinds;
pub(super) mod kubeconfig;
mod leaves;
pub mod session;
pub mod undo;
mod unified;
pub mod when;

/// A text in a query.
pub(super) fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
