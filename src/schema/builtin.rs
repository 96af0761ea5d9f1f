//! The types of built-in kinds, and the kinds that stand in them.

use std::sync::Arc;

use super::kind::Kind;
use super::names::Gvk;
use super::types::Types;

/// The types of all built-in kinds.
pub fn types() -> Arc<Types> {
    Types::built_in()
}

/// A kind that this program knows without a resource: those that every server answers with or reads (`Status`,
/// `DeleteOptions`), and those of lists.
pub fn kind(gvk: &Gvk) -> Option<Kind> {
    types().kind(gvk)
}
