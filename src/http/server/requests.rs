//! The running requests of one connection.

use std::sync::{Arc, Weak};

use super::connection_state::Connection;
use super::connections::Connections;

/// The requests of a connection, held by its service, and by each request until its response is made or, if that is long,
/// sent.
#[derive(Debug)]
pub struct Requests {
    pub connection: Arc<Connection>,
    pub connections: Arc<Connections>,
}

impl Requests {
    pub fn of(connection: Arc<Connection>, connections: Arc<Connections>) -> Arc<Self> {
        let requests = Arc::new(Self { connection: connection.clone(), connections });
        let counted: Weak<Self> = Arc::downgrade(&requests);
        connection.serves(counted);
        requests
    }
}
