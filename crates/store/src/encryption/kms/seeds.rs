//! The seeds of a service that this server knows, and those that it could not get.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prost::Message as _;
use sha2::{Digest as _, Sha256};

use super::messages::{SourceType, Wrapped};
use crate::encryption::ciphers::{Cipher, CipherError, Seed};
use crate::encryption::configuration::KeyKind;

/// For how long a seed is kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// The most seeds that are kept; a server that has not restarted for long needs a few.
const MOST: usize = 4096;

/// Opens the values of one seed.
pub enum Unsealer {
    Seed(Arc<Seed>),
    /// Values from before there were seeds.
    Key(Cipher),
}

type Found = Result<Arc<Unsealer>, String>;

#[derive(Default)]
pub struct Seeds {
    known: Mutex<Known>,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    /// The results for seeds by the hashes of their wrapped forms, with the time of each.
    seeds: HashMap<[u8; 32], (Found, Instant)>,
    /// The time until which the service is not asked for unknown seeds, and the error that is answered instead.
    refused: Option<(Instant, String)>,
}

impl Unsealer {
    pub fn new(source_type: SourceType, secret: &[u8]) -> Result<Self, String> {
        match source_type {
            SourceType::Key => match Cipher::new(KeyKind::AesGcm, secret) {
                Some(cipher) => Ok(Self::Key(cipher)),
                None => Err(format!("crypto/aes: invalid key size {}", secret.len())),
            },
            _ => Seed::new(secret).map(|seed| Self::Seed(Arc::new(seed))).map_err(|error| error.to_string()),
        }
    }

    pub fn open(&self, data: &[u8], row: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Self::Seed(seed) => seed.open(data, row),
            Self::Key(cipher) => cipher.open(data, row),
        }
    }
}

impl Seeds {
    /// The result that is known of a seed; `None` if the service has to be asked.
    pub fn get(&self, wrapped: &Wrapped, now: Instant) -> Option<Found> {
        let mut known = self.lock();
        let (hash, known) = (hash_of(wrapped), &mut *known);
        if let Some((found, _)) = known.seeds.get(&hash) {
            return Some(found.clone());
        }
        known.refused.as_ref().filter(|(until, _)| now < *until).map(|(_, why)| Err(why.clone()))
    }

    /// Waits until nobody else asks the service.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    pub fn put(&self, wrapped: &Wrapped, found: Found, now: Instant) {
        let mut known = self.lock();
        known.seeds.retain(|_, (_, at)| now.duration_since(*at) < KEPT);
        if known.seeds.len() >= MOST {
            known.seeds.clear();
        }
        known.seeds.insert(hash_of(wrapped), (found, now));
    }

    /// Nobody is asked for unknown seeds for a while.
    pub fn refuse_for(&self, period: Duration, why: String) {
        self.lock().refused = Some((Instant::now() + period, why));
    }

    /// The service may be asked again for what it did not give.
    pub fn forget_refused(&self) {
        let mut known = self.lock();
        known.refused = None;
        known.seeds.retain(|_, (found, _)| found.is_ok());
    }

    pub fn len(&self) -> usize {
        self.lock().seeds.len()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash_of(wrapped: &Wrapped) -> [u8; 32] {
    Sha256::digest(wrapped.encode_to_vec()).into()
}
