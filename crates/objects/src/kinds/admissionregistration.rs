//! The group `admissionregistration.k8s.io`.

pub mod binding;
pub mod mutating_admission_policy;
pub mod mutating_admission_policy_binding;
pub mod mutating_webhook_configuration;
pub mod policy;
pub mod shared;
pub mod validating_admission_policy;
pub mod validating_admission_policy_binding;
pub mod validating_webhook_configuration;
pub mod webhook;

use crate::kinds::prelude::*;

const V1: &str = "admissionregistration.k8s.io/v1";
const V1BETA1: &str = "admissionregistration.k8s.io/v1beta1";

pub static GROUP: Group = Group {
    name: "admissionregistration.k8s.io",
    priority: 16_700,
    versions: &[
        Version {
            name: "v1beta1",
            kinds: &[&mutating_admission_policy::BETA, &mutating_admission_policy_binding::BETA],
        },
        Version {
            name: "v1",
            kinds: &[
                &mutating_admission_policy::KIND,
                &mutating_admission_policy_binding::KIND,
                &mutating_webhook_configuration::KIND,
                &validating_admission_policy::KIND,
                &validating_admission_policy_binding::KIND,
                &validating_webhook_configuration::KIND,
            ],
        },
    ],
};
