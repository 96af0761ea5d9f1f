//! The resources that servers keep for themselves, and that no client is served.

use crate::cache::hidden_rows::HiddenRows;
use crate::schema::names::GroupResource;
use crate::storage::{self, Backend, ResourceId};

/// The rows of each hidden resource.
#[derive(Clone, Copy, Debug)]
pub struct HiddenResources {
    /// A row for each node port that a Service has.
    pub node_ports: HiddenRows,
    /// A row for each name that a definition has, in the definition's group.
    pub definition_names: HiddenRows,
    /// A row for each namespace with quotas, which changes with their set; and in the namespaces what claims of devices
    /// are not charged for, and which Pods are past their grace period.
    pub quota_sets: HiddenRows,
    /// The row that changes with the configuration of admission.
    pub admission: HiddenRows,
    /// A row for each public key with which a server signs tokens.
    pub token_keys: HiddenRows,
    /// The row that changes with the ClusterRoles that others consist of.
    pub aggregations: HiddenRows,
}

/// The resource of claimed node ports.
pub(crate) const NODE_PORTS: &str = "nodeports";
const PLURALS: [&str; 6] = [
    NODE_PORTS,
    "customresourcenames",
    "quotasets",
    "admissionconfigurations",
    "serviceaccountkeys",
    "aggregations",
];

impl HiddenResources {
    /// Registers the resources with the store, where they are not yet.
    pub async fn register(backend: &dyn Backend) -> Result<Self, storage::Error> {
        let ids = backend.resource_ids(&PLURALS.map(HiddenRows::resource)).await?;
        let rows = |place: usize| HiddenRows::new(ids[place]);
        Ok(Self {
            node_ports: rows(0),
            definition_names: rows(1),
            quota_sets: rows(2),
            admission: rows(3),
            token_keys: rows(4),
            aggregations: rows(5),
        })
    }

    /// The resources with the numbers that the store has given them.
    pub fn numbered(&self) -> impl Iterator<Item = (GroupResource, ResourceId)> {
        PLURALS.map(HiddenRows::resource).into_iter().zip(self.ids())
    }

    /// The numbers, in the order of [`PLURALS`].
    pub fn ids(&self) -> [ResourceId; 6] {
        let Self { node_ports, definition_names, quota_sets, admission, token_keys, aggregations } = self;
        [node_ports, definition_names, quota_sets, admission, token_keys, aggregations].map(|rows| rows.id())
    }
}
