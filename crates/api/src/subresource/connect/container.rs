//! The choice of the container of a Pod that a request means.

use crate::error::Error;
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// The lists of a Pod's containers, in the order in which upstream names them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The container of this name; without a name, the only one there is.
pub fn chosen(pod: &ObjectMap, pod_name: &str, wanted: &str) -> Result<String, Error> {
    let names = |list| {
        let containers = fields::items(pod, &["spec", list]).iter();
        containers.filter_map(|container| container.get("name").and_then(Value::as_str))
    };
    if !wanted.is_empty() {
        return match LISTS.into_iter().flat_map(names).any(|name| name == wanted) {
            true => Ok(wanted.to_owned()),
            false => Err(Error::BadRequest(format!("container {wanted} is not valid for pod {pod_name}"))),
        };
    }
    let mut usual = names("containers");
    let missing = format!("a container name must be specified for pod {pod_name}");
    match (usual.next(), usual.next()) {
        (Some(only), None) => Ok(only.to_owned()),
        (None, _) => Err(Error::BadRequest(missing)),
        (Some(_), Some(_)) => {
            let all: Vec<&str> = LISTS.into_iter().flat_map(names).collect();
            Err(Error::BadRequest(format!("{missing}, choose one of: [{}]", all.join(" "))))
        }
    }
}
