//! The outcome of checking a bearer token.

use std::sync::Arc;

use super::Notes;
use crate::auth::service_accounts::Unproven;
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

/// The state by which what a token of a service account names is judged, where other servers write, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A state that holds everything that any server has answered.
    Newest,
    /// The state that is there. Somebody has to [prove](Unproven) the token later.
    Known,
}
