//! The names that operators have as functions.

pub const CONDITIONAL: &str = "_?_:_";
pub const LOGICAL_AND: &str = "_&&_";
pub const LOGICAL_OR: &str = "_||_";
pub const LOGICAL_NOT: &str = "!_";
pub const EQUALS: &str = "_==_";
pub const NOT_EQUALS: &str = "_!=_";
pub const LESS: &str = "_<_";
pub const LESS_EQUALS: &str = "_<=_";
pub const GREATER: &str = "_>_";
pub const GREATER_EQUALS: &str = "_>=_";
pub const ADD: &str = "_+_";
pub const SUBTRACT: &str = "_-_";
pub const MULTIPLY: &str = "_*_";
pub const DIVIDE: &str = "_/_";
pub const MODULO: &str = "_%_";
pub const NEGATE: &str = "-_";
pub const INDEX: &str = "_[_]";
pub const OPT_INDEX: &str = "_[?_]";
pub const OPT_SELECT: &str = "_?._";
pub const IN: &str = "@in";
pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
pub const MAP_INSERT: &str = "cel.@mapInsert";
