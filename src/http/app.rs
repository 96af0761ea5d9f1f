//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::limits::{BodyBudget, InFlightLimits, Printing};
use super::publications::Publications;
use crate::api::Api;
use crate::api::gate::Gate;
use crate::audit::Audit;
use crate::auth::authn::Authenticator;
use crate::auth::authorizer::Authorizer;
use crate::flow_control::FlowControl;
use crate::long_work::Lanes;
use crate::metrics::Metrics;

/// Everything that a request may need.
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

/// Authenticates and authorizes requests, also while the server starts.
pub struct Door {
    pub authenticator: Authenticator,
    pub authorizer: Arc<dyn Authorizer>,
    /// `None` if nothing is recorded.
    pub audit: Option<Arc<Audit>>,
    /// `None` if only the number of requests is limited.
    pub flow_control: Option<Arc<FlowControl>>,
    /// How long a request may take.
    pub request_time: Duration,
    /// The share of HTTP/2 requests after which the connection is told to close, so that clients behind one address
    /// spread over all replicas.
    pub goaway_chance: f64,
    /// Cancelled when the server starts to drain.
    pub shutdown: CancellationToken,
}

/// Limits of a single request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In bytes.
    pub request_body: usize,
    /// The limit for all requests except watches.
    pub request_time: Duration,
    pub in_flight: InFlightLimits,
}
