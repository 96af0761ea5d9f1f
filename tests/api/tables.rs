//! Tables; assertions of `docs/spec/wire.md` by number. 47 is tested as `custom_resources_83_…`. What each kind's cells say is in
//! `crates/objects/tests/modules/kinds_columns`.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, rv};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PODS: &str = "/api/v1/namespaces/t/pods";

on_every_store! {
    wire_43_pods,
    wire_44_what_a_row_holds,
    wire_45_columns_are_told_once,
    wire_46_a_pod_that_is_done,
    wire_48_kinds_without_a_printer,
    wire_49_ages,
    scales_of_built_in_kinds,
    tables_of_every_kind,
    lists_tell_the_default_class,
}

async fn pod(server: &TestServer, name: &str, status: Value) {
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, &pod).await.expect(201);
    server.patch(format!("{PODS}/{name}/status"), &json!({"status": status})).await.ok();
}

async fn wire_43_pods(setup: Setup) {
    let server = setup.start().await;
    let terminated =
        json!({"exitCode": 1, "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:04:05Z"});
    let container = json!({"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "started": true, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}});
    let mut restarted = container.clone();
    restarted["restartCount"] = 3.into();
    restarted["lastState"] = json!({"terminated": terminated});
    pod(
        &server,
        "a",
        json!({"phase": "Running", "podIPs": [{"ip": "10.1.0.1"}], "podIP": "10.1.0.1",
        "containerStatuses": [container]}),
    )
    .await;
    pod(&server, "b", json!({"phase": "Running", "containerStatuses": [restarted]})).await;
    let table = server.get(PODS).accept(TABLE).await.ok();
    let columns: Vec<_> = table["columnDefinitions"].as_array().expect("columns").iter().collect();
    let shape: Vec<_> = columns
        .iter()
        .map(|column| json!([column["name"], column["type"], column["format"], column["priority"]]))
        .collect();
    let want = [
        json!(["Name", "string", "name", 0]),
        json!(["Ready", "string", "", 0]),
        json!(["Status", "string", "", 0]),
        json!(["Restarts", "string", "", 0]),
        json!(["Age", "string", "", 0]),
        json!(["IP", "string", "", 1]),
        json!(["Node", "string", "", 1]),
        json!(["Nominated Node", "string", "", 1]),
        json!(["Readiness Gates", "string", "", 1]),
    ];
    assert_eq!(shape, want);
    assert!(columns.iter().all(|column| column["description"].as_str().is_some_and(|text| !text.is_empty())));
    let cells = |row: usize| table["rows"][row]["cells"].as_array().expect("cells").clone();
    let mut a = cells(0);
    assert_eq!(a.len(), 9);
    assert!(a.remove(4).as_str().is_some_and(|age| age.ends_with('s')));
    assert_eq!(json!(a), json!(["a", "1/1", "Running", "0", "10.1.0.1", "<none>", "<none>", "<none>"]));
    let b = cells(1);
    assert!(b[3].as_str().is_some_and(|text| text.starts_with("3 (") && text.ends_with(" ago)")), "{b:?}");
}

async fn wire_44_what_a_row_holds(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({"k": "v"})).await;
    let row = async |query: &str| {
        let table = server.get(format!("{CONFIGMAPS}{query}")).accept(TABLE).await.ok();
        table["rows"][0]["object"].clone()
    };
    let metadata = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]});
    assert_eq!(row("").await, metadata);
    assert_eq!(row("?includeObject=").await, metadata);
    assert_eq!(row("?includeObject=Metadata").await, metadata);
    assert_eq!(row("?includeObject=Object").await, created);
    assert_eq!(row("?includeObject=None").await, Value::Null);
    let bad = server.get(format!("{CONFIGMAPS}?includeObject=x")).accept(TABLE).await;
    bad.bad_request(
        "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', \
         'Object', 'None', or empty",
    );
    // A form that is no table has no such parameter.
    server.get(format!("{CONFIGMAPS}?includeObject=x")).await.ok();
}

async fn wire_45_columns_are_told_once(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    let request = server.get(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}"));
    let mut watch = request.accept(TABLE).watch().await;
    let first = server.create("a", json!({})).await;
    server.create("b", json!({})).await;
    let table = watch.expect("ADDED").await;
    assert!(table["columnDefinitions"].is_array(), "{table}");
    assert_eq!((table["rows"].as_array().map(Vec::len), rv(&table)), (Some(1), rv(&first)));
    let table = watch.expect("ADDED").await;
    assert_eq!(table.get("columnDefinitions"), Some(&Value::Null));
    assert_eq!(table["rows"][0]["cells"][0], "b");
}

async fn wire_46_a_pod_that_is_done(setup: Setup) {
    let server = setup.start().await;
    for (name, phase) in [("a", "Running"), ("b", "Succeeded"), ("c", "Failed")] {
        pod(&server, name, json!({"phase": phase})).await;
    }
    let table = server.get(PODS).accept(TABLE).await.ok();
    let completed = |reason: &str, message: &str| json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]);
    assert_eq!(table["rows"][0].get("conditions"), None);
    assert_eq!(table["rows"][1]["conditions"], completed("Succeeded", "The pod has completed successfully."));
    assert_eq!(table["rows"][2]["conditions"], completed("Failed", "The pod failed."));
}

async fn wire_48_kinds_without_a_printer(setup: Setup) {
    let server = setup.start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/t/roles";
    let empty = server.get(roles).accept(TABLE).await.ok();
    assert_eq!(empty.get("rows"), Some(&Value::Null));
    let role = server.post(roles, &json!({"metadata": {"name": "r"}})).await.expect(201);
    let table = server.get(roles).accept(TABLE).await.ok();
    let shape: Vec<_> = table["columnDefinitions"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| json!([column["name"], column["type"], column["format"]]))
        .collect();
    assert_eq!(shape, [json!(["Name", "string", "name"]), json!(["Created At", "date", ""])]);
    assert_eq!(table["rows"][0]["cells"], json!(["r", role["metadata"]["creationTimestamp"]]));
}

/// The seconds are in `crates/objects/src/kinds/behavior/columns/age.rs`; here they may pass.
async fn wire_49_ages(setup: Setup) {
    let server = setup.start().await;
    let events = "/api/v1/namespaces/t/events";
    let minutes = |count: i64| SignedDuration::from_secs(60 * count + 30);
    let cases = [
        (3 * 60 + 5, "3h5m"),
        (4 * 60, "4h"),
        (50 * 60, "2d2h"),
        (9 * 24 * 60, "9d"),
        (800 * 24 * 60, "2y70d"),
    ];
    for (index, (past, _)) in cases.iter().enumerate() {
        let time = Timestamp::from_second((Timestamp::now() - minutes(*past)).as_second()).expect("a time");
        let event = json!({"metadata": {"name": format!("e{index}")}, "lastTimestamp": time.to_string(),
            "involvedObject": {"kind": "Pod", "namespace": "t", "name": "p"}});
        server.post(events, &event).await.expect(201);
    }
    let table = server.get(events).accept(TABLE).await.ok();
    for (index, (_, age)) in cases.iter().enumerate() {
        assert_eq!(table["rows"][index]["cells"][0], *age);
    }
}

async fn scales_of_built_in_kinds(setup: Setup) {
    let server = setup.start().await;
    let deployments = "/apis/apps/v1/namespaces/t/deployments";
    server.post(deployments, &deployment("d", json!({"replicas": 0}))).await.expect(201);
    let table = server.get(format!("{deployments}/d/scale")).accept(TABLE).await.ok();
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| json!([column["name"], column["type"], column["format"]]))
        .collect();
    let expected = json!([
        ["Name", "string", ""],
        ["Desired", "integer", ""],
        ["Available", "integer", ""],
        ["Age", "string", ""]
    ]);
    assert_eq!(json!(columns), expected);
    assert_eq!(table["rows"][0]["cells"].as_array().expect("cells")[..3], [json!("d"), json!(0), json!(0)]);
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "d");
}

/// Against what kube-apiserver 1.37.2 has answered for the same objects (`testdata/tables`).
async fn tables_of_every_kind(setup: Setup) {
    let server = setup.start().await;
    let mut kinds = std::collections::BTreeSet::new();
    for line in include_str!("../../testdata/tables/objects.jsonl").lines() {
        let entry: Value = serde_json::from_str(line).expect("an entry");
        let path = entry["path"].as_str().expect("a path");
        let created = server.post(path, &entry["object"]).await;
        assert_eq!(created.status, 201, "{created:?}");
        let object = format!("{path}/{}", entry["object"]["metadata"]["name"].as_str().expect("a name"));
        if let Some(status) = entry.get("status") {
            server.patch(format!("{object}/status"), &json!({"status": status})).await.ok();
        }
        let table = server.get(&object).accept(TABLE).await.ok();
        let columns = table["columnDefinitions"].as_array().expect("columns");
        let shape: Vec<_> = columns
            .iter()
            .map(|column| json!([column["name"], column["type"], column["format"], column["priority"]]))
            .collect();
        assert_eq!(json!(shape), entry["columns"], "{path}");
        let row = &table["rows"][0];
        let (cells, wanted) =
            (row["cells"].as_array().expect("cells"), entry["cells"].as_array().expect("cells"));
        assert_eq!(cells.len(), wanted.len(), "{object}");
        // The server counts itself what quotas have used, and right from their creation.
        let is_quota = path.ends_with("/resourcequotas");
        if is_quota && entry.get("status").is_none() {
            continue;
        }
        for (index, (cell, want)) in cells.iter().zip(wanted).enumerate() {
            let shown = |cell: &Value| if is_quota { limits_of(cell) } else { cell.clone() };
            let (cell, want) = (&shown(cell), &shown(want));
            assert!(is_like(cell, want), "{object}, cell {index}: {cell} is not {want}");
        }
        assert_eq!(row.get("conditions"), entry.get("conditions"), "{object}");
        kinds.insert(path.to_owned());
    }
    assert!(kinds.len() > 50, "{}", kinds.len());
}

/// The newest of those that are marked is the default, and only a list tells it.
async fn lists_tell_the_default_class(setup: Setup) {
    const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
    let server = setup.start().await;
    let class = |name: &str, mark: &str| json!({"metadata": {"name": name, "annotations": {mark: "true"}}, "provisioner": "p"});
    let names = async || {
        let table = server.get(CLASSES).accept(TABLE).await.ok();
        let rows = table["rows"].as_array().expect("rows").clone();
        rows.into_iter().map(|row| row["cells"][0].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    server.post(CLASSES, &class("b", "storageclass.beta.kubernetes.io/is-default-class")).await.expect(201);
    server.post(CLASSES, &class("c", "none")).await.expect(201);
    assert_eq!(names().await, ["b (default)", "c"]);
    // Created in the same second it is the first by name, and else the newest.
    server.post(CLASSES, &class("a", "storageclass.kubernetes.io/is-default-class")).await.expect(201);
    assert_eq!(names().await, ["a (default)", "b", "c"]);
    let one = server.get(format!("{CLASSES}/a")).accept(TABLE).await.ok();
    assert_eq!(one["rows"][0]["cells"][0], "a");
}

/// What the clock and chance say stands as `<age>` in the vectors.
fn is_like(cell: &Value, want: &Value) -> bool {
    match (cell.as_str(), want.as_str().and_then(|want| want.split_once("<age>"))) {
        (Some(cell), Some((before, after))) => {
            cell.len() > before.len() + after.len() && cell.starts_with(before) && cell.ends_with(after)
        }
        _ => cell == want,
    }
}

/// What a cell of a quota tells, without the used amounts.
fn limits_of(cell: &Value) -> Value {
    let Some(text) = cell.as_str().filter(|text| text.contains('/')) else { return cell.clone() };
    let limit = |part: &str| {
        let (name, amounts) = part.split_once(": ").expect("a name");
        format!("{name}: {}", amounts.split_once('/').expect("two amounts").1)
    };
    text.split(", ").map(limit).collect::<Vec<_>>().join(", ").into()
}
