//! What requests share: the application behind the listener.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::limits::{BodyBudget, InFlightLimits, Printing};
use super::publications::Publications;
use crate::api::Api;
use crate::api::gate::Gate;
use crate::auth::authn::Authenticator;
use crate::auth::authorizer::Authorizer;
use crate::long_work::Lanes;
use crate::metrics::Metrics;

/// Everything a request may need.
pub struct App {
    pub api: Arc<Api>,
    pub gate: Gate,
    pub door: Arc<Door>,
    pub publications: Publications,
    pub metrics: Arc<Metrics>,
    pub limits: Limits,
    pub bodies: BodyBudget,
    /// For answers that take long to print.
    pub printing: Printing,
    /// For requests with large bodies. A request may hold one of these lanes while it waits for one of the API's.
    pub lanes: Lanes,
}

/// What decides who may come in, also while the server starts.
pub struct Door {
    pub authenticator: Authenticator,
    pub authorizer: Arc<dyn Authorizer>,
    /// The share of requests of HTTP/2 after which a connection is told to go, so that replicas behind one address get
    /// their share of connections.
    pub goaway_chance: f64,
    /// Cancelled when the server begins to drain.
    pub shutdown: CancellationToken,
}

/// What a request may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes.
    pub request_body: usize,
    /// For all requests but watches.
    pub request_time: Duration,
    pub in_flight: InFlightLimits,
}
