//! The group `networking.k8s.io`.

pub mod ingress;
pub mod ingress_class;
pub mod ip_address;
pub mod network_policy;
pub mod service_cidr;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "networking.k8s.io",
    priority: 17_200,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &ingress_class::KIND,
            &ingress::KIND,
            &ip_address::KIND,
            &network_policy::KIND,
            &service_cidr::KIND,
        ],
    }],
};
