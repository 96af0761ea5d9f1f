//! Tests of `kubelets`.

use rowplane_api::ObjectMap;
use rowplane_api::error::Error;
use rowplane_api::kubelets::{Config, Kubelets};
use rowplane_store::egress::Egress;
use rowplane_values::tree::{Value, json};

fn node(status: Value) -> ObjectMap {
    let Value::Object(node) = json!({"status": status}) else { unreachable!("an object") };
    node
}

#[tokio::test]
async fn the_best_type_counts_and_then_the_order() {
    let address_types = vec!["ExternalIP".to_owned(), "InternalIP".to_owned()];
    let kubelets = Kubelets::new(Config { address_types, ..Config::default() }, Egress::default());
    let kubelets = kubelets.expect("kubelets");
    let two =
        json!([{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00::1"}]);
    let address = kubelets.address(&node(json!({"addresses": two}))).await.expect("an address");
    assert_eq!(address.authority(), "10.0.0.1:10250");
    let external =
        json!([{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "fd00::1"}]);
    let port = json!({"kubeletEndpoint": {"Port": 7}});
    let found = node(json!({"addresses": external, "daemonEndpoints": port}));
    assert_eq!(kubelets.address(&found).await.expect("an address").authority(), "[fd00::1]:7");
    let none = node(json!({"addresses": [{"type": "Hostname", "address": "n"}]}));
    let text = "no preferred addresses found; known addresses: [{Hostname n}]";
    assert_eq!(kubelets.address(&none).await.expect_err("none"), Error::Unclassified(text.to_owned()));
}
