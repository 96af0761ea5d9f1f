//! Tests of `connect::options`.

use rowplane_api::ObjectMap;
use rowplane_api::error::Error;
use rowplane_api::options::query::Query;
use rowplane_api::subresource::connect::options::{for_kubelet, parse};
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::tree::{Value, json};

fn parsed(kind: &'static str, query: &str) -> Result<ObjectMap, Error> {
    parse(&Gvk::fixed("v1", kind), &Query::parse(query), "/a b")
}

#[test]
fn the_query_becomes_an_object_and_a_query_again() {
    let query = "command=ls&command=-l%20x&stdout=1&tty=true&stdin=false&container=c&dropped=1&ports=x";
    let exec = parsed("PodExecOptions", query).expect("options");
    let want = json!({"kind": "PodExecOptions", "apiVersion": "v1", "stdout": true, "tty": true,
        "container": "c", "command": ["ls", "-l x"]});
    assert_eq!(Value::Object(exec.clone()), want);
    assert_eq!(for_kubelet(&exec), "command=ls&command=-l+x&output=1&tty=1");
    let attach = parsed("PodAttachOptions", "command=ls&stderr&stdin=1").expect("options");
    assert_eq!(for_kubelet(&attach), "error=1&input=1");
    let ports = parsed("PodPortForwardOptions", "ports=80&ports=443,8080").expect("options");
    assert_eq!(for_kubelet(&ports), "port=80%2C443%2C8080");
    let proxy = parsed("NodeProxyOptions", "path=/other").expect("options");
    assert_eq!(proxy["path"], "/a b");
}

#[test]
fn ports_are_numbers() {
    let text = "cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax";
    assert_eq!(parsed("PodPortForwardOptions", "ports=80,x"), Err(Error::bad_request(text)));
    let text = "cannot convert to []int32: strconv.ParseUint: parsing \"65536\": value out of range";
    assert_eq!(parsed("PodPortForwardOptions", "ports=65536"), Err(Error::bad_request(text)));
}
