//! The door to the past: assertions of `docs/spec/time-and-sql.md` by number.

use rowplane::revision::Revision;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, names, rv, token};

on_every_store! {
    time_and_sql_01_the_state_between_two_writes,
    time_and_sql_02_forms_of_a_revision,
    time_and_sql_03_what_is_no_time,
    time_and_sql_08_reads_equal_those_of_then,
    time_and_sql_09_pages_belong_to_their_door,
    time_and_sql_11_a_watch_of_a_state_falls_silent,
    time_and_sql_12_a_watch_of_the_changes_before,
    time_and_sql_13_nothing_changes,
    time_and_sql_14_reviews,
    time_and_sql_15_custom_resources_by_their_definition_then,
    time_and_sql_16_the_version,
    time_and_sql_17_rights,
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The path through the door of a revision.
fn door(revision: u64, path: &str) -> String {
    format!("/asof/rv-{revision}{path}")
}

impl TestServer {
    /// Creates `a` and `b`, changes and deletes them, and creates `c`. Returns the revision at which there were `a` and `b`.
    async fn two_then_others(&self) -> u64 {
        self.create("a", json!({"n": "1"})).await;
        let then = rv(&self.create("b", json!({"n": "1"})).await);
        self.set("a", json!({"n": "2"})).await;
        self.remove("b").await;
        self.create("c", json!({})).await;
        then
    }
}

/// A time after everything that was answered until now, and before everything that is written from now on.
async fn a_time(server: &TestServer) -> String {
    let (moment, _) = server.backend.moment_of(Revision(server.revision().await)).await.expect("a moment");
    let at = moment.committed_ms + 1;
    // The next commit is later than that.
    while server.backend.moment_at(at + 1).await.is_err() {}
    jiff::Timestamp::from_millisecond(at).expect("a time").to_string()
}

async fn time_and_sql_01_the_state_between_two_writes(setup: Setup) {
    let server = setup.start().await;
    let a = rv(&server.create("a", json!({})).await);
    let then = a_time(&server).await;
    server.remove("a").await;
    server.create("b", json!({})).await;
    let list = server.get(format!("/asof/{then}{CONFIGMAPS}")).await;
    assert_eq!((names(&list.ok()), rv(&list.ok())), (vec!["a".into()], a));
    let header = list.header("rowplane-as-of").expect("the header");
    assert!(header.ends_with(&format!("Z; revision={a}")), "{header}");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["b"]);
    let time: jiff::Timestamp = then.parse().expect("a time");
    let offset = time.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(2)));
    let with_offset = offset.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string();
    for form in [with_offset.clone(), with_offset.replace('+', "%2B")] {
        let same = server.get(format!("/asof/{form}{CONFIGMAPS}")).await;
        assert_eq!(same.text(), list.text(), "{form}");
    }
    let future = server.get(format!("/asof/2999-01-01T00:00:00Z{CONFIGMAPS}")).await.failure();
    assert_eq!(future["code"], 400, "{future}");
    assert!(
        future["message"].as_str().expect("a message").contains("in the future; the clock of the store says")
    );
    let before = server.get(format!("/asof/19991231T235959Z{CONFIGMAPS}")).await.failure();
    assert_eq!((&before["code"], &before["reason"]), (&json!(410), &json!("Expired")));
}

async fn time_and_sql_02_forms_of_a_revision(setup: Setup) {
    let server = setup.start().await;
    let then = server.two_then_others().await;
    let by_path = server.get(door(then, CONFIGMAPS)).await;
    assert_eq!((names(&by_path.ok()), rv(&by_path.ok())), (vec!["a".into(), "b".into()], then));
    let revision = by_path.header("rowplane-as-of").and_then(|text| text.split("; ").nth(1));
    assert_eq!(revision, Some(&*format!("revision={then}")));
    let by_header = server.get(CONFIGMAPS).header("rowplane-as-of", &format!("rv-{then}")).await;
    assert_eq!(by_header.text(), by_path.text());
    let both = server.get(door(then, CONFIGMAPS)).header("rowplane-as-of", &format!("rv-{then}")).await;
    assert_eq!(both.text(), by_path.text());
    let differ = server.get(door(then, CONFIGMAPS)).header("rowplane-as-of", "rv-1").await;
    differ.bad_request(&format!(
        "the path asks for revision {then}, and the header rowplane-as-of for revision 1"
    ));
    assert_eq!(server.get(CONFIGMAPS).await.header("rowplane-as-of"), None);
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
}

async fn time_and_sql_03_what_is_no_time(setup: Setup) {
    let server = setup.start().await;
    for when in ["-15m", "10:00", "2026-11-22T10:00:00", "2026-11-22T10:00:00.1234567890Z", "17"] {
        let refused = server.get(format!("/asof/{when}{CONFIGMAPS}")).await.failure();
        assert_eq!((&refused["code"], &refused["reason"]), (&json!(400), &json!("BadRequest")), "{when}");
        let message = refused["message"].as_str().expect("a message");
        for form in ["2026-11-22T10:00:00.250Z", "20261122T100000Z", "rv-123456"] {
            assert!(message.contains(form), "{message}");
        }
    }
    for path in ["/asof/", "/asof", "/asof/rv-1/asof/rv-1/api/v1/pods", "/asof/rv-1/metrics"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
}

async fn time_and_sql_08_reads_equal_those_of_then(setup: Setup) {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
    const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let server = setup.start().await;
    let mut deployment = crate::support::server::deployment("web", json!({"replicas": 2}));
    deployment["metadata"]["labels"] = json!({"tier": "front"});
    server.post(DEPLOYMENTS, &deployment).await.expect(201);
    server.post(DEPLOYMENTS, &crate::support::server::deployment("db", json!({}))).await.expect(201);
    let paths = [
        (format!("{DEPLOYMENTS}/web"), "application/json"),
        (format!("{DEPLOYMENTS}/web/status"), "application/json"),
        (format!("{DEPLOYMENTS}/web/scale"), "application/json"),
        (format!("{DEPLOYMENTS}/web"), "application/vnd.kubernetes.protobuf"),
        (format!("{DEPLOYMENTS}/web"), "application/yaml"),
        (format!("{DEPLOYMENTS}?labelSelector=tier%3Dfront"), "application/json"),
        (format!("{DEPLOYMENTS}?fieldSelector=metadata.name%3Ddb"), "application/vnd.kubernetes.protobuf"),
        (DEPLOYMENTS.to_owned(), TABLE),
        (DEPLOYMENTS.to_owned(), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        (
            format!("{DEPLOYMENTS}?limit=1"),
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ),
    ];
    let mut then = Vec::new();
    for (path, accept) in &paths {
        then.push(server.get(path.clone()).accept(accept).await);
    }
    let at = server.revision().await;
    server.patch(format!("{DEPLOYMENTS}/web"), &json!({"spec": {"replicas": 7}})).await.ok();
    server.delete(format!("{DEPLOYMENTS}/db")).await.ok();
    for ((path, accept), then) in paths.iter().zip(&then) {
        let now = server.get(door(at, path)).accept(accept).await;
        assert_eq!(
            (now.status, now.header("content-type")),
            (then.status, then.header("content-type")),
            "{path}"
        );
        let (mut now, mut then) = (now.body.clone(), then.body.clone());
        if path.contains("limit") {
            // The token is the door's.
            let strip = |body: &[u8]| {
                let mut list: Value = serde_json::from_slice(body).expect("JSON");
                assert!(list["metadata"]["continue"].take().is_string());
                serde_json::to_vec(&list).expect("JSON").into()
            };
            (now, then) = (strip(&now), strip(&then));
        }
        if *accept == TABLE {
            // Ages are those of the commit, not of the request.
            continue;
        }
        assert_eq!(now, then, "{path} {accept}");
    }
    let gzipped = server.get(door(at, DEPLOYMENTS)).header("accept-encoding", "gzip").await;
    assert_eq!(gzipped.status, 200);
    let gone = server.get(door(at, &format!("{DEPLOYMENTS}/none"))).await;
    gone.fails(
        404,
        "NotFound",
        "deployments.apps \"none\" not found",
        json!({"name": "none", "group": "apps", "kind": "deployments"}),
    );
    let later = server.get(door(at, &format!("{DEPLOYMENTS}?resourceVersion={}", at + 1))).await.failure();
    assert_eq!((&later["code"], &later["reason"]), (&json!(504), &json!("Timeout")));
}

async fn time_and_sql_09_pages_belong_to_their_door(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b", "c"] {
        server.create(name, json!({})).await;
    }
    let then = server.revision().await;
    let first = server.get(door(then, &format!("{CONFIGMAPS}?limit=2"))).await.ok();
    assert_eq!((names(&first), rv(&first)), (vec!["a".into(), "b".into()], then));
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    server.create("d", json!({})).await;
    server.remove("c").await;
    let rest = format!("{CONFIGMAPS}?limit=2&continue={}", token(&first));
    let second = server.get(door(then, &rest)).await.ok();
    assert_eq!((names(&second), rv(&second)), (vec!["c".into()], then));
    let mismatch = "invalid continue token: continue key is not valid: signature mismatch";
    server.get(&rest).await.bad_request(mismatch);
    server.get(door(then + 1, &rest)).await.bad_request(mismatch);
    let ordinary = server.get(format!("{CONFIGMAPS}?limit=1")).await.ok();
    let rest = format!("{CONFIGMAPS}?limit=2&continue={}", token(&ordinary));
    server.get(door(then, &rest)).await.bad_request(mismatch);
}

async fn time_and_sql_11_a_watch_of_a_state_falls_silent(setup: Setup) {
    let server = setup.start().await;
    let then = server.two_then_others().await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(door(then, &format!("{CONFIGMAPS}?{query}&timeoutSeconds=2"))).await;
    watch.expect_named("ADDED", "a").await;
    watch.expect_named("ADDED", "b").await;
    let bookmark = watch.expect("BOOKMARK").await;
    assert_eq!(bookmark["metadata"]["resourceVersion"], then.to_string());
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    server.create("d", json!({})).await;
    for event in watch.rest().await {
        let revision = &event["object"]["metadata"]["resourceVersion"];
        assert_eq!((&event["type"], revision), (&json!("BOOKMARK"), &json!(then.to_string())));
    }
    // From all namespaces, with a selector, without bookmarks.
    let query = format!("{ALL_CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Db&timeoutSeconds=1");
    let mut watch = server.watch(door(then, &query)).await;
    watch.expect_named("ADDED", "b").await;
    watch.expect_end().await;
}

async fn time_and_sql_12_a_watch_of_the_changes_before(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    server.two_then_others().await;
    let then = server.revision().await;
    server.create("d", json!({})).await;
    let query = format!("{CONFIGMAPS}?watch=1&resourceVersion={start}&timeoutSeconds=1");
    let events = server.watch(door(then, &query)).await.rest().await;
    let told: Vec<_> = events.iter().map(|e| (&e["type"], &e["object"]["metadata"]["name"])).collect();
    let expected =
        json!([["ADDED", "a"], ["ADDED", "b"], ["MODIFIED", "a"], ["DELETED", "b"], ["ADDED", "c"]]);
    assert_eq!(json!(told), expected);
    let query = format!("{CONFIGMAPS}?watch=1&resourceVersion={then}&timeoutSeconds=1");
    assert_eq!(server.watch(door(then, &query)).await.rest().await, Vec::<Value>::new());
}

async fn time_and_sql_13_nothing_changes(setup: Setup) {
    let server = setup.start().await;
    let then = server.two_then_others().await;
    let now = server.revision().await;
    let object = format!("{CONFIGMAPS}/a");
    let body = json!({"metadata": {"name": "a"}});
    let refused = |answer: Answer, name: &str| {
        let refused = answer.failure();
        let subject =
            if name.is_empty() { "configmaps".to_owned() } else { format!("configmaps \"{name}\"") };
        assert_eq!(
            (&refused["code"], refused["message"].as_str().expect("a message")),
            (
                &json!(403),
                &*format!(
                    "{subject} is forbidden: this is the cluster as of revision {then}, which cannot be changed"
                )
            )
        );
    };
    for query in ["", "?dryRun=All"] {
        let at = |path: &str| door(then, &format!("{path}{query}"));
        refused(server.post(at(CONFIGMAPS), &body).await, "");
        refused(server.put(at(&object), &body).await, "a");
        refused(server.patch(at(&object), &body).await, "a");
        refused(server.delete(at(&object)).await, "a");
        refused(server.delete(at(CONFIGMAPS)).await, "");
    }
    for part in ["log", "exec", "attach", "portforward", "proxy"] {
        let refused = server.get(door(then, &format!("/api/v1/namespaces/t/pods/p/{part}"))).await.failure();
        assert_eq!(refused["code"], 403, "{part}: {refused}");
    }
    assert_eq!(server.revision().await, now);
}

async fn time_and_sql_14_reviews(setup: Setup) {
    let server = setup.start().await;
    let then = server.revision().await;
    let review = async |client: &Client, verb: &str| {
        let spec = json!({"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "t"}});
        let path = door(then, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        client.post(path, &json!({"spec": spec})).await.expect(201)["status"].clone()
    };
    assert_eq!(review(&server, "list").await, json!({"allowed": true}));
    let reason = format!("read-only: as of revision {then}");
    assert_eq!(review(&server, "delete").await, json!({"allowed": false, "reason": reason}));
    let me = server.post(door(then, "/apis/authentication.k8s.io/v1/selfsubjectreviews"), &json!({})).await;
    assert_eq!(me.expect(201)["status"]["userInfo"]["username"], "kubernetes-admin");
    let token = server.post(door(then, "/apis/authentication.k8s.io/v1/tokenreviews"), &json!({})).await;
    assert_eq!(token.status, 403);
}

async fn time_and_sql_15_custom_resources_by_their_definition_then(setup: Setup) {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/t/widgets";
    let server = setup.start().await;
    let before = server.revision().await;
    let column = json!({"name": "Size", "type": "integer", "jsonPath": ".size"});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [column],
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    server.post(DEFINITIONS, &definition).await.expect(201);
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 3});
    server.post(WIDGETS, &widget).await.expect(201);
    let then = server.revision().await;
    server.delete(format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    while server.get(WIDGETS).await.status == 200 {}
    let has_group = async |revision: u64| {
        let groups = server.get(door(revision, "/apis")).await.ok();
        groups["groups"].as_array().expect("groups").iter().any(|group| group["name"] == "example.com")
    };
    assert_eq!((has_group(before).await, has_group(then).await), (false, true));
    assert_eq!(server.get(door(before, WIDGETS)).await.status, 404);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let table = server.get(door(then, WIDGETS)).accept(table).await.ok();
    assert_eq!(table["columnDefinitions"][1]["name"], "Size");
    assert_eq!(table["rows"][0]["cells"], json!(["w", 3]));
    assert_eq!(server.get(door(then, &format!("{WIDGETS}/w"))).await.ok()["size"], 3);
    assert!(server.get(door(then, "/openapi/v3")).await.ok()["paths"]["apis/example.com/v1"].is_object());
}

async fn time_and_sql_16_the_version(setup: Setup) {
    let server = setup.start().await;
    let then = server.revision().await;
    let version = server.get(door(then, "/version")).await.ok();
    assert_eq!(version["gitVersion"], format!("v1.37.0+asof.rv-{then}"));
}

async fn time_and_sql_17_rights(setup: Setup) {
    let server = setup.start().await;
    let then = server.two_then_others().await;
    let alice = server.token("alice-token");
    let grant = async |name: &str, verbs: &[&str]| {
        let rule = json!({"verbs": verbs, "apiGroups": [""], "resources": ["configmaps"]});
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        server.post(format!("{RBAC}/namespaces/t/roles"), &role).await.expect(201);
        let subjects = json!([{"kind": "User", "name": "alice"}]);
        let binding = json!({"metadata": {"name": name}, "roleRef": {"kind": "Role", "name": name}, "subjects": subjects});
        server.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201);
    };
    grant("reader", &["get", "list", "watch"]).await;
    assert_eq!(alice.get(CONFIGMAPS).await.status, 200);
    let refused = alice.get(door(then, CONFIGMAPS)).await.failure();
    assert_eq!(
        (&refused["code"], refused["message"].as_str()),
        (
            &json!(403),
            Some(
                "configmaps is forbidden: User \"alice\" cannot asof resource \"configmaps\" in API group \"\" in \
                  the namespace \"t\""
            )
        )
    );
    grant("historian", &["asof"]).await;
    assert_eq!(names(&alice.get(door(then, CONFIGMAPS)).await.ok()), ["a", "b"]);
    assert_eq!(alice.get(door(then, ALL_CONFIGMAPS)).await.status, 403);
    server.delete(format!("{RBAC}/namespaces/t/rolebindings/reader")).await.ok();
    assert_eq!(alice.get(door(then, CONFIGMAPS)).await.status, 403);
}
