//! Options of a DELETE about the objects that depend on the deleted one.

/// The fate of the objects that name this one as their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependents {
    /// The object's finalizers decide, else the kind.
    #[default]
    Unspecified,
    Policy(Propagation),
    /// The deprecated `orphanDependents`: true as `Orphan`; false as `Background`, but answered with 202.
    Orphan(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Foreground,
    Background,
    Orphan,
}
