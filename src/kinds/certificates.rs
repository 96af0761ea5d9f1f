pub mod certificate_signing_request;
pub mod cluster_trust_bundle;
pub mod pod_certificate_request;
pub mod shared;
