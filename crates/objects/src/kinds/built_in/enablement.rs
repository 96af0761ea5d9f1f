//! The built-in APIs that are served: upstream's `--runtime-config` (`apiserver/pkg/server/resourceconfig`).

use std::collections::BTreeMap;

use super::GROUPS;
use crate::gotext;
use crate::schema::names::{GroupVersion, Gvr};
use crate::schema::resource::ResourceDefinition;

/// Sets of versions by how stable they are, in the order in which they are looked at.
const SETS: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

/// Group versions that kube-apiserver v1.37 knows and that have no types here.
const ELSEWHERE: [&str; 37] = [
    "admission.k8s.io/v1",
    "admission.k8s.io/v1beta1",
    "admissionregistration.k8s.io/v1alpha1",
    "apiextensions.k8s.io/v1beta1",
    "apiregistration.k8s.io/v1beta1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1beta1",
    "batch/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "certificates.k8s.io/v1beta1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "imagepolicy.k8s.io/v1alpha1",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "rbac.authorization.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1beta2",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "storage.k8s.io/v1alpha1",
    "storage.k8s.io/v1beta1",
    "storagemigration.k8s.io/v1beta1",
];

/// The value of `--runtime-config`. A resource by its name goes before its version, and that before a set. By default all is served
/// but beta versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enablement {
    /// The choices for sets, by their places in [`SETS`].
    sets: BTreeMap<usize, bool>,
    versions: BTreeMap<String, bool>,
    /// `group/version/plural`.
    resources: BTreeMap<String, bool>,
}

impl Enablement {
    /// Reads pairs `key=value` with commas between them. Errors are upstream's.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pairs: BTreeMap<&str, &str> = text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        if pairs.len() == 1 && pairs.get(SETS[0]) == Some(&"false") {
            return Err("invalid runtime-config with only api/all=false".to_owned());
        }
        let (mut read, mut unknown) = (Self::default(), Vec::new());
        for (key, value) in pairs {
            if let Some(set) = SETS.iter().position(|set| *set == key) {
                let enabled = match value {
                    "true" => true,
                    "false" => false,
                    _ => return Err(format!("invalid value {key}={value}")),
                };
                read.sets.insert(set, enabled);
            } else if let Some(version) = read.add(key, value)? {
                unknown.push(version);
            }
        }
        match unknown.is_empty() {
            true => Ok(read),
            false => Err(format!("unknown api groups {}", unknown.join(","))),
        }
    }

    /// Adds a version or a resource. Returns the version if nobody knows its group.
    fn add(&mut self, key: &str, value: &str) -> Result<Option<String>, String> {
        let tokens: Vec<&str> = key.split('/').collect();
        let (group, version, plural) = match tokens.as_slice() {
            [group, version] => (*group, *version, None),
            [group, version, plural] => (*group, *version, Some(*plural)),
            _ => return Err(format!("runtime-config invalid key {key}")),
        };
        // The core group may also be written as its path begins.
        let group = if group == "api" { "" } else { group };
        let name = GroupVersion::new(group, version).api_version().to_string();
        let has_group = |known: &str| known.split('/').next() == Some(group);
        let known = GROUPS.iter().find(|known| known.name == group);
        if known.is_none() && !ELSEWHERE.iter().any(|known| has_group(known)) {
            return Ok(Some(name));
        }
        let is_here = known.is_some_and(|known| known.versions.iter().any(|known| known.name == version));
        if !is_here && !ELSEWHERE.contains(&name.as_str()) {
            return Err(format!("group version {name} that has not been registered"));
        }
        let enabled = match value {
            "" => true,
            text => gotext::parse_bool(text).ok_or_else(|| {
                let text_quoted = gotext::quote(text);
                format!("invalid value of {key}: {text}, err: strconv.ParseBool: parsing {text_quoted}: invalid syntax")
            })?,
        };
        match plural {
            None => _ = self.versions.insert(name, enabled),
            Some(plural) if plural.to_lowercase() != plural => {
                let why = "group/version/resource and resource is always lowercase plural, not";
                return Err(format!("invalid key {key}: {why} {}", gotext::quote(plural)));
            }
            Some(plural) => _ = self.resources.insert(format!("{name}/{plural}"), enabled),
        }
        Ok(None)
    }

    /// Whether clients are served a resource.
    pub fn serves(&self, definition: &ResourceDefinition) -> bool {
        let Gvr { group_version, plural } = definition.gvr();
        let name = group_version.api_version();
        let named =
            self.resources.get(&format!("{name}/{plural}")).or_else(|| self.versions.get(name.as_str()));
        named.copied().unwrap_or_else(|| self.of_sets(group_version.version()))
    }

    /// The setting of the last set that contains a version.
    fn of_sets(&self, version: &str) -> bool {
        let contains = |set: usize| match SETS[set] {
            "api/beta" => version.contains("beta"),
            "api/alpha" => version.contains("alpha"),
            "api/ga" => !version.contains("beta") && !version.contains("alpha"),
            _ => true,
        };
        let chosen = self.sets.iter().rev().find(|(set, _)| contains(**set));
        chosen.map_or(!is_off_by_default(version), |(_, enabled)| *enabled)
    }

    /// Versions and resources that are asked for and have no types here.
    pub fn absent(&self) -> impl Iterator<Item = &str> {
        let asked = self.versions.iter().chain(&self.resources).filter(|(_, enabled)| **enabled);
        asked.map(|(name, _)| name.as_str()).filter(|name| {
            ELSEWHERE.iter().any(|known| {
                name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        })
    }
}

/// Whether a version is served only where `--runtime-config` says so.
pub fn is_off_by_default(version: &str) -> bool {
    version.contains("beta")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::built_in::definitions;

    fn served(text: &str) -> Vec<String> {
        let enablement = Enablement::parse(text).expect(text);
        let served = definitions().into_iter().filter(|definition| enablement.serves(definition));
        served.map(|definition| format!("{}/{}", definition.api_version(), definition.plural)).collect()
    }

    #[test]
    fn resources_go_before_versions_and_these_before_sets() {
        let all = served("api/all=true");
        assert_eq!(all.len(), definitions().len());
        assert_eq!(served("api/beta=true,api/alpha=true"), all);
        let usual = served("");
        let beta = |name: &&String| name.contains("beta");
        assert_eq!(usual, all.iter().filter(|name| !beta(name)).cloned().collect::<Vec<_>>());
        assert!(all.iter().any(|name| beta(&name)));
        let one = "admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies";
        assert_eq!(served(one).len(), usual.len() + 1);
        let core = served("api/all=false,api/v1=true");
        assert!(
            core.contains(&"v1/pods".to_owned()) && core.iter().all(|name| name.starts_with("v1/")),
            "{core:?}"
        );
        assert_eq!(served("api/all=false,api/ga=true").len(), usual.len() - served("api/ga=false").len());
        assert_eq!(served("api/all=false,/v1/pods=1"), ["v1/pods"]);
        assert_eq!(
            served("api/all=false,apps/v1=true,apps/v1/deployments=false,apps/v1/daemonsets=0").len(),
            3
        );
        let without = served("autoscaling/v1=false");
        assert!(!without.iter().any(|name| name.starts_with("autoscaling/v1/")));
        assert!(without.contains(&"autoscaling/v2/horizontalpodautoscalers".to_owned()));
        assert!(!served("api/alpha=false").iter().any(|name| name.contains("alpha")));
    }

    #[test]
    fn what_upstream_refuses_is_refused_in_its_words() {
        for (text, why) in [
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            ("api/all=1", "invalid value api/all=1"),
            ("v1=true", "runtime-config invalid key v1"),
            ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
            (
                "example.com/v1=true,other.example.com/v2",
                "unknown api groups example.com/v1,other.example.com/v2",
            ),
            ("apps/v7=true", "group version apps/v7 that has not been registered"),
            (
                "apps/v1=yes",
                "invalid value of apps/v1: yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax",
            ),
            (
                "apps/v1/Deployments=true",
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \"Deployments\"",
            ),
        ] {
            assert_eq!(Enablement::parse(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn what_has_no_types_here_is_named() {
        let asked = "resource.k8s.io/v1beta1=true,storage.k8s.io/v1beta1/volumeattributesclasses,policy/v1beta1=false,apps/v1";
        let enablement = Enablement::parse(asked).expect("known");
        let absent: Vec<&str> = enablement.absent().collect();
        assert_eq!(absent, ["resource.k8s.io/v1beta1", "storage.k8s.io/v1beta1/volumeattributesclasses"]);
        let here = |name: &&str| definitions().iter().any(|known| known.api_version().as_str() == *name);
        assert!(!ELSEWHERE.iter().any(here));
    }
}
