//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use super::branches::Branches;
use super::documents::publications::Publications;
use super::door::Door;
use super::limits::{BodyBudget, InFlightLimits, PastReads, Printing, Statements};
use super::past::Recording;
use super::test_endpoints::Controls;
use super::zpages::Zpages;
use crate::api::Api;
use crate::api::storage_version::gate::Gate;
use crate::auth::service_accounts::issuer::IssuerDocuments;
use crate::long_work::Lanes;
use crate::metrics::Metrics;

/// Everything that a request may need.
pub struct App {
    pub api: Arc<Api>,
    pub gate: Gate,
    pub door: Arc<Door>,
    /// `None` if nobody could find the issuer by its name.
    pub issuer_documents: Option<IssuerDocuments>,
    pub publications: Publications,
    pub zpages: Zpages,
    /// Whether `/console/` is offered.
    pub has_console: bool,
    pub branches: Branches,
    /// `None` unless tests may use the server as they like.
    pub controls: Option<Arc<Controls>>,
    pub metrics: Arc<Metrics>,
    pub statements: Statements,
    pub limits: Limits,
    /// Whether extension servers may not answer with redirects.
    pub rejects_redirects: bool,
    pub bodies: BodyBudget,
    /// The threads for answers that take long to print.
    pub printing: Printing,
    pub past_reads: PastReads,
    /// The recording that is served; `None` for a cluster that lives.
    pub recording: Option<Recording>,
    /// The lanes for requests with large bodies. A request may hold one of them while it waits for one of the API's.
    pub lanes: Lanes,
}

/// Limits of a single request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The limit of a request's body, in bytes.
    pub request_body: usize,
    /// The limit for all requests except watches.
    pub request_time: Duration,
    pub in_flight: InFlightLimits,
}
