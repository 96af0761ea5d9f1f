//! The keys of continue tokens, as this server knows them: they are in the store, and every server may make a new one when
//! the newest is old enough.

use std::sync::Arc;

use crate::Api;
use crate::error::Error;
use crate::options::continue_token::{TokenKey, TokenKeys};
use crate::storage::{self, Backend};
use crate::wall_clock::WallClock;

/// For how long, in seconds, a key signs continue tokens. It verifies them for twice as long afterwards.
const MAX_AGE: i64 = 24 * 60 * 60;

/// The keys of the store, with a new one if that is due.
pub async fn read_token_keys(backend: &dyn Backend, clock: &WallClock) -> Result<TokenKeys, storage::Error> {
    let keys = backend.token_keys(clock.timestamp().as_second(), MAX_AGE).await?;
    let mut keys = keys.into_iter().map(|key| TokenKey { id: key.id, secret: key.secret });
    let newest = keys.next().ok_or_else(|| storage::Error::Corrupt("there is no token key".into()))?;
    Ok(TokenKeys::new(newest, keys.collect()))
}

impl Api {
    pub async fn refresh_token_keys(&self) -> Result<(), storage::Error> {
        let keys = read_token_keys(&**self.cache.backend(), &self.runtime.clock).await?;
        self.token_keys.store(Arc::new(keys));
        Ok(())
    }

    /// The keys with which a client's token is read. If its key is not known, they are read again: another server may have
    /// made it just now.
    pub async fn token_keys_for(&self, token: Option<&str>) -> Result<Arc<TokenKeys>, Error> {
        let keys = self.token_keys.load_full();
        if token.is_none_or(|token| keys.may_read(token)) {
            return Ok(keys);
        }
        Box::pin(self.refresh_token_keys()).await?;
        Ok(self.token_keys.load_full())
    }
}
