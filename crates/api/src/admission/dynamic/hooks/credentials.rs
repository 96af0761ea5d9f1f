//! Credentials that webhooks are shown: the users of a kubeconfig, by the hosts that they are for
//! (`WebhookAdmissionConfiguration`).

use std::path::Path;

use crate::admission::configuration::Configuration;
use crate::fields;
use crate::gotext::quote;
use crate::tree::Map;
use crate::webhook::{Client, HostUsers};

const FORMS: [(&str, &str); 2] = [
    ("apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"),
    ("apiserver.config.k8s.io/v1alpha1", "WebhookAdmission"),
];

/// The credentials of all webhooks of a plugin.
#[derive(Debug, Default)]
pub struct Credentials {
    users: Option<HostUsers>,
}

impl Credentials {
    /// Reads the plugin's configuration, and the kubeconfig that it names.
    pub fn of(configuration: Option<&Configuration>) -> Result<Self, String> {
        let Some(configuration) = configuration else { return Ok(Self::default()) };
        let empty = Map::new();
        let root = configuration.content.as_object().unwrap_or(&empty);
        let form = (fields::text(root, &["apiVersion"]), fields::text(root, &["kind"]));
        if !FORMS.contains(&form) {
            let (version, kind) = (quote(form.0), quote(form.1));
            return Err(format!("no kind {kind} is registered for version {version}"));
        }
        // Only the newer form has the last one.
        let known = ["apiVersion", "kind", "kubeConfigFile", "staticManifestsDir"];
        let known = if form == FORMS[0] { &known[..] } else { &known[..3] };
        if let Some(unknown) = root.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("strict decoding error: unknown field \"{unknown}\""));
        }
        match fields::text(root, &["kubeConfigFile"]) {
            "" => Ok(Self::default()),
            path if !path.starts_with('/') => {
                Err(format!("kubeConfigFile: Invalid value: {}: must be an absolute file path", quote(path)))
            }
            path => {
                let users = HostUsers::read(Path::new(path)).map_err(|error| error.to_string())?;
                Ok(Self { users: Some(users) })
            }
        }
    }

    /// The credentials that the webhook at `host:port` is shown.
    pub fn of_host(&self, address: &str) -> Result<Client, String> {
        self.users.as_ref().map_or_else(|| Ok(Client::default()), |users| users.client(address))
    }
}
