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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    fn pod(containers: Value) -> ObjectMap {
        let Value::Object(pod) = json!({"spec": containers}) else { unreachable!("an object") };
        pod
    }

    #[test]
    fn a_name_is_needed_where_there_is_a_choice() {
        let one = pod(json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}));
        assert_eq!(chosen(&one, "p", ""), Ok("a".to_owned()));
        assert_eq!(chosen(&one, "p", "i"), Ok("i".to_owned()));
        let three = pod(json!({"containers": [{"name": "a"}, {"name": "b"}],
            "ephemeralContainers": [{"name": "debug"}], "initContainers": [{"name": "init"}]}));
        let text = "a container name must be specified for pod p, choose one of: [init a b debug]";
        assert_eq!(chosen(&three, "p", ""), Err(Error::bad_request(text)));
        assert_eq!(chosen(&three, "p", "debug"), Ok("debug".to_owned()));
        let text = "container x is not valid for pod p";
        assert_eq!(chosen(&three, "p", "x"), Err(Error::bad_request(text)));
    }
}
