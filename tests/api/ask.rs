//! The door `/ask/`: assertions of `docs/spec/time-and-sql.md` by number.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, deployment, names, rv, token};

on_every_store! {
    time_and_sql_58_selectors_of_any_field,
    time_and_sql_59_filters,
    time_and_sql_60_a_watch_with_a_filter,
    time_and_sql_61_pages_in_an_order,
    time_and_sql_62_counts,
    time_and_sql_64_search,
    time_and_sql_65_the_same_without_parameters,
    orders_are_those_of_values,
    custom_resources_by_their_schema,
    the_past_through_both_doors,
    nothing_is_deleted_by_a_filter,
    the_command_line_finds_and_follows,
}

const PODS: &str = "/api/v1/namespaces/t/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A parameter of a query.
fn parameter(name: &str, value: &str) -> String {
    format!("{name}={}", url::form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>())
}

fn filter(expression: &str) -> String {
    parameter("rowplane.filter", expression)
}

async fn ask(client: &Client, path: &str, query: &str) -> Answer {
    client.get(format!("/ask{path}?{query}")).await
}

async fn asked(client: &Client, path: &str, query: &str) -> Vec<String> {
    let answer = ask(client, path, query).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    names(&answer.json())
}

fn pod(name: &str, node: Option<&str>, image: &str) -> Value {
    let mut pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {
        "hostNetwork": node.is_some(), "containers": [{"name": "c", "image": image}]}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

async fn time_and_sql_58_selectors_of_any_field(setup: Setup) {
    let server = setup.start().await;
    for (name, node) in [("a", Some("n1")), ("b", Some("n2")), ("c", None)] {
        server.post(PODS, &pod(name, node, "i:1")).await.expect(201);
    }
    let all = server.get(PODS).await.ok();
    let field = |pod: &Value, path: &str| match pod.pointer(&format!("/{}", path.replace('.', "/"))) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    for (path, value) in [
        ("spec.nodeName", "n1"),
        ("spec.hostNetwork", "true"),
        ("spec.dnsPolicy", "ClusterFirst"),
        ("status.qosClass", "BestEffort"),
        ("metadata.labels.app", "b"),
        ("metadata.name", "c"),
        ("spec.terminationGracePeriodSeconds", "30"),
        ("status.message", ""),
    ] {
        let items = all["items"].as_array().expect("items");
        for (operator, equal) in [("=", true), ("==", true), ("!=", false)] {
            let own: Vec<String> = items
                .iter()
                // Go leaves false out, which is what a user means by it all the same.
                .filter(|pod| (field(pod, path) == value) == equal)
                .map(|pod| field(pod, "metadata.name"))
                .collect();
            let query = parameter("fieldSelector", &format!("{path}{operator}{value}"));
            assert_eq!(asked(&server, PODS, &query).await, own, "{path}{operator}{value}");
        }
    }
    let query = parameter("fieldSelector", "spec.hostNetwork!=true,status.phase=Pending");
    assert_eq!(asked(&server, PODS, &query).await, ["c"]);
    // A number that is zero is left out of the JSON.
    server.post(DEPLOYMENTS, &deployment("web", json!({"replicas": 2}))).await.expect(201);
    let ready = |text: &str| parameter("fieldSelector", &format!("status.readyReplicas{text}0"));
    assert_eq!(asked(&server, DEPLOYMENTS, &ready("=")).await, ["web"]);
    assert_eq!(asked(&server, DEPLOYMENTS, &ready("!=")).await, [] as [&str; 0]);
    for unknown in
        ["spec.nothing", "spec.containers.image", "spec", "spec.containers", "metadata.managedFields"]
    {
        let query = parameter("fieldSelector", &format!("{unknown}=x"));
        ask(&server, PODS, &query).await.bad_request(&format!("field label not supported: {unknown}"));
    }
    let query = parameter("fieldSelector", "spec.dnsPolicy=Default");
    server.get(format!("{PODS}?{query}")).await.bad_request("field label not supported: spec.dnsPolicy");
}

async fn time_and_sql_59_filters(setup: Setup) {
    let server = setup.start().await;
    for (name, replicas) in [("a", 1), ("b", 5), ("c", 9)] {
        server.post(DEPLOYMENTS, &deployment(name, json!({"replicas": replicas}))).await.expect(201);
    }
    for (text, found) in [
        ("object.spec.replicas > 3", vec!["b", "c"]),
        ("object.metadata.name == 'a' || object.spec.replicas == 9", vec!["a", "c"]),
        ("object.spec.template.spec.containers.all(c, c.image.startsWith('i'))", vec!["a", "b", "c"]),
        ("has(object.spec.paused) && object.spec.paused", vec![]),
        ("object.spec.selector.matchLabels['app'] == 'web'", vec!["a", "b", "c"]),
        ("object.spec == object.spec && object.spec.replicas < 2", vec!["a"]),
        ("object.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')", vec!["a", "b", "c"]),
    ] {
        assert_eq!(asked(&server, DEPLOYMENTS, &filter(text)).await, found, "{text}");
    }
    for (text, why) in [
        ("object.spec.replicas", "must evaluate to a bool"),
        ("object.spec.nothing == 1", "undefined field 'nothing'"),
        ("object.spec.replicas == 'x'", "no matching overload"),
        ("object.spec.(", "Syntax error"),
    ] {
        let refused = ask(&server, DEPLOYMENTS, &filter(text)).await.failure();
        let message = refused["message"].as_str().expect("a message");
        assert_eq!(refused["code"], 400, "{refused}");
        assert!(message.starts_with("rowplane.filter: ") && message.contains(why), "{message}");
    }
    // What has no value for an object leaves it out, and says so.
    server.create("one", json!({"n": "1"})).await;
    server.create("two", json!({"n": "x"})).await;
    let answer = ask(&server, CONFIGMAPS, &filter("int(object.data.n) == 1")).await;
    assert_eq!(names(&answer.ok()), ["one"]);
    let warnings = answer.headers("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("rowplane.filter has no value for"), "{warnings:?}");
    // The budget of rules: a loop in a loop over nothing small has no value.
    let dear = "['a','b','c','d','e','f','g','h','i','j']";
    let dear = format!(
        "{dear}.all(a, {dear}.all(b, {dear}.all(c, {dear}.all(d, {dear}.all(e, {dear}.all(f, {dear}.all(g, \
         a + b + c + d + e + f + g + object.metadata.name != ''))))))) "
    );
    let answer = ask(&server, CONFIGMAPS, &filter(&dear)).await;
    assert_eq!(names(&answer.ok()), [] as [&str; 0]);
    assert!(answer.headers("warning")[0].contains("cost limit exceeded"), "{:?}", answer.headers("warning"));
    assert_eq!(names(&server.get(format!("{CONFIGMAPS}?{}", filter("nonsense("))).await.ok()).len(), 2);
}

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

async fn time_and_sql_60_a_watch_with_a_filter(setup: Setup) {
    let server = setup.start().await;
    let began = rv(&server.get(CONFIGMAPS).await.ok());
    let query = filter("'n' in object.data && int(object.data.n) > 5");
    let from = format!("/ask{CONFIGMAPS}?watch=1&resourceVersion={began}&timeoutSeconds=600&{query}");
    let mut watch = server.watch(from).await;
    let (mut numbers, mut model) = (Numbers(60), BTreeMap::<String, u64>::new());
    for _ in 0..150 {
        let name = format!("c{}", numbers.below(5));
        let before = model.get(&name).is_some_and(|n| *n > 5);
        let n = numbers.below(10);
        let after = match (model.contains_key(&name), numbers.below(5)) {
            (true, 0) => {
                server.remove(&name).await;
                model.remove(&name);
                false
            }
            (is_there, _) => {
                let data = json!({"n": n.to_string(), "x": numbers.below(1_000_000).to_string()});
                match is_there {
                    true => server.set(&name, data).await,
                    false => server.create(&name, data).await,
                };
                model.insert(name.clone(), n);
                n > 5
            }
        };
        let kind = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => continue,
        };
        watch.expect_named(kind, &name).await;
    }
    // A watch that begins with a state has those of it that match.
    let mut state = server.watch(format!("/ask{CONFIGMAPS}?watch=1&timeoutSeconds=600&{query}")).await;
    for (name, _) in model.iter().filter(|(_, n)| **n > 5) {
        state.expect_named("ADDED", name).await;
    }
    let mut fields = server.watch(format!("/ask{CONFIGMAPS}?watch=1&fieldSelector=data.n=77")).await;
    server.create("z", json!({"n": "77"})).await;
    fields.expect_named("ADDED", "z").await;
    for refused in ["rowplane.orderBy=data.n", "rowplane.count=true"] {
        let name = refused.split('=').next().expect("a name");
        let answer = ask(&server, CONFIGMAPS, &format!("watch=1&{refused}")).await;
        answer.bad_request(&format!("{name} is for lists; a watch cannot have it"));
    }
}

async fn time_and_sql_61_pages_in_an_order(setup: Setup) {
    const OBJECTS: usize = 1000;
    let server = setup.start().await;
    let create = |at: usize| {
        let rank = (at * 7919) % 10;
        let data = if rank == 9 { json!({}) } else { json!({"rank": rank.to_string()}) };
        let server = &server;
        async move { server.create(&format!("c{at:04}"), data).await }
    };
    stream::iter((0..OBJECTS).map(create)).buffer_unordered(20).count().await;
    let rank = |item: &Value| item["data"]["rank"].as_str().map(str::to_owned);
    let mut expected: Vec<Value> =
        server.get(format!("{CONFIGMAPS}?limit=2000")).await.ok()["items"].as_array().expect("items").clone();
    expected.retain(|item| item["metadata"]["name"].as_str().is_some_and(|name| name.starts_with('c')));
    // Descending, those without a rank last, equals by name.
    expected.sort_by_key(|item| {
        (
            rank(item).map_or(10, |rank| 9 - rank.parse::<i32>().expect("a number")),
            item["metadata"]["name"].to_string(),
        )
    });
    let query = "labelSelector=!kube&rowplane.orderBy=-data.rank&limit=7&fieldSelector=metadata.name!=kube-root-ca.crt";
    let (mut found, mut next) = (Vec::new(), String::new());
    for page in 0.. {
        let list = ask(&server, CONFIGMAPS, &format!("{query}{next}")).await.ok();
        found.extend(list["items"].as_array().expect("items").clone());
        // Others write meanwhile: before, behind and at the place of the page.
        if page % 20 == 0 {
            server.create(&format!("n{page:04}"), json!({"rank": "5"})).await;
            server.set("c0001", json!({"rank": "0", "page": page.to_string()})).await;
        }
        if list["metadata"].get("continue").is_none() {
            break;
        }
        assert_eq!(list["metadata"]["remainingItemCount"], OBJECTS - found.len());
        next = format!("&continue={}", token(&list));
    }
    assert_eq!(found.len(), OBJECTS);
    let names = |items: &[Value]| -> Vec<String> {
        items.iter().map(|item| item["metadata"]["name"].to_string()).collect()
    };
    assert_eq!(names(&found), names(&expected));
    let of_an_order = next;
    for other in ["", "rowplane.orderBy=data.rank", "rowplane.orderBy=-metadata.name"] {
        let refused = ask(&server, CONFIGMAPS, &format!("limit=7&{other}{of_an_order}")).await.failure();
        assert_eq!(refused["code"], 400, "{other}: {refused}");
    }
    let refused = ask(&server, CONFIGMAPS, "rowplane.orderBy=data").await;
    refused.bad_request("rowplane.orderBy: field label not supported: data");
}

async fn time_and_sql_62_counts(setup: Setup) {
    let server = setup.start().await;
    for at in 0..10 {
        server.create(&format!("c{at}"), json!({"even": (at % 2 == 0).to_string()})).await;
    }
    let even = parameter("fieldSelector", "data.even=true");
    let list = ask(&server, CONFIGMAPS, &format!("limit=1&{even}")).await.ok();
    assert_eq!((names(&list), &list["metadata"]["remainingItemCount"]), (vec!["c0".into()], &json!(4)));
    let next = format!("limit=3&continue={}&{even}", token(&list));
    let list = ask(&server, CONFIGMAPS, &next).await.ok();
    assert_eq!((names(&list).len(), &list["metadata"]["remainingItemCount"]), (3, &json!(1)));
    let list = ask(&server, CONFIGMAPS, &format!("rowplane.count=true&{even}")).await.ok();
    assert_eq!((names(&list), &list["metadata"]["remainingItemCount"]), (vec![], &json!(5)));
    let count = format!("rowplane.count=true&{}", filter("has(object.data) && 'even' in object.data"));
    let list = ask(&server, ALL_CONFIGMAPS, &count).await.ok();
    assert_eq!((names(&list), &list["metadata"]["remainingItemCount"]), (vec![], &json!(10)));
    // As upstream, the ordinary path does not count with selectors.
    let list = server.get(format!("{CONFIGMAPS}?limit=1&labelSelector=!x")).await.ok();
    assert_eq!(list["metadata"].get("remainingItemCount"), None);
}

/// The found objects of a search as `resource namespace/name`.
async fn found(client: &Client, query: &str) -> Vec<String> {
    let table = client.get(format!("/ask/search?{query}")).await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let rows = table["rows"].as_array().expect("rows");
    let text = |row: &Value, at: usize| row["cells"][at].as_str().expect("a text").to_owned();
    rows.iter().map(|row| format!("{} {}/{}", text(row, 1), text(row, 0), text(row, 2))).collect()
}

async fn time_and_sql_64_search(setup: Setup) {
    let server = setup.start().await;
    server.post(PODS, &pod("web", None, "registry/Needle:v1.2")).await.expect(201);
    server.create("needle-name", json!({})).await;
    let mut labelled = json!({"metadata": {"name": "labelled", "labels": {"needle": "x"}}});
    server.post("/api/v1/namespaces/t/secrets", &labelled).await.expect(201);
    labelled["metadata"]["name"] = "needle".into();
    server.post("/api/v1/namespaces", &labelled).await.expect(201);
    let mine = "q=NEEDLE&resources=pods,configmaps,secrets,namespaces";
    let all = ["configmaps t/needle-name", "namespaces /needle", "pods t/web", "secrets t/labelled"];
    assert_eq!(found(&server, mine).await, all);
    let everywhere = found(&server, "q=NEEDLE").await;
    assert!(all.iter().all(|row| everywhere.iter().any(|found| found == row)), "{everywhere:?}");
    assert_eq!(found(&server, "q=needle:v1.2").await, ["pods t/web"]);
    assert_eq!(
        found(&server, "q=needle&namespace=t&resources=configmaps").await,
        ["configmaps t/needle-name"]
    );
    assert_eq!(asked(&server, PODS, "rowplane.search=needle:V1").await, ["web"]);
    assert_eq!(asked(&server, PODS, "rowplane.search=containers").await, [] as [&str; 0]);
    let cut = server.get(format!("/ask/search?{mine}&limit=1")).await.ok();
    assert_eq!(
        (cut["rows"].as_array().map(Vec::len), &cut["metadata"]["remainingItemCount"]),
        (Some(1), &json!(3))
    );
    // Alice may list Pods in one namespace, and nothing else.
    let alice = server.token("alice-token");
    assert_eq!(found(&alice, mine).await, [] as [&str; 0]);
    let rules = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]);
    let role = json!({"metadata": {"name": "pods"}, "rules": rules});
    server.post(format!("{RBAC}/namespaces/t/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "pods"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pods"},
        "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201);
    assert_eq!(found(&alice, "q=needle").await, ["pods t/web"]);
    assert_eq!(server.anonymous().get("/ask/search?q=needle").await.status, 403);
    server.get("/ask/search").await.bad_request("q: give the text that is looked for");
    assert_eq!(server.get("/ask/search?q=x&resources=nothing").await.status, 400);
    assert_eq!(server.post("/ask/search?q=x", &json!({})).await.status, 405);
}

/// The text of an answer without the ages in a Table.
fn without_ages(answer: &Answer) -> String {
    let is_age = |part: &&str| {
        part.strip_suffix('s').is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    answer.text().split('"').filter(|part| !is_age(part)).collect::<Vec<_>>().join("\"")
}

async fn time_and_sql_65_the_same_without_parameters(setup: Setup) {
    const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
    const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let server = setup.start().await;
    for at in 0..5 {
        server.create(&format!("c{at}"), json!({"at": at.to_string()})).await;
    }
    let now = server.revision().await;
    let token = token(&server.get(format!("{CONFIGMAPS}?limit=2")).await.ok());
    let mut queries: Vec<String> = [
        "",
        "limit=2",
        "limit=-1",
        "limit=x",
        "resourceVersion=0",
        "resourceVersion=0&limit=2",
        "resourceVersion=x",
        "resourceVersion=99999999&timeoutSeconds=1",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "labelSelector=a%3Db",
        "labelSelector=%3D%3D",
        "fieldSelector=metadata.name%3Dc1",
        "fieldSelector=metadata.namespace%3Dt",
        "fieldSelector=x",
        "watch=1&resourceVersionMatch=Exact&resourceVersion=1",
        "watch=1&resourceVersion=x",
        "pretty=1",
    ]
    .map(str::to_owned)
    .into();
    for at in [now, now - 2] {
        queries.push(format!("resourceVersion={at}"));
        queries.push(format!("resourceVersion={at}&resourceVersionMatch=Exact"));
        queries.push(format!("resourceVersion={at}&resourceVersionMatch=Exact&limit=1"));
        queries.push(format!("watch=1&resourceVersion={at}&timeoutSeconds=1"));
    }
    queries.push("limit=2&continue=x".to_owned());
    for path in
        [CONFIGMAPS, ALL_CONFIGMAPS, "/api/v1/namespaces/t/configmaps/c1", "/api/v1", "/version", "/nothing"]
    {
        for query in &queries {
            // A second for each, so that they are in one form only.
            let is_slow = query.contains("timeoutSeconds");
            let forms = [
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
                TABLE,
                PARTIAL,
            ];
            for accept in forms.into_iter().take(if is_slow { 1 } else { forms.len() }) {
                let get = |prefix: &str| server.get(format!("{prefix}{path}?{query}")).accept(accept);
                let (plain, asked) = (get("").await, get("/ask").await);
                assert_eq!(asked.status, plain.status, "{path}?{query} as {accept}: {}", asked.text());
                // Tokens are sealed for the list, and the same list has the same one.
                assert_eq!(without_ages(&asked), without_ages(&plain), "{path}?{query} as {accept}");
            }
        }
    }
    let next = format!("limit=2&continue={token}");
    assert_eq!(
        ask(&server, CONFIGMAPS, &next).await.text(),
        server.get(format!("{CONFIGMAPS}?{next}")).await.text()
    );
    for path in ["/ask", "/ask/ask/api/v1/pods", "/ask/asof/rv-1/api/v1/pods", "/asking/api/v1/pods"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    // Writes go through.
    server.post(format!("/ask{CONFIGMAPS}"), &json!({"metadata": {"name": "w"}})).await.expect(201);
    server.get(format!("{CONFIGMAPS}/w")).await.ok();
}

async fn orders_are_those_of_values(setup: Setup) {
    const CLAIMS: &str = "/api/v1/namespaces/t/persistentvolumeclaims";
    let server = setup.start().await;
    for (name, replicas) in [("a", 10), ("b", 9), ("c", 100), ("d", 9)] {
        server.post(DEPLOYMENTS, &deployment(name, json!({"replicas": replicas}))).await.expect(201);
    }
    let by = |order: &str| format!("rowplane.orderBy={order}");
    assert_eq!(asked(&server, DEPLOYMENTS, &by("spec.replicas")).await, ["b", "d", "a", "c"]);
    assert_eq!(asked(&server, DEPLOYMENTS, &by("-spec.replicas,-metadata.name")).await, ["c", "a", "d", "b"]);
    assert_eq!(asked(&server, DEPLOYMENTS, &by("spec.paused,-metadata.name")).await, ["d", "c", "b", "a"]);
    for (name, size) in [("a", "1Gi"), ("b", "999Mi"), ("c", "1500M"), ("d", "2")] {
        let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}});
        server.post(CLAIMS, &claim).await.expect(201);
    }
    assert_eq!(asked(&server, CLAIMS, &by("spec.resources.requests.storage")).await, ["d", "b", "a", "c"]);
    let large = filter("quantity(object.spec.resources.requests['storage']).isGreaterThan(quantity('1Gi'))");
    assert_eq!(asked(&server, CLAIMS, &large).await, ["c"]);
}

async fn custom_resources_by_their_schema(setup: Setup) {
    let server = setup.start().await;
    let definition = json!({
        "metadata": {"name": "wheels.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "wheels", "kind": "Wheel"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "on": {"type": "boolean", "default": true},
                    "port": {"x-kubernetes-int-or-string": true},
                    "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                    "list": {"type": "array", "items": {"type": "string"}}}}}}}}]},
    });
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let wheels = "/apis/example.com/v1/namespaces/t/wheels";
    server.get(wheels).await.ok();
    for (name, size, port) in [("a", 3, json!("http")), ("b", 20, json!(80)), ("c", 1, json!("8"))] {
        let wheel = json!({"apiVersion": "example.com/v1", "kind": "Wheel", "metadata": {"name": name},
            "spec": {"size": size, "port": port, "tags": {"x.y/z": name}, "list": [name]}});
        server.post(wheels, &wheel).await.expect(201);
    }
    let select = |text: &str| parameter("fieldSelector", text);
    assert_eq!(asked(&server, wheels, &select("spec.size=20")).await, ["b"]);
    assert_eq!(asked(&server, wheels, &select("spec.on=true,spec.tags.x.y/z!=a")).await, ["b", "c"]);
    assert_eq!(asked(&server, wheels, "rowplane.orderBy=spec.size").await, ["c", "a", "b"]);
    assert_eq!(asked(&server, wheels, "rowplane.orderBy=-spec.port").await, ["a", "b", "c"]);
    assert_eq!(
        asked(&server, wheels, &filter("object.spec.size > 2 && 'b' in object.spec.list")).await,
        ["b"]
    );
    assert_eq!(asked(&server, wheels, "rowplane.orderBy=-metadata.name&limit=2").await, ["c", "b"]);
    ask(&server, wheels, &select("spec.list=a")).await.bad_request("field label not supported: spec.list");
}

async fn the_past_through_both_doors(setup: Setup) {
    let server = setup.start().await;
    for (name, n) in [("a", "2"), ("b", "1"), ("c", "3")] {
        server.create(name, json!({"n": n})).await;
    }
    let then = server.revision().await;
    server.set("a", json!({"n": "9"})).await;
    server.remove("b").await;
    let past = async |path: &str, query: &str| {
        let answer = server.get(format!("/asof/rv-{then}/ask{path}?{query}")).await;
        assert!(answer.header("rowplane-as-of").is_some(), "{}", answer.text());
        answer
    };
    let list = past(CONFIGMAPS, "rowplane.orderBy=data.n&limit=2&fieldSelector=data.n!%3D").await.ok();
    assert_eq!((names(&list), rv(&list)), (vec!["b".into(), "a".into()], then));
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
    let next = format!("rowplane.orderBy=data.n&limit=2&fieldSelector=data.n!%3D&continue={}", token(&list));
    assert_eq!(names(&past(CONFIGMAPS, &next).await.ok()), ["c"]);
    assert_eq!(ask(&server, CONFIGMAPS, &next).await.status, 400);
    let without = past(CONFIGMAPS, "rowplane.orderBy=data.n").await;
    without.bad_request("rowplane.orderBy: a state that is not in memory is ordered by pages: give a limit");
    let wanted = filter("has(object.data) && 'n' in object.data && object.data.n != '2'");
    assert_eq!(names(&past(CONFIGMAPS, &wanted).await.ok()), ["b", "c"]);
    let count = past(CONFIGMAPS, &format!("rowplane.count=true&{wanted}")).await.ok();
    assert_eq!(count["metadata"]["remainingItemCount"], 2);
    let table = past("/search", "q=b&resources=configmaps&namespace=t").await.ok();
    let rows = table["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["cells"] == json!(["t", "configmaps", "b"])), "{table}");
    let mut watch =
        server.watch(format!("/asof/rv-{then}/ask{CONFIGMAPS}?watch=1&timeoutSeconds=600&{wanted}")).await;
    watch.expect_named("ADDED", "b").await;
    watch.expect_named("ADDED", "c").await;
}

async fn nothing_is_deleted_by_a_filter(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    for query in ["rowplane.filter=true", "rowplane.search=x", "rowplane.count=true"] {
        let refused = server.delete(format!("/ask{CONFIGMAPS}?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {}", refused.text());
    }
    assert_eq!(server.delete(format!("/ask{CONFIGMAPS}?fieldSelector=data.x%3Dy")).await.status, 400);
    server.get(format!("{CONFIGMAPS}/a")).await.ok();
}

/// The output of the program as the admin, and its exit code.
async fn printed(setup: &Setup, arguments: &[&str]) -> (String, i32) {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.args(arguments).env("KUBECONFIG", setup.file("admin.kubeconfig")).env("TZ", "UTC");
    let output = command.output().await.expect("it runs");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text")).concat();
    (text, output.status.code().expect("a code"))
}

async fn the_command_line_finds_and_follows(setup: Setup) {
    let server = setup.start().await;
    server.create("a-needle", json!({"n": "1"})).await;
    let then = server.revision().await;
    server.set("a-needle", json!({"n": "2"})).await;
    let head = "NAMESPACE  RESOURCE    NAME\n";
    let row = "t          configmaps  a-needle\n";
    assert_eq!(printed(&setup, &["find", "NEEDLE", "--kinds", "cm"]).await, (format!("{head}{row}"), 0));
    let past = ["find", "needle", "-n", "t", "--at", &format!("rv-{then}"), "-o", "name"];
    assert_eq!(printed(&setup, &past).await, ("configmaps/a-needle\n".to_owned(), 0));
    let (text, code) = printed(&setup, &["find", "nowhere-to-be-found", "-n", "t"]).await;
    assert_eq!((text.lines().count(), code), (1, 1), "{text}");
    let (text, code) = printed(&setup, &["changes", "-n", "t", "--since", "1h", "--kinds", "cm"]).await;
    assert_eq!(code, 0, "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("a-needle")).collect();
    assert!(lines[0].contains("ADDED     t configmaps/a-needle  kubernetes-admin"), "{text}");
    assert!(lines[1].contains("MODIFIED  t configmaps/a-needle") && lines[1].ends_with("  data.n"), "{text}");
    let (text, _) = printed(&setup, &["changes", "-n", "t", "--since", "1h", "-o", "json"]).await;
    assert!(text.contains("\"previous\":{"), "{text}");
}
