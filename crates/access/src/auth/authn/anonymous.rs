//! Requests without a credential.

/// The requests that may be anonymous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Everybody; what they may do then is up to the authorizers.
    Everywhere,
    /// Requests for exactly one of these paths.
    At(Vec<String>),
    Nowhere,
}

impl Anonymous {
    pub fn admits(&self, path: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::At(paths) => paths.iter().any(|open| open == path),
            Self::Nowhere => false,
        }
    }
}
