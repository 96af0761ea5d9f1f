//! The paths of branches and of their endpoints.

/// The path of the endpoints.
pub const ENDPOINTS: &str = "/rowplane/v1/branches";
/// The path of the endpoints of snapshots, which are there for tests.
pub const SNAPSHOTS: &str = "/rowplane/v1/snapshots";
/// The verb that all of them need.
pub const VERB: &str = "branch";
/// The path below which branches are.
pub(super) const BELOW: &str = "/branches/";

/// Whether a path is one of the endpoints.
pub fn is_endpoint(path: &str) -> bool {
    [ENDPOINTS, SNAPSHOTS].iter().any(|endpoint| is_below(path, endpoint))
}

/// Whether a path is this one, or below it.
pub fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is one of the endpoints, or that of a branch that is not there.
pub fn has(path: &str) -> bool {
    is_endpoint(path) || branch_of(path).is_some()
}

/// The name of the branch that a path is for.
pub(super) fn branch_of(path: &str) -> Option<&str> {
    path.strip_prefix(BELOW)?.split('/').next().filter(|name| !name.is_empty())
}
