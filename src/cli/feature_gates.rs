//! `--feature-gates`: features with upstream's names that can be switched off.

use crate::gotext;

/// The features that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// Whether every server holds a lease in kube-system.
    pub api_server_identity: bool,
    /// Whether every server registers its storage versions before it writes; this needs an identity.
    pub storage_version_api: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self { api_server_identity: true, storage_version_api: true }
    }
}

impl FeatureGates {
    /// Whether a feature of this name can be switched.
    pub fn has(name: &str) -> bool {
        Self::default().gate(name).is_some()
    }

    fn gate(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "APIServerIdentity" => Some(&mut self.api_server_identity),
            "StorageVersionAPI" => Some(&mut self.storage_version_api),
            _ => None,
        }
    }

    /// Parses `A=true,B=false`. Other features keep their defaults.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(format!("missing bool value for {pair}"));
            };
            let name = name.trim();
            let gate = gates.gate(name).ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
            *gate = gotext::parse_bool(value.trim())
                .ok_or_else(|| format!("invalid value of {name}={value}, it must be true or false"))?;
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates() {
        assert_eq!(FeatureGates::parse(""), Ok(FeatureGates::default()));
        assert_eq!(
            FeatureGates::parse(" APIServerIdentity=false, "),
            Ok(FeatureGates { api_server_identity: false, storage_version_api: true })
        );
        assert_eq!(
            FeatureGates::parse("StorageVersionAPI=false"),
            Ok(FeatureGates { api_server_identity: true, storage_version_api: false })
        );
        for bad in ["APIServerIdentity", "APIServerIdentity=2", "Other=true"] {
            assert!(FeatureGates::parse(bad).is_err(), "{bad}");
        }
    }
}
