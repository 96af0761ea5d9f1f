//! The permit of one long-running request.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::{Concern, Reauthorize, Revoked, Shared};

/// Lets a long-running request go on. Clones share it; it is forgotten with the last of them.
#[derive(Clone)]
pub struct Permit(Arc<Permitted>);

pub(super) struct Permitted {
    id: u64,
    shared: Arc<Shared>,
    concerns: BTreeSet<Concern>,
    epochs: Box<[Arc<AtomicU64>]>,
    /// The number of [changes](Shared::changes) when the epochs were looked at last.
    seen: AtomicU64,
    /// The sum of the epochs when the permit has asked last.
    asked: AtomicU64,
    reauthorize: Box<dyn Reauthorize>,
    revoked: OnceLock<Revoked>,
    /// Cancelled when the permit is revoked.
    end: OnceLock<CancellationToken>,
}

impl Permit {
    pub(super) fn register(
        shared: &Arc<Shared>,
        concerns: BTreeSet<Concern>,
        reauthorize: Box<dyn Reauthorize>,
    ) -> Self {
        let mut register = shared.register();
        register.next += 1;
        let id = register.next;
        let mut epochs = vec![shared.everybody.clone()];
        for concern in &concerns {
            let members = register.concerned.entry(concern.clone()).or_default();
            members.permits.insert(id);
            epochs.push(members.epoch.clone());
        }
        let permitted = Arc::new(Permitted {
            id,
            shared: shared.clone(),
            concerns,
            epochs: epochs.into(),
            seen: AtomicU64::new(u64::MAX),
            asked: AtomicU64::new(u64::MAX),
            reauthorize,
            revoked: OnceLock::new(),
            end: OnceLock::new(),
        });
        register.permits.insert(id, Arc::downgrade(&permitted));
        Self(permitted)
    }

    /// Fails once the permit is revoked, by everything that this server knows when it is called. Asks only if a change may
    /// concern the request.
    pub async fn check(&self) -> Result<(), Revoked> {
        let Permitted { shared, seen, .. } = &*self.0;
        shared.take_in();
        if seen.load(Ordering::Acquire) != shared.changes.load(Ordering::Acquire) {
            self.0.ask_if_concerned().await;
        }
        self.revoked()
    }

    /// Fails once the permit is revoked, as far as somebody has asked.
    pub fn revoked(&self) -> Result<(), Revoked> {
        self.0.revoked.get().cloned().map_or(Ok(()), Err)
    }

    /// Cancels a token when the permit is revoked. Only the first call has an effect.
    pub fn ends(&self, token: CancellationToken) {
        let _ = self.0.end.set(token);
        self.0.cancel_if_revoked();
    }
}

impl Permitted {
    /// Asks if an epoch of the permit's has been raised since it has asked last.
    pub(super) async fn ask_if_concerned(&self) {
        let changes = self.shared.changes.load(Ordering::Acquire);
        let sum = self.sum();
        if sum != self.asked.load(Ordering::Acquire) {
            self.ask().await;
            self.asked.store(sum, Ordering::Release);
        }
        self.seen.store(changes, Ordering::Release);
    }

    pub(super) async fn ask(&self) {
        if self.revoked.get().is_some() {
            return;
        }
        if let Err(why) = self.reauthorize.ask().await {
            tracing::debug!(%why, "a long-running request ends");
            let _ = self.revoked.set(why);
            self.cancel_if_revoked();
        }
    }

    fn cancel_if_revoked(&self) {
        if let (Some(_), Some(end)) = (self.revoked.get(), self.end.get()) {
            end.cancel();
        }
    }

    /// Epochs only grow, so the sum differs if one of them does.
    fn sum(&self) -> u64 {
        self.epochs.iter().map(|epoch| epoch.load(Ordering::Acquire)).sum()
    }
}

impl Drop for Permitted {
    fn drop(&mut self) {
        let mut register = self.shared.register();
        register.permits.remove(&self.id);
        for concern in &self.concerns {
            if let Some(members) = register.concerned.get_mut(concern) {
                members.permits.remove(&self.id);
                if members.permits.is_empty() {
                    register.concerned.remove(concern);
                }
            }
        }
    }
}
