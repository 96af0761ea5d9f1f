//! The group `certificates.k8s.io`.

pub mod certificate_signing_request;
pub mod cluster_trust_bundle;
pub mod pod_certificate_request;
pub mod shared;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "certificates.k8s.io",
    priority: 17_300,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &certificate_signing_request::KIND,
            &cluster_trust_bundle::KIND,
            &pod_certificate_request::KIND,
        ],
    }],
};
