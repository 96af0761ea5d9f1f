//! ComponentStatuses (`pkg/registry/core/componentstatus`): whether the store answers, under the name that upstream's first etcd has.
//! Schedulers and controller managers, which upstream asks at ports of the server's own host, are not asked.

use crate::tree::{Value, json};
use crate::{Api, ObjectMap};

const STORE: &str = "etcd-0";

impl Api {
    /// The statuses of all components, found out now, as objects without `kind` and `apiVersion`.
    pub async fn component_statuses(&self) -> Vec<ObjectMap> {
        let condition = match self.cache.fresh().await {
            Ok(_) => json!({"type": "Healthy", "status": "True", "message": "ok"}),
            Err(error) => json!({"type": "Healthy", "status": "False", "error": error.to_string()}),
        };
        let status = json!({"metadata": {"name": STORE}, "conditions": [condition]});
        let Value::Object(status) = status else { return Vec::new() };
        vec![status]
    }
}
