//! Rights that writes need beyond their verb: nobody grants, binds or signs more than he may.

pub mod aggregation;
pub(in crate::api) mod escalation;
pub(in crate::api) mod params;
pub(in crate::api) mod signing;
