//! Patch formats, as pure functions over JSON values.

pub mod apply;
pub mod json;
pub mod merge;
pub mod strategic;

/// The format of a PATCH body, which its Content-Type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    StrategicMerge,
    Apply,
}

/// Whether a body is refused that decodes only in part. `fieldValidation=Ignore` accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    Checked,
    Unchecked,
}

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400: the body is not a patch of this format.
    #[error("{0}")]
    Malformed(String),
    /// 413.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {found}")]
    TooManyOperations { limit: usize, found: usize },
    /// 413: applying the patch would take too long.
    #[error("The operations of a JSON patch may move at most {limit} elements and members")]
    TooManyMoves { limit: usize },
    /// 422: the patch does not fit the object. Clients that send patches are not told why.
    #[error("{0}")]
    DoesNotApply(String),
    /// 422: a `test` of a JSON patch has failed.
    #[error("{0}")]
    TestFailed(String),
    /// 500 without a reason, as upstream answers: the patch does not fit the kind.
    #[error("{0}")]
    Failed(String),
}
