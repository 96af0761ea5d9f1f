//! A key management service: gRPC over a Unix socket, as well or unwell as a test wants it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

pub use super::grpc::Mood;
use super::grpc::{Service, field, put, serve};

/// The service of a socket, until it is dropped.
pub struct Kms {
    pub state: Arc<State>,
    _tasks: JoinSet<()>,
}

pub struct State {
    pub mood: Mutex<Mood>,
    /// The key that wraps. Others are known, too, unless they are lost.
    pub key_id: Mutex<String>,
    pub lost: Mutex<Vec<String>>,
    pub statuses: AtomicUsize,
    pub encrypted: AtomicUsize,
    pub decrypted: AtomicUsize,
}

impl Kms {
    pub fn start(socket: &Path) -> Self {
        let state = Arc::new(State {
            mood: Mutex::new(Mood::Well),
            key_id: Mutex::new("key-1".to_owned()),
            lost: Mutex::default(),
            statuses: AtomicUsize::new(0),
            encrypted: AtomicUsize::new(0),
            decrypted: AtomicUsize::new(0),
        });
        let tasks = serve(socket, state.clone());
        Self { state, _tasks: tasks }
    }

    pub fn set(&self, mood: Mood) {
        *self.state.mood.lock().expect("mood") = mood;
    }

    pub fn rotate(&self, key_id: &str) {
        *self.state.key_id.lock().expect("key") = key_id.to_owned();
    }

    /// How often it has wrapped a seed.
    pub fn encrypted(&self) -> usize {
        self.state.encrypted.load(Ordering::SeqCst)
    }

    /// How often it has unwrapped one.
    pub fn decrypted(&self) -> usize {
        self.state.decrypted.load(Ordering::SeqCst)
    }
}

impl Service for State {
    fn mood(&self) -> &Mutex<Mood> {
        &self.mood
    }

    fn call(&self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, &'static str)> {
        let key_id = self.key_id.lock().expect("key").clone();
        let mut out = Vec::new();
        match path {
            "/v2.KeyManagementService/Status" => {
                self.statuses.fetch_add(1, Ordering::SeqCst);
                for (field, text) in [(1, "v2"), (2, "ok"), (3, &*key_id)] {
                    put(&mut out, field, text.as_bytes());
                }
            }
            "/v2.KeyManagementService/Encrypt" => {
                self.encrypted.fetch_add(1, Ordering::SeqCst);
                put(&mut out, 1, &turned(&field(message, 1)));
                put(&mut out, 2, key_id.as_bytes());
                let mut annotation = Vec::new();
                put(&mut annotation, 1, b"turned.example.com");
                put(&mut annotation, 2, b"yes");
                put(&mut out, 3, &annotation);
            }
            "/v2.KeyManagementService/Decrypt" => {
                self.decrypted.fetch_add(1, Ordering::SeqCst);
                let used = String::from_utf8(field(message, 3)).expect("an id");
                if self.lost.lock().expect("lost").contains(&used) {
                    return Err((5, "no%20such%20key"));
                }
                put(&mut out, 1, &turned(&field(message, 1)));
            }
            _ => return Err((12, "unknown")),
        }
        Ok(out)
    }
}

fn turned(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().rev().copied().collect()
}
