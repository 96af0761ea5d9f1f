//! Custom resources while the database is away.

use serde_json::{Value, json};

use crate::support::server::{names, rv};
use crate::{Distant, client_of, unavailable};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

fn definition(plural: &str, kind: &str) -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 1}},
        "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too large"}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({"metadata": {"name": format!("{plural}.ex.io")}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind}, "versions": [version]}})
}

fn widget(name: &str, size: u64) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_outlive_the_database() {
    let server = Distant::start().await;
    let client = client_of(&server.installation);
    let known = rv(&client.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201));
    let mut watch = client.watch(format!("{WIDGETS}?watch=1&resourceVersion={known}")).await;
    let made = client.post(WIDGETS, &widget("a", 2)).await.expect(201);
    // A watch asks the database once, after the head of its answer.
    assert_eq!(watch.expect("ADDED").await, made);

    let _nobody = server.cut();
    while client.get("/readyz").await.status == 200 {}

    let one = format!("{WIDGETS}/a");
    // What is known is shown. (Of what is not known, nobody is told that it does not exist.)
    let served = client.get("/apis/ex.io/v1").await.ok();
    assert_eq!(served["resources"][0]["name"], "widgets");
    let published = client.get("/openapi/v3/apis/ex.io/v1").await.ok();
    assert!(published["components"]["schemas"]["io.ex.v1.Widget"].is_object());
    assert_eq!(names(&client.get(format!("{WIDGETS}?resourceVersion=0")).await.ok()), ["a"]);
    assert_eq!(client.get(format!("{one}?resourceVersion=0")).await.ok(), made);
    assert_eq!(client.get("/apis/apps/v1").await.ok()["groupVersion"], "apps/v1");
    assert_eq!(client.get("/metrics").await.status, 200);
    unavailable(&client.get("/apis/ex.io/v1/namespaces/default/gadgets").await);
    // Neither the newest state can be read nor anything be written, and no definition be made, changed or taken away.
    let defined = format!("{DEFINITIONS}/widgets.ex.io");
    for answer in [
        client.get(WIDGETS).await,
        client.get(&one).await,
        client.post(WIDGETS, &widget("b", 1)).await,
        client.put(&one, &made).await,
        client.patch(&one, &json!({"spec": {"size": 3}})).await,
        client.delete(&one).await,
        client.post(DEFINITIONS, &definition("gadgets", "Gadget")).await,
        client.patch(&defined, &json!({"spec": {"names": {"shortNames": ["w"]}}})).await,
        client.delete(&defined).await,
    ] {
        unavailable(&answer);
    }

    server.mend();
    while client.get("/readyz").await.status != 200 {}
    let written = loop {
        let answer = client.post(WIDGETS, &widget("c", 4)).await;
        if answer.status != 503 {
            break answer.expect(201);
        }
    };
    assert_eq!(names(&client.get(WIDGETS).await.ok()), ["a", "c"], "what was refused was not done");
    assert_eq!(client.get(&one).await.ok(), made);
    assert_eq!(watch.expect("ADDED").await, written, "the watch has gone on, and saw nothing else");
    assert_eq!(client.post(WIDGETS, &widget("d", 10)).await.status, 422);
    client.post(DEFINITIONS, &definition("gadgets", "Gadget")).await.expect(201);
    assert_eq!(names(&client.get("/apis/ex.io/v1/gadgets").await.ok()), [""; 0]);
}
