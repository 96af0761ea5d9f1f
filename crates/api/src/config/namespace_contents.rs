//! The objects that every namespace has.

use crate::schema::names::Gvr;
use crate::tree::{Value, json};

/// The account of Pods that name none.
pub const DEFAULT_ACCOUNT: &str = "default";
/// The ConfigMap by which Pods verify the server.
pub const ROOT_CA: &str = "kube-root-ca.crt";
/// Its only key.
pub const CA_KEY: &str = "ca.crt";
const DESCRIPTION: &str =
    "Certificates by which Pods verify the API server. Kept by the server: changes are undone.";

/// The objects that the server puts into each namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespaceContents {
    /// The text of `kube-root-ca.crt`; without one there is no such ConfigMap.
    pub root_ca: Option<String>,
}

impl NamespaceContents {
    /// The objects by their resources.
    pub fn objects(&self) -> impl Iterator<Item = (Gvr, Value)> {
        let account =
            json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": DEFAULT_ACCOUNT}});
        let root_ca = self.root_ca.as_ref().map(|text| {
            let annotations = json!({"kubernetes.io/description": DESCRIPTION});
            let object = json!({
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": ROOT_CA, "annotations": annotations},
                "data": {CA_KEY: text},
            });
            (Gvr::fixed("v1", "configmaps"), object)
        });
        [(Gvr::fixed("v1", "serviceaccounts"), account)].into_iter().chain(root_ca)
    }
}
