pub mod lease;
pub mod lease_candidate;
