//! Rights that writes need beyond their verb: nobody grants, binds or signs more than he may.

pub mod aggregation;
pub(in crate::api) mod claims;
pub(in crate::api) mod escalation;
pub(in crate::api) mod params;
pub(in crate::api) mod signing;

use super::request::Request;

/// Whether a write is asked for rights beyond its verb, which are decided by what this server knows: so it has to know what
/// others have answered.
pub(in crate::api) fn concern(request: &Request<'_>) -> bool {
    escalation::concerns(request)
        || params::concerns(request)
        || signing::concerns(request)
        || claims::concerns(request)
}
