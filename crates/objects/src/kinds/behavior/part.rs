//! The parts of an object that have a path of their own.

/// The part of an object that a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize` of namespaces.
    Finalize,
    /// The subresource `scale`, which is a view of the object.
    Scale,
    /// The subresource `approval` of certificate signing requests.
    Approval,
    /// The subresource `ephemeralcontainers` of pods.
    EphemeralContainers,
    /// The subresource `resize` of pods.
    Resize,
}

impl Part {
    /// The part that a subresource of that name is; `None` for those that are no part of the object.
    pub fn of(subresource: Option<&str>) -> Option<Self> {
        let Some(name) = subresource else { return Some(Part::Main) };
        let parts = [
            Part::Status,
            Part::Finalize,
            Part::Scale,
            Part::Approval,
            Part::EphemeralContainers,
            Part::Resize,
        ];
        parts.into_iter().find(|part| part.subresource() == name)
    }

    /// The name in URLs; empty for the main resource.
    pub fn subresource(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Scale => "scale",
            Part::Approval => "approval",
            Part::EphemeralContainers => "ephemeralcontainers",
            Part::Resize => "resize",
        }
    }
}
