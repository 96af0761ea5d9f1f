//! Patch formats as pure functions over JSON values.

/// How a PATCH body is to be understood; decided by its Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    StrategicMerge,
    Apply,
}
