//! The types of built-in kinds, and the kinds that these types contain.

use std::sync::Arc;

use super::kind::Kind;
use super::names::Gvk;
use super::types::Types;

/// The types of all built-in kinds.
pub fn types() -> Arc<Types> {
    Types::built_in()
}

/// A kind that this program knows even without a resource: a kind that every server sends or reads (`Status`,
/// `DeleteOptions`), or a kind of lists.
pub fn kind(gvk: &Gvk) -> Option<Kind> {
    types().kind(gvk)
}
