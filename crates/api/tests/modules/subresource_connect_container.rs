//! Tests of `connect::container`.

use rowplane_api::ObjectMap;
use rowplane_api::error::Error;
use rowplane_api::subresource::connect::container::chosen;
use rowplane_objects::tree::{Value, json};

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
