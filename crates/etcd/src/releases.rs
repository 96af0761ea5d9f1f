//! Releases of Kubernetes, and the built-in kinds that an older one cannot read.

use std::fmt;
use std::str::FromStr;

use crate::schema::names::Gvk;

/// The oldest release that is known, and rowplane's own.
const OLDEST: u32 = 30;
const NEWEST: u32 = 37;

/// Kinds that came after [`OLDEST`], each in a version that is stored: group, version, kind, and the minor version of the
/// release that reads them (`APILifecycleIntroduced` in k8s.io/api).
const INTRODUCED: [(&str, &str, &str, u32); 32] = [
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", 36),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding", 36),
    ("admissionregistration.k8s.io", "v1beta1", "MutatingAdmissionPolicy", 34),
    ("admissionregistration.k8s.io", "v1beta1", "MutatingAdmissionPolicyBinding", 34),
    ("certificates.k8s.io", "v1", "ClusterTrustBundle", 37),
    ("certificates.k8s.io", "v1", "PodCertificateRequest", 37),
    ("certificates.k8s.io", "v1beta1", "ClusterTrustBundle", 33),
    ("certificates.k8s.io", "v1beta1", "PodCertificateRequest", 35),
    ("coordination.k8s.io", "v1alpha2", "LeaseCandidate", 32),
    ("coordination.k8s.io", "v1beta1", "LeaseCandidate", 33),
    ("lifecycle.k8s.io", "v1alpha1", "EvictionRequest", 37),
    ("networking.k8s.io", "v1", "IPAddress", 33),
    ("networking.k8s.io", "v1", "ServiceCIDR", 33),
    ("networking.k8s.io", "v1beta1", "IPAddress", 31),
    ("networking.k8s.io", "v1beta1", "ServiceCIDR", 31),
    ("resource.k8s.io", "v1", "DeviceClass", 34),
    ("resource.k8s.io", "v1", "DeviceTaintRule", 37),
    ("resource.k8s.io", "v1", "ResourceClaim", 34),
    ("resource.k8s.io", "v1", "ResourceClaimTemplate", 34),
    ("resource.k8s.io", "v1", "ResourceSlice", 34),
    ("resource.k8s.io", "v1beta1", "ResourceClaim", 32),
    ("resource.k8s.io", "v1beta1", "ResourceClaimTemplate", 32),
    ("resource.k8s.io", "v1beta2", "DeviceClass", 33),
    ("resource.k8s.io", "v1beta2", "DeviceTaintRule", 36),
    ("resource.k8s.io", "v1beta2", "ResourceClaim", 33),
    ("resource.k8s.io", "v1beta2", "ResourceClaimTemplate", 33),
    ("scheduling.k8s.io", "v1beta1", "PodGroup", 37),
    ("scheduling.k8s.io", "v1beta1", "Workload", 37),
    ("storage.k8s.io", "v1", "VolumeAttributesClass", 34),
    ("storage.k8s.io", "v1beta1", "VolumeAttributesClass", 31),
    ("storagemigration.k8s.io", "v1", "StorageVersionMigration", 37),
    ("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration", 35),
];

/// A release of Kubernetes 1, by its minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(u32);

impl Release {
    /// The release that introduced the stored kind, if it is newer than this one.
    pub fn lacks(self, gvk: &Gvk) -> Option<Self> {
        let named = (gvk.group().as_str(), gvk.version(), gvk.kind.as_str());
        let found = INTRODUCED.iter().find(|one| (one.0, one.1, one.2) == named);
        found.map(|one| Self(one.3)).filter(|introduced| *introduced > self)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minor = text.trim_start_matches('v').strip_prefix("1.");
        let minor = minor.and_then(|rest| rest.split('.').next()?.parse().ok());
        minor
            .filter(|minor| (OLDEST..=NEWEST).contains(minor))
            .map(Self)
            .ok_or_else(|| format!("it is no release of Kubernetes from 1.{OLDEST} to 1.{NEWEST}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_by_their_names() {
        for (text, expected) in [("1.34", Ok("1.34")), ("v1.30.9", Ok("1.30")), ("1.37", Ok("1.37"))] {
            assert_eq!(
                text.parse::<Release>().map(|release| release.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        for text in ["", "1.", "34", "1.29", "1.38", "2.30", "1.x"] {
            assert!(text.parse::<Release>().is_err(), "{text}");
        }
    }

    #[test]
    fn kinds_that_a_release_lacks() {
        let lacks = |release: &str, api_version: &str, kind: &str| {
            let gvk = Gvk::parse(api_version, kind).expect("a kind");
            release
                .parse::<Release>()
                .expect("a release")
                .lacks(&gvk)
                .map(|introduced| introduced.to_string())
        };
        assert_eq!(lacks("1.33", "resource.k8s.io/v1", "ResourceClaim").as_deref(), Some("1.34"));
        assert_eq!(lacks("1.34", "resource.k8s.io/v1", "ResourceClaim"), None);
        assert_eq!(lacks("1.30", "v1", "Pod"), None);
        assert_eq!(lacks("1.30", "ex.io/v1", "ResourceClaim"), None);
    }
}
