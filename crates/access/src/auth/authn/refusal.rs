//! Reasons for which a credential is refused.

use std::fmt;

use crate::storage;

/// Why a request has no user.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unauthenticated {
    /// 401. The text is for logs, clients never see it.
    #[error("{0}")]
    Refused(String),
    /// 401: no credential was shown.
    #[error("no credentials")]
    Missing,
    /// The credential cannot be checked before the server has read its objects.
    #[error("the server is starting")]
    Starting,
    /// Whether the credential is still valid, only the database knows.
    #[error("{0}")]
    Unknown(storage::Error),
}

/// Why a token was not accepted.
#[derive(Clone, Debug)]
pub enum TokenError {
    Refused(Refusals),
    /// See [`Unauthenticated::Starting`].
    Starting,
    /// See [`Unauthenticated::Unknown`].
    Unknown(storage::Error),
}

/// The reasons of all authenticators that have refused a credential, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals(Vec<String>);

impl Refusals {
    pub fn add(&mut self, why: impl AsRef<str> + Into<String>) {
        if !self.0.iter().any(|known| known == why.as_ref()) {
            self.0.push(why.into());
        }
    }

    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|why| self.add(why));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The form in which upstream prints a list of errors.
impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}
