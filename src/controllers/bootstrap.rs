//! The namespaces that exist from the start.

use serde_json::json;

use crate::api::Api;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::user::User;

const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates what is missing; another replica may do the same at this moment.
pub async fn create_system_namespaces(api: &Api) -> Result<(), Error> {
    let Some(resource) = api.resources.get("", "v1", "namespaces").cloned() else { return Ok(()) };
    let state = api.cache.fresh().await?;
    for name in SYSTEM_NAMESPACES {
        if state.get(resource.id, "", name).is_some() {
            continue;
        }
        let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        let serde_json::Value::Object(namespace) = namespace else { continue };
        match api.create(&resource, "", namespace, &WriteOptions::default(), &User::apiserver()).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
