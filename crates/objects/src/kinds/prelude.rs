//! The names with which nearly every kind is described.

pub use crate::fields::ObjectMap;
pub use crate::kinds::behavior::columns::Printer;
pub use crate::kinds::behavior::definition::{cluster, namespaced};
pub use crate::kinds::behavior::rules::Rules;
pub use crate::kinds::behavior::rules::at::At;
pub use crate::kinds::behavior::rules::errors::Errors;
pub use crate::kinds::behavior::selectable::SelectableFields;
pub use crate::kinds::behavior::strategy::{Hooks, Strategy, Writer};
pub use crate::kinds::behavior::warnings::{KindWarnings, Remarks};
pub use crate::kinds::behavior::{BuiltIn, Group, Version};
pub use crate::tree::{Map, Value};
