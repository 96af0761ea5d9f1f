//! Requests that are let in by what their server knows. A write asks the database anyhow, so it need not wait for a question
//! of its own about what other servers have answered: its commit requires the rows that let it in to be as they were seen.
//! Whatever ends without a commit is confirmed by such a question before it is answered.

use std::sync::atomic::{AtomicBool, Ordering};

use super::authn::Unauthenticated;
use super::authorizer::Grant;
use super::service_accounts::Unproven;
use crate::storage::Requirement;

/// The credential and the permission of a request, which somebody has still to confirm: a commit that requires their rows,
/// or a question.
#[derive(Debug)]
pub struct Foreseen {
    rows: Vec<Requirement>,
    credential: Option<Unproven>,
    is_open: AtomicBool,
}

impl Foreseen {
    pub fn new(grant: Grant, credential: Option<Unproven>) -> Self {
        let mut rows = grant.rows;
        rows.extend(credential.iter().flat_map(Unproven::rows).cloned());
        Self { rows, credential, is_open: AtomicBool::new(true) }
    }

    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// The requirements of a commit that confirms the request; none once it is confirmed.
    pub fn rows(&self) -> &[Requirement] {
        if self.is_open() { &self.rows } else { &[] }
    }

    /// Fails unless the credential is valid by all that any server has answered before the request.
    pub async fn prove(&self) -> Result<(), Unauthenticated> {
        match &self.credential {
            Some(credential) => credential.prove().await,
            None => Ok(()),
        }
    }

    pub fn confirmed(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }
}
