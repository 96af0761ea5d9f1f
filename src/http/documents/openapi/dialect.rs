//! The two forms of a document.

use crate::tree::{Value, json};

/// v2 and v3 keep schemas in different places and say some things differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    pub fn refs(self) -> &'static str {
        match self {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        }
    }

    pub fn reference(self, name: &str) -> Value {
        json!({"$ref": format!("{}{name}", self.refs())})
    }
}
