//! The outcome of checking a bearer token.

use std::fmt;
use std::sync::Arc;

use crate::auth::service_accounts::Unproven;
use crate::storage;
use crate::user::User;

/// A token that one of the authenticators has accepted.
#[derive(Debug)]
pub struct Accepted {
    pub user: Arc<User>,
    /// The audiences that were wanted and that the token is for.
    pub audiences: Audiences,
    pub notes: Notes,
    /// Set if it was accepted by what this server knows, and others may know better.
    pub unproven: Option<Unproven>,
}

/// For whom a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audiences {
    /// All of this server's own.
    Api,
    These(Vec<String>),
}

/// Why a token was not accepted.
#[derive(Clone, Debug)]
pub enum TokenError {
    Refused(Refusals),
    /// See [`super::Unauthenticated::Starting`].
    Starting,
    /// See [`super::Unauthenticated::Unknown`].
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

/// Warnings for the client, and annotations for the audit log. Most requests have none.
#[derive(Debug, Default)]
pub struct Notes(Option<Box<Texts>>);

#[derive(Debug, Default)]
struct Texts {
    warnings: Vec<&'static str>,
    annotations: Vec<(&'static str, String)>,
}

impl Notes {
    pub fn warn(&mut self, text: &'static str) {
        self.0.get_or_insert_default().warnings.push(text);
    }

    pub fn annotate(&mut self, key: &'static str, value: String) {
        self.0.get_or_insert_default().annotations.push((key, value));
    }

    pub fn extend(&mut self, others: Self) {
        let Some(others) = others.0 else { return };
        let own = self.0.get_or_insert_default();
        own.warnings.extend(others.warnings);
        own.annotations.extend(others.annotations);
    }

    pub fn warnings(&self) -> &[&'static str] {
        self.0.as_ref().map_or(&[], |texts| &texts.warnings)
    }

    pub fn annotations(&self) -> &[(&'static str, String)] {
        self.0.as_ref().map_or(&[], |texts| &texts.annotations)
    }
}
