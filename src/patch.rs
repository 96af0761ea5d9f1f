//! Patch formats as pure functions over JSON values.

pub mod apply;
pub mod json;
pub mod merge;
pub mod strategic;

/// How a PATCH body is to be understood; decided by its Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    StrategicMerge,
    Apply,
}

/// Whether a body that decodes only in part is refused; `fieldValidation=Ignore` lets it through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    Checked,
    Unchecked,
}

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400: the patch itself is no patch.
    #[error("{0}")]
    Malformed(String),
    /// 413.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {found}")]
    TooManyOperations { limit: usize, found: usize },
    /// 413: applying it would take too long.
    #[error("The operations of a JSON patch may move at most {limit} elements and members")]
    TooManyMoves { limit: usize },
    /// 422: it does not fit the object. Clients are not told why.
    #[error("the patch does not apply")]
    DoesNotApply,
    /// 500 without a reason, as upstream has it: the patch does not fit the kind.
    #[error("{0}")]
    Failed(String),
}
