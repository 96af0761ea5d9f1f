//! Servers as operators run them: replicas on one database, restarts, and databases that must be refused.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use http::StatusCode;
use kube::config::Kubeconfig;
use rowplane::identity::ServerIdentity;
use serde_json::{Value, json};

use crate::support::client::{Client as Http, PATIENCE, Protocol};
use crate::support::database::Database;
use crate::support::postgres::{Schema, execute};
use crate::support::process::{Installation, Process};
use crate::support::rest::{Client, Watch, revision};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Two servers on one database. Each has its own data directory, and so its own CA and admin.
struct Replicas {
    a: Replica,
    b: Replica,
    schema: Schema,
}

struct Replica {
    process: Process,
    client: Client,
    installation: Installation,
}

impl Replicas {
    async fn start() -> Self {
        Self::start_with(|installation| installation).await
    }

    async fn start_with(settings: fn(Installation) -> Installation) -> Self {
        let schema = Schema::create().await;
        let start = || Replica::start(settings(Installation::postgres(&schema)));
        let (a, b) = tokio::join!(start(), start());
        Self { a, b, schema }
    }

    fn clients(&self) -> [&Client; 2] {
        [&self.a.client, &self.b.client]
    }
}

impl Replica {
    async fn start(installation: Installation) -> Self {
        let process = installation.start().await;
        Self { process, client: installation.client().await, installation }
    }
}

fn configmap(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

async fn create(client: &Client, name: &str) -> u64 {
    revision(&client.post(CONFIGMAPS, &configmap(name, "0")).await.unwrap().ok())
}

async fn list(client: &Client, query: &str) -> Value {
    client.get(&format!("{CONFIGMAPS}?{query}")).await.unwrap().ok()
}

async fn watch(client: &Client, from: u64) -> Watch {
    client.watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion={from}")).await.unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// `kubectl get leases -n kube-system -l apiserver.kubernetes.io/identity` shows both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_replica_holds_a_lease() {
    let replicas = Replicas::start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases\
                  ?labelSelector=apiserver.kubernetes.io/identity";
    let mut holders = BTreeSet::new();
    let mut watch = replicas.a.client.watch(&format!("{leases}&watch=1")).await.unwrap();
    while holders.len() < 2 {
        let lease = watch.event().await["object"].clone();
        let hostname = lease["metadata"]["labels"]["kubernetes.io/hostname"].as_str().unwrap().to_owned();
        holders.insert((hostname, lease["metadata"]["name"].as_str().unwrap().to_owned()));
    }
    let expected = [&replicas.a, &replicas.b].map(|replica| {
        let hostname = format!("server-{}", replica.installation.port());
        (hostname.clone(), ServerIdentity::of_host(&hostname).id().to_owned())
    });
    assert_eq!(holders, BTreeSet::from(expected));
}

/// As in docker-compose.yml: the first server creates the CA, and each admin is valid for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_may_share_a_data_directory() {
    let schema = Schema::create().await;
    let datastore = format!("--datastore={}", schema.url());
    let a = Installation::sqlite().with(&datastore);
    let b = a.beside().with(&datastore);
    let (a_runs, b_runs) = tokio::join!(a.start(), b.start());
    // Either server may have written the kubeconfig last; only the address differs.
    let kubeconfig = std::fs::read_to_string(a.kubeconfig()).unwrap();
    let mut clients = Vec::new();
    for server in [&a, &b] {
        let path = a.dir().join(format!("{}.kubeconfig", server.port()));
        let address = |line: &str| line.trim_start().starts_with("server: ");
        let line = format!("    server: https://127.0.0.1:{}", server.port());
        let lines = kubeconfig.lines().map(|old| if address(old) { &line } else { old });
        std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
        clients.push(Client::of(&path).await);
    }
    create(&clients[0], "one").await;
    assert_eq!(names(&list(&clients[1], "").await), ["one"]);
    for process in [a_runs, b_runs] {
        process.terminate().await;
        assert_eq!(process.end().await.code(), Some(0));
    }
    // The mark that both servers have written is a single one.
    let _process = b.start().await;
    assert_eq!(names(&list(&clients[1], "").await), ["one"]);
}

/// Two servers on one host that get no other settings than the port and the location of the data.
struct OneHost {
    installations: [Installation; 2],
    _schema: Schema,
}

impl OneHost {
    async fn client(&self, n: usize) -> Client {
        let installation = &self.installations[n];
        // A shared kubeconfig names the server that has written it last.
        Client::at(&installation.kubeconfig(), &format!("https://127.0.0.1:{}", installation.port())).await
    }

    /// The uid and the holder of each server's lease, by the server's name.
    async fn leases(&self) -> BTreeMap<String, (String, String)> {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases\
                      ?labelSelector=apiserver.kubernetes.io/identity";
        let all = self.client(0).await.get(leases).await.unwrap().ok();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let lease = |lease: &Value| {
            let hostname = text(&lease["metadata"]["labels"]["kubernetes.io/hostname"]);
            assert_eq!(lease["metadata"]["name"], ServerIdentity::of_host(&hostname).id());
            (hostname, (text(&lease["metadata"]["uid"]), text(&lease["spec"]["holderIdentity"])))
        };
        all["items"].as_array().unwrap().iter().map(lease).collect()
    }

    /// No write is refused, and the other server sees each of them.
    async fn both_write(&self, round: &str) {
        let clients = [self.client(0).await, self.client(1).await];
        for n in 0..20 {
            let name = format!("{round}-{n:02}");
            create(&clients[n % 2], &name).await;
            clients[(n + 1) % 2].get(&format!("{CONFIGMAPS}/{name}")).await.unwrap().ok();
        }
    }

    async fn start(&self) -> [Option<Process>; 2] {
        let [one, other] = &self.installations;
        let (one, other) = tokio::join!(one.start(), other.start());
        [Some(one), Some(other)]
    }
}

async fn servers_of_one_host_need_no_names(one: Installation, other: Installation, schema: Schema) {
    let servers = OneHost { installations: [one.nameless(), other.nameless()], _schema: schema };
    let mut runs = servers.start().await;
    servers.both_write("first").await;
    let leases = servers.leases().await;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let with_port = |n: usize| format!("{host}-{}", servers.installations[n].port());
    let late = (0..2).find(|n| leases.contains_key(&with_port(*n))).expect("one is called by its port too");
    let name = |n: usize| if n == late { with_port(n) } else { host.clone() };
    assert_eq!(leases.keys().cloned().collect::<BTreeSet<_>>(), BTreeSet::from([name(0), name(1)]));

    // A server that was killed gets its name back at once.
    for n in [late, 1 - late] {
        runs[n].take().expect("it runs").kill().await;
        runs[n] = Some(servers.installations[n].start().await);
        servers.both_write(&format!("killed-{n}")).await;
        let again = servers.leases().await;
        assert_eq!(again.len(), 2, "{again:?}");
        assert_eq!(again[&name(n)].0, leases[&name(n)].0, "the lease is the same");
        assert_ne!(again[&name(n)].1, leases[&name(n)].1, "the process is another");
    }

    // The same holds for one that has ended, even if the other one starts first.
    for run in &mut runs {
        let run = run.take().expect("it runs");
        run.terminate().await;
        assert_eq!(run.end().await.code(), Some(0));
    }
    let _first = servers.installations[late].start().await;
    let _second = servers.installations[1 - late].start().await;
    servers.both_write("again").await;
    assert_eq!(
        servers.leases().await.into_keys().collect::<BTreeSet<_>>(),
        BTreeSet::from([name(0), name(1)])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_one_host_with_a_data_directory_each_need_no_names() {
    let schema = Schema::create().await;
    let (one, other) = (Installation::postgres(&schema), Installation::postgres(&schema));
    servers_of_one_host_need_no_names(one, other, schema).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_one_host_that_share_a_data_directory_need_no_names() {
    let schema = Schema::create().await;
    let one = Installation::postgres(&schema);
    let other = one.beside().with(&format!("--datastore={}", schema.url()));
    servers_of_one_host_need_no_names(one, other, schema).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_26_a_write_is_in_the_next_list_and_get_of_the_other() {
    let replicas = Replicas::start().await;
    let [a, b] = replicas.clients();
    for n in 0..50 {
        let (writer, reader) = if n % 2 == 0 { (a, b) } else { (b, a) };
        let name = format!("c-{n:02}");
        let written = create(writer, &name).await;
        let listed = list(reader, "").await;
        assert_eq!(names(&listed).last(), Some(&name.as_str()));
        assert!(revision(&listed) >= written);

        let path = format!("{CONFIGMAPS}/{name}");
        let updated = revision(&writer.put(&path, &configmap(&name, "1")).await.unwrap().ok());
        assert_eq!(revision(&reader.get(&path).await.unwrap().ok()), updated);
        let newer =
            list(reader, &format!("resourceVersion={updated}&resourceVersionMatch=NotOlderThan")).await;
        assert!(revision(&newer) >= updated);
        if n % 5 == 0 {
            writer.delete(&path, None).await.unwrap().ok();
            assert_eq!(reader.get(&path).await.unwrap().status, StatusCode::NOT_FOUND);
            assert!(!names(&list(reader, "").await).contains(&name.as_str()));
        }
    }
}

/// What a user may do, and who he is, ends on the other server too: also where it goes ahead by what it knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_or_an_account_that_ends_on_one_writes_nothing_on_the_other() {
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let replicas = Replicas::start().await;
    let [a, b] = replicas.clients();
    let kubeconfig = |replica: &Replica| Kubeconfig::read_from(replica.installation.kubeconfig()).unwrap();
    let rule =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]});
    a.post(&format!("{RBAC}/roles"), &json!({"metadata": {"name": "writer"}, "rules": [rule]}))
        .await
        .unwrap()
        .ok();
    create(a, "there").await;
    for round in 0..40 {
        let name = format!("w-{round}");
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        });
        let account = json!({"metadata": {"name": name}});
        a.post(ACCOUNTS, &account).await.unwrap().ok();
        b.post(&format!("{RBAC}/rolebindings"), &binding).await.unwrap().ok();
        let issued = b.post(&format!("{ACCOUNTS}/{name}/token"), &json!({})).await.unwrap().ok();
        let token = issued["status"]["token"].as_str().unwrap();
        let robot = Http::of_token(&kubeconfig(&replicas.a), Some(token));
        robot.post(CONFIGMAPS, &configmap(&name, "0")).await.expect(201);
        let (gone, status) = match round % 2 {
            0 => (format!("{ACCOUNTS}/{name}"), 401),
            _ => (format!("{RBAC}/rolebindings/{name}"), 403),
        };
        b.delete(&gone, None).await.unwrap().ok();
        let item = |name: &str| format!("{CONFIGMAPS}/{name}");
        let answer = match round % 8 {
            0 | 1 => robot.post(CONFIGMAPS, &configmap(&format!("late-{round}"), "0")).await,
            2 | 3 => robot.delete(item(&name)).await,
            4 | 5 => robot.post(CONFIGMAPS, &configmap("there", "0")).await,
            _ => robot.delete(item("missing")).await,
        };
        assert_eq!(answer.status, status, "round {round}: {}", answer.text());
    }
    let listed = list(b, "").await;
    let late: Vec<_> = names(&listed).into_iter().filter(|name| name.starts_with("late")).collect();
    assert!(late.is_empty(), "{late:?}");
    assert_eq!(names(&listed).iter().filter(|name| name.starts_with("w-")).count(), 40);
}

/// Over a restart, too: what one server signed, every other one accepts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_34_35_a_token_gives_the_same_page_on_the_other_and_after_a_restart_of_all() {
    let replicas = Replicas::start().await;
    for n in 0..7 {
        create(&replicas.a.client, &format!("c-{n}")).await;
    }
    let first = list(&replicas.a.client, "limit=3").await;
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    for client in replicas.clients() {
        create(client, &format!("c-3-{}", names(&list(client, "").await).len())).await;
    }
    let next = format!("limit=3&continue={token}");
    let page = list(&replicas.a.client, &next).await;
    assert_eq!(names(&page), ["c-3", "c-4", "c-5"]);
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let other = list(&replicas.b.client, &next).await;
    assert_eq!((other["items"].clone(), revision(&other)), (page["items"].clone(), revision(&page)));

    let Replicas { a, b, schema: _schema } = replicas;
    a.process.kill().await;
    b.process.terminate().await;
    assert_eq!(b.process.end().await.code(), Some(0));
    let _process = b.installation.start().await;
    let again = list(&b.client, &next).await;
    assert_eq!((again["items"].clone(), revision(&again)), (page["items"].clone(), revision(&page)));
    let mut foreign = token.into_bytes();
    let middle = foreign.len() / 2;
    foreign[middle] = if foreign[middle] == b'A' { b'B' } else { b'A' };
    let foreign = format!("{CONFIGMAPS}?continue={}", String::from_utf8(foreign).unwrap());
    assert_eq!(b.client.get(&foreign).await.unwrap().status, StatusCode::BAD_REQUEST);
}

/// Each of them has made a new key, of which the other one has not heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_key_that_is_new_is_known_on_the_other() {
    let mut replicas = Replicas::start().await;
    for n in 0..7 {
        create(&replicas.a.client, &format!("c-{n}")).await;
    }
    for turn in 0..2 {
        execute(&replicas.schema.url(), "UPDATE token_keys SET created_at = created_at - 90000").await;
        let Replicas { a, b, schema } = replicas;
        let (Replica { process, installation, .. }, stays) = if turn == 0 { (a, b) } else { (b, a) };
        process.terminate().await;
        process.end().await;
        let starts = Replica::start(installation).await;
        let (a, b) = if turn == 0 { (starts, stays) } else { (stays, starts) };
        replicas = Replicas { a, b, schema };
        let [a, b] = replicas.clients();
        let (signs, reads) = if turn == 0 { (a, b) } else { (b, a) };
        let token = list(signs, "limit=3").await["metadata"]["continue"].as_str().unwrap().to_owned();
        let page = list(reads, &format!("limit=3&continue={token}")).await;
        assert_eq!(names(&page), ["c-3", "c-4", "c-5"]);
    }
}

/// A failover takes a new key back, of which a server has signed tokens already. The next key is another one; who has such a
/// token begins anew, and the server learns of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_key_that_was_taken_back_has_expired() {
    let replicas = Replicas::start().await;
    for n in 0..7 {
        create(&replicas.a.client, &format!("c-{n}")).await;
    }
    let Replicas { a, b, schema } = replicas;
    execute(&schema.url(), "UPDATE token_keys SET created_at = created_at - 90000").await;
    for replica in [&a, &b] {
        replica.process.terminate().await;
    }
    a.process.end().await;
    b.process.end().await;
    let a = Replica::start(a.installation).await;
    let token = list(&a.client, "limit=3").await["metadata"]["continue"].as_str().unwrap().to_owned();
    // As after a failover, on another timeline.
    let other = "UPDATE token_keys SET id = id + 1, secret = decode(md5('a') || md5('b'), 'hex') \
                 WHERE id = (SELECT MAX(id) FROM token_keys)";
    execute(&schema.url(), other).await;
    let b = Replica::start(b.installation).await;
    let page = b.client.get(&format!("{CONFIGMAPS}?limit=3&continue={token}")).await.unwrap();
    assert_eq!(page.status, 410, "{}", page.body);
    let learned = async {
        loop {
            let token = list(&a.client, "limit=3").await["metadata"]["continue"].as_str().unwrap().to_owned();
            let page = b.client.get(&format!("{CONFIGMAPS}?limit=3&continue={token}")).await.unwrap();
            if page.status == 200 {
                break names(&page.body).join(" ");
            }
            assert_eq!(page.status, 410, "{}", page.body);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let names = tokio::time::timeout(PATIENCE, learned).await.expect("the server learns of the new key");
    assert_eq!(names, "c-3 c-4 c-5");
}

/// Watches on both servers report the writes to both, each change once, in the order of revisions, with the same
/// content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_write_and_both_watch() {
    const WRITERS: usize = 8;
    const WRITES: usize = 40;
    let replicas = Replicas::start_with(Installation::without_heartbeats).await;
    let [a, b] = replicas.clients();
    let start = revision(&list(a, "").await);
    let mut watches = [watch(a, start).await, watch(b, start).await];

    let writer = |n: usize| {
        let client = replicas.clients()[n % 2];
        async move {
            let mut revisions = Vec::new();
            for m in 0..WRITES {
                revisions.push(create(client, &format!("c-{n}-{m}")).await);
            }
            assert!(revisions.is_sorted(), "{revisions:?}");
            revisions
        }
    };
    let answered: Vec<u64> = join_all((0..WRITERS).map(writer)).await.concat();
    let expected: Vec<u64> = (start + 1..).take(WRITERS * WRITES).collect();
    assert_eq!(answered.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(), expected);

    let mut told = Vec::new();
    for watch in &mut watches {
        let mut events = Vec::new();
        while events.len() < expected.len() {
            let event = watch.event().await;
            assert_eq!(event["type"], "ADDED");
            events.push((revision(&event["object"]), event["object"]["metadata"]["name"].clone()));
        }
        assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), expected);
        told.push(events);
    }
    assert_eq!(told[0], told[1]);
}

/// Every version of an object has one successor, whichever server the update is sent to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_object_counted_up_on_both() {
    const EACH: usize = 15;
    let replicas = Replicas::start().await;
    create(&replicas.a.client, "counter").await;
    let path = format!("{CONFIGMAPS}/counter");
    let count = |client: &Client| {
        let (client, path) = (client.clone(), path.clone());
        async move {
            let mut done = 0;
            while done < EACH {
                let mut counter = client.get(&path).await.unwrap().ok();
                let value: usize = counter["data"]["value"].as_str().unwrap().parse().unwrap();
                counter["data"]["value"] = (value + 1).to_string().into();
                match client.put(&path, &counter).await.unwrap().status {
                    StatusCode::OK => done += 1,
                    status => assert_eq!(status, StatusCode::CONFLICT),
                }
            }
        }
    };
    let [a, b] = replicas.clients();
    tokio::join!(count(a), count(a), count(b), count(b));
    let counter = a.get(&path).await.unwrap().ok();
    assert_eq!(counter["data"]["value"], (4 * EACH).to_string());
}

/// And the loss of a server without any notice: its clients go on at the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_69_clients_of_a_server_that_goes_resume_on_the_other() {
    for killed in [false, true] {
        let Replicas { a, b, schema: _schema } = Replicas::start().await;
        let start = revision(&list(&a.client, "").await);
        let mut watch_on_a = watch(&a.client, start).await;
        create(&a.client, "one").await;
        let seen = revision(&watch_on_a.event().await["object"]);

        let mut watch_on_b = watch(&b.client, start).await;
        create(&a.client, "two").await;
        if killed {
            a.process.kill().await;
            while let Ok(Some(_)) = watch_on_a.next().await {}
        } else {
            a.process.terminate().await;
            // Earlier writes may still be reported; then the watch ends properly.
            while let Some(event) = watch_on_a.next().await.expect("a clean end") {
                assert!(
                    event["type"] == "BOOKMARK" || event["object"]["metadata"]["name"] == "two",
                    "{event}"
                );
            }
            assert_eq!(a.process.end().await.code(), Some(0));
        }
        create(&b.client, "three").await;
        let mut resumed = watch(&b.client, seen).await;
        for (watch, names) in
            [(&mut resumed, &["two", "three"][..]), (&mut watch_on_b, &["one", "two", "three"])]
        {
            for name in names {
                assert_eq!(watch.event().await["object"]["metadata"]["name"], *name);
            }
        }
        assert_eq!(names(&list(&b.client, "").await), ["one", "three", "two"]);
    }
}

/// On SQLite: every kind of watch ends cleanly and within the grace, even where nobody reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_69_watches_end_cleanly_at_sigterm() {
    // Only a stuck server would use up this grace period.
    let installation = Installation::sqlite().with("--shutdown-grace-period=1h");
    let server = installation.start().await;
    let client = installation.client().await;
    let start = revision(&list(&client, "").await);
    let mut idle = watch(&client, start).await;
    let mut busy = watch(&client, start).await;
    let all = "/api/v1/configmaps?watch=1&allowWatchBookmarks=true&sendInitialEvents=true\
               &resourceVersionMatch=NotOlderThan";
    let mut streaming = client.watch(all).await.unwrap();
    assert_eq!(streaming.event().await["type"], "BOOKMARK");
    create(&client, "one").await;
    assert_eq!(busy.event().await["type"], "ADDED");

    server.terminate().await;
    for watch in [&mut idle, &mut busy, &mut streaming] {
        while let Some(event) = watch.next().await.expect("a clean end") {
            assert_ne!(event["type"], "ERROR", "{event}");
        }
    }
    // Connections in keep-alive do not delay the server's end.
    assert_eq!(server.end().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_has_one_server() {
    let first = Installation::sqlite();
    let file = first.dir().join("state.db");
    let server = first.start().await;
    let second = Installation::sqlite().with(&format!("--datastore=sqlite:{}", file.display()));
    assert_refused(&second, &[&file.display().to_string(), "server"]).await;
    assert!(!second.kubeconfig().exists());
    // The refusal did not harm the first server; after its end the file is free.
    create(&first.client().await, "one").await;
    server.kill().await;
    let _server = second.start().await;
    assert_eq!(names(&list(&second.client().await, "").await), ["one"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    // The port is reserved, but nobody listens on it.
    let silent = Installation::sqlite();
    let url = format!("postgres://me:secret@127.0.0.1:{}/state", silent.port());
    let installation = Installation::sqlite().with(&format!("--datastore={url}"));
    let text = assert_refused(&installation, &[&format!("127.0.0.1:{}", silent.port())]).await;
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_schema_is_refused_in_one_line() {
    let newer = "INSERT INTO _sqlx_migrations \
                 SELECT 9999, description, installed_on, success, checksum, execution_time \
                 FROM _sqlx_migrations WHERE version = 1";
    let foreign = "DROP TABLE _sqlx_migrations";
    let half_done = "UPDATE _sqlx_migrations SET success = FALSE WHERE version = 1";
    for (statement, parts) in [
        (newer, &["9999", "newer"][..]),
        (foreign, &["not rowplane's", "already exists"]),
        (half_done, &["migration 1 was left half done"]),
    ] {
        for database in [Database::sqlite(), Database::postgres().await] {
            database.open().await.close().await;
            database.execute(statement).await;
            let installation = match &database {
                Database::Postgres(schema) => Installation::postgres(schema),
                database => Installation::sqlite().with(&format!("--datastore={}", database.url())),
            };
            assert_refused(&installation, parts).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_database_is_refused_in_one_line() {
    let installation = Installation::sqlite();
    let file = installation.dir().join("state.db");
    std::fs::write(&file, "Dear diary, ".repeat(1000)).unwrap();
    assert_refused(&installation, &[&file.display().to_string(), "not a database"]).await;
}

/// Metrics have upstream's names if upstream has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_their_names() {
    let installation =
        Installation::sqlite().with("--compaction-interval=100ms").with("--compaction-history=100ms");
    let _server = installation.start().await;
    let client = installation.client().await;
    let mut watch = watch(&client, revision(&list(&client, "").await)).await;
    create(&client, "a").await;
    assert_eq!(watch.event().await["type"], "ADDED");
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).unwrap();
    let client = support::client::Client::of_certificate(&kubeconfig, Protocol::Any);
    // The last metric exists after the first compaction.
    let text = loop {
        let text = client.get("/metrics").await.text();
        if text.contains("\nrowplane_compaction_lag_revisions ") {
            break text;
        }
    };
    for (name, kind, line) in [
        ("apiserver_request_total", "counter", "verb=\"POST\""),
        ("apiserver_request_duration_seconds", "histogram", "_bucket{"),
        ("apiserver_watch_events_total", "counter", "{group=\"\",version=\"v1\",resource=\"configmaps\"} 1"),
        ("apiserver_longrunning_requests", "gauge", "verb=\"WATCH\""),
        ("apiserver_current_inflight_requests", "gauge", "{request_kind=\"readOnly\"}"),
        ("kubernetes_build_info", "gauge", "git_version=\"v1.37"),
        ("process_resident_memory_bytes", "gauge", " "),
        ("process_start_time_seconds", "gauge", " "),
        ("rowplane_commit_duration_seconds", "histogram", "_count"),
        ("rowplane_commit_batch_size", "histogram", "_count"),
        ("rowplane_cache_lag_revisions", "gauge", " "),
        ("rowplane_compaction_backlog_revisions", "gauge", " "),
        ("rowplane_compaction_lag_revisions", "gauge", " "),
    ] {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}:\n{text}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}:\n{text}");
        let has = |found: &str| found.strip_prefix(name).is_some_and(|rest| rest.contains(line));
        assert!(text.lines().any(has), "{name} {line}:\n{text}");
    }
}

/// The server fails with one line on standard error (besides warnings) that contains these parts.
async fn assert_refused(installation: &Installation, parts: &[&str]) -> String {
    let (code, text) = installation.refused().await;
    assert_eq!(code, Some(1), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(" WARN ")).collect();
    assert!(matches!(lines[..], [line] if line.starts_with("rowplane: ")), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    text
}
