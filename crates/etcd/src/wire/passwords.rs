//! Passwords, hashed by bcrypt as etcd does, a few at a time on threads of their own: each takes tens of milliseconds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tonic::Status;

/// The rounds of a hash, as a power of 2.
const COST: u32 = 10;
/// The hashes that are made at the same time.
static PLACES: Semaphore = Semaphore::const_new(2);

/// The hash of a password, or what a client has hashed itself, in base64.
pub async fn hash(password: String, hashed: String) -> Result<Vec<u8>, Status> {
    if !hashed.is_empty() {
        return STANDARD.decode(hashed).map_err(|_| refused());
    }
    if password.is_empty() {
        return Err(refused());
    }
    let hashed = on_a_thread(move || bcrypt::hash(password, COST)).await?;
    hashed.map(String::into_bytes).map_err(|error| Status::internal(error.to_string()))
}

/// Whether a password has this hash. Users without a password, and those that do not exist, have none.
pub async fn matches(password: String, hash: Bytes) -> Result<bool, Status> {
    let verified = on_a_thread(move || match std::str::from_utf8(&hash) {
        Ok(hash) if !hash.is_empty() => bcrypt::verify(password, hash).unwrap_or(false),
        _ => {
            // The time that it takes tells nobody whether there is such a user.
            let _ = bcrypt::hash(password, COST);
            false
        }
    });
    verified.await
}

async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    // The semaphore is never closed.
    let _place = PLACES.acquire().await.ok();
    tokio::task::spawn_blocking(work).await.map_err(|error| Status::internal(error.to_string()))
}

fn refused() -> Status {
    Status::invalid_argument("etcdserver: authentication failed, invalid user ID or password")
}
