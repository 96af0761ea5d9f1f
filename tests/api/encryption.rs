//! Encryption at rest (assertions 105 to 109 of `docs/spec/auth.md`).

mod kms;

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::Parser as _;
use futures_util::TryStreamExt as _;
use http::Method;
use rowplane::audit::config::DatabaseConfig;
use rowplane::cli::args::{Cli, Command};
use rowplane::cli::auth::answer;
use rowplane::cli::keys::{KeyArgs, Keys};
use rowplane::cli::status::{WaitMigrations, inventory};
use rowplane::cli::transfer::{backup, restore};
use rowplane::codec::object::Draft;
use rowplane::codec::sealed;
use rowplane::encryption::Config;
use rowplane::encryption::configuration::Reload;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::server::datastore::Datastore;
use rowplane::storage::{Backend, Change, Expect, Format, Key, Mutation, Scan};
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv};

const SECRETS: &str = "/api/v1/namespaces/t/secrets";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const BOX: &str = "k8s:enc:secretbox:v1:";

on_every_store! {
    auth_105_106_secrets_are_sealed_and_keys_rotate,
    auth_107_a_value_opens_in_its_own_row_only,
    everything_may_be_sealed,
    a_key_that_is_missing_lets_nobody_delete_what_it_seals,
}

on_both_databases! {
    auth_106_a_migration_seals_all_rows_with_the_new_key,
}

/// A provider with these keys. A key is made of its name.
fn keys(kind: &str, names: &[&str]) -> String {
    let key = |name: &&str| {
        let secret = STANDARD.encode(name.repeat(32).as_bytes().first_chunk::<32>().expect("32 bytes"));
        format!("{{name: {name}, secret: {secret}}}")
    };
    let keys: Vec<String> = names.iter().map(key).collect();
    format!("{{{kind}: {{keys: [{}]}}}}", keys.join(", "))
}

const IDENTITY: &str = "{identity: {}}";

/// Servers encrypt these resources from their next start on, or when they read the file again.
fn configure(setup: &mut Setup, resources: &str, providers: &[&str]) {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [{resources}]\n  providers: [{}]\n",
        providers.join(", ")
    );
    let file = setup.file("encryption.yaml");
    std::fs::write(&file, text).expect("write the configuration");
    setup.encryption = Some(Config { file, reload: Reload::Yes });
}

fn secret(name: &str) -> Value {
    json!({"metadata": {"name": name}, "stringData": {"password": "open sesame"}})
}

impl TestServer {
    async fn secret(&self, name: &str) -> Value {
        self.post(SECRETS, &secret(name)).await.expect(201)
    }

    /// Writes an object back as it was read.
    async fn replace(&self, path: &str) -> (Value, Value) {
        let found = self.get(path).await.ok();
        let replaced = self.request(Method::PUT, path).json(&found).await.ok();
        (found, replaced)
    }
}

/// The stored bytes of a live object.
async fn stored(backend: &dyn Backend, plural: &str, name: &str) -> Bytes {
    let id = backend.resource_ids(&[GroupResource::new("", plural)]).await.expect("an id")[0];
    let now = backend.clock().await.expect("clock").revision;
    let rows = backend.scan(Scan::all(id), now).await.expect("rows");
    let rows: Vec<_> = rows.try_collect().await.expect("rows");
    rows.into_iter().find(|row| &*row.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

#[track_caller]
fn starts(value: &[u8], prefix: &str) {
    let found = String::from_utf8_lossy(&value[..value.len().min(60)]).into_owned();
    assert!(value.starts_with(prefix.as_bytes()), "{found:?} does not begin with {prefix:?}");
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

async fn auth_105_106_secrets_are_sealed_and_keys_rotate(mut setup: Setup) {
    // Without encryption.
    let server = setup.start().await;
    let start = server.revision().await;
    let old = server.secret("old").await;
    assert!(contains(&stored(&*server.backend, "secrets", "old").await, "open sesame"));
    server.stop().await;

    // What is plain stays readable, and what is written is sealed.
    configure(&mut setup, "secrets", &[&keys("secretbox", &["k1"]), IDENTITY]);
    let server = setup.start().await;
    assert_eq!(server.get(format!("{SECRETS}/old")).await.ok(), old);
    let new = server.secret("new").await;
    assert_eq!(new["data"]["password"], "b3BlbiBzZXNhbWU=");
    assert_eq!(server.get(format!("{SECRETS}/new")).await.ok(), new);
    server.create("plain", json!({"k": "not a secret"})).await;
    let value = stored(&*server.backend, "secrets", "new").await;
    starts(&value, &format!("{BOX}k1:"));
    assert!(!contains(&value, "open sesame"));
    assert!(contains(&stored(&*server.backend, "configmaps", "plain").await, "not a secret"));
    assert_eq!(names(&server.get(SECRETS).await.ok()), ["new", "old"]);
    let metrics = server.get("/metrics").await.text();
    let sealed = "apiserver_storage_transformation_operations_total{resource=\"secrets\",transformation_type=\"to_storage\",transformer_prefix=\"k8s:enc:secretbox:v1:\",status=\"OK\"} 1";
    assert!(metrics.contains(sealed), "{metrics}");

    // A write that changes nothing seals what is not sealed as it should be, once.
    let (before, replaced) = server.replace(&format!("{SECRETS}/old")).await;
    assert!(rv(&replaced) > rv(&before), "the row was plain");
    starts(&stored(&*server.backend, "secrets", "old").await, &format!("{BOX}k1:"));
    let (before, replaced) = server.replace(&format!("{SECRETS}/old")).await;
    assert_eq!(rv(&replaced), rv(&before));
    let patched =
        server.patch(format!("{SECRETS}/old"), &json!({"metadata": {"labels": {"l": "1"}}})).await.ok();
    let end = server.revision().await;
    server.stop().await;

    // Another key comes first.
    configure(&mut setup, "secrets", &[&keys("secretbox", &["k2", "k1"]), IDENTITY]);
    let server = setup.start().await;
    assert_eq!(server.get(format!("{SECRETS}/old")).await.ok(), patched);
    let past = format!("{SECRETS}?resourceVersion={end}&resourceVersionMatch=Exact");
    assert_eq!(names(&server.get(past).await.ok()), ["new", "old"]);
    let mut watch = server.watch(format!("{SECRETS}?watch=1&resourceVersion={start}")).await;
    assert_eq!(watch.expect_named("ADDED", "old").await, old, "from a plain row");
    assert_eq!(watch.expect_named("ADDED", "new").await, new, "from a sealed one");
    let dry = server.request(Method::PUT, format!("{SECRETS}/old?dryRun=All")).json(&patched).await.ok();
    assert_eq!(rv(&dry), rv(&patched));
    for name in ["old", "new"] {
        let (before, replaced) = server.replace(&format!("{SECRETS}/{name}")).await;
        assert!(rv(&replaced) > rv(&before));
        starts(&stored(&*server.backend, "secrets", name).await, &format!("{BOX}k2:"));
    }
    server.stop().await;

    // The old key may go.
    configure(&mut setup, "secrets", &[&keys("secretbox", &["k2"])]);
    let server = setup.start().await;
    assert_eq!(server.get(format!("{SECRETS}/old")).await.ok()["data"], old["data"]);
    server.stop().await;

    // And the way back: identity comes first, and at last nothing is configured.
    configure(&mut setup, "secrets", &[IDENTITY, &keys("secretbox", &["k2"])]);
    let server = setup.start().await;
    for name in ["old", "new"] {
        let (before, replaced) = server.replace(&format!("{SECRETS}/{name}")).await;
        assert!(rv(&replaced) > rv(&before));
    }
    server.stop().await;
    setup.encryption = None;
    let server = setup.start().await;
    assert_eq!(server.get(format!("{SECRETS}/old")).await.ok()["data"], old["data"]);
    assert!(contains(&stored(&*server.backend, "secrets", "old").await, "open sesame"));
    server.stop().await;
}

/// A database's files hold no plain text, neither in tables nor in logs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_105_no_plain_text_is_in_the_files() {
    let mut setup = Setup::new(Database::sqlite());
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k1"])]);
    setup.audit.database = Some(DatabaseConfig { retention: Duration::from_secs(3600), most: 1000 });
    let server = setup.start().await;
    server.secret("a").await;
    server.patch(format!("{SECRETS}/a"), &json!({"metadata": {"labels": {"l": "1"}}})).await.ok();
    server.create("plain", json!({"k": "not a secret"})).await;
    let read = || {
        let directory = setup.database.file().parent().expect("a directory").to_owned();
        let files = std::fs::read_dir(directory).expect("files").map(|entry| entry.expect("a file").path());
        files.flat_map(|file| std::fs::read(file).unwrap_or_default()).collect::<Vec<u8>>()
    };
    let files = read();
    assert!(contains(&files, "not a secret"), "it is looked for in the right place");
    server.stop().await;
    for files in [files, read()] {
        assert!(!contains(&files, "open sesame") && !contains(&files, "b3BlbiBzZXNhbWU"));
        assert!(contains(&files, "k8s:enc:aesgcm:v1:k1:"));
    }
}

/// Writes these bytes into a row, as somebody would who has the database but no key. No server runs.
async fn plant(setup: &Setup, name: &str, value: Bytes) {
    let backend = setup.database.open().await;
    let id = backend.resource_ids(&[GroupResource::new("", "secrets")]).await.expect("an id")[0];
    let now = backend.clock().await.expect("clock").revision;
    let rows = backend.scan(Scan::all(id), now).await.expect("rows");
    let rows: Vec<_> = rows.try_collect().await.expect("rows");
    let found = rows.iter().find(|row| &*row.name == name).map(|row| row.revision);
    let draft = Draft::of_json("t", name, Bytes::from_static(b"{\"metadata\":{}}")).sealed(value);
    let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
    let expect = found.map_or(Expect::Absent, Expect::At);
    let commit = backend.commit(&[Mutation::new(Key::new(id, "t", name), expect, change)], Revision(0)).await;
    commit.expect("planted");
    backend.close().await;
}

#[track_caller]
fn refused(answer: &Answer, name: &str, why: &str) {
    let failure = answer.failure();
    let text = failure["message"].as_str().unwrap_or_default();
    assert_eq!((answer.status, &failure["reason"]), (500, &json!("InternalError")), "{answer:?}");
    assert!(text.contains(&format!("\"{name}\"")) && text.contains(why), "{text}");
}

async fn auth_107_a_value_opens_in_its_own_row_only(mut setup: Setup) {
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k1"])]);
    let server = setup.start().await;
    let a = server.secret("a").await;
    for name in ["b", "c", "d"] {
        server.secret(name).await;
    }
    let sealed = stored(&*server.backend, "secrets", "a").await;
    server.stop().await;
    // Another row's value; one that is not sealed at all; one of a key that is not there; one that says why it is refused.
    let plain =
        Bytes::from_static(b"{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"c\"}}");
    for (name, value) in [
        ("b", sealed),
        ("c", plain),
        ("d", Bytes::from_static(b"k8s:enc:aesgcm:v1:gone:0123456789012345678901234567890123456789")),
        ("e", sealed::refused("a lie")),
    ] {
        plant(&setup, name, value).await;
    }
    let server = setup.start().await;
    let reasons = [
        ("b", "cipher: message authentication failed"),
        ("c", "no matching prefix found"),
        ("d", "no matching key was found for the provided AES transformer"),
        ("e", "no matching prefix found"),
    ];
    assert_eq!(server.get(format!("{SECRETS}/a")).await.ok(), a);
    for (name, why) in reasons {
        refused(&server.get(format!("{SECRETS}/{name}")).await, name, why);
        refused(&server.get(format!("{SECRETS}?fieldSelector=metadata.name%3D{name}")).await, name, why);
        refused(&server.patch(format!("{SECRETS}/{name}"), &json!({"data": {}})).await, name, why);
    }
    refused(&server.get(SECRETS).await, "b", "");
    refused(&server.get("/api/v1/secrets?resourceVersion=0").await, "b", "");
    for (name, why) in &reasons[..3] {
        let path = format!("{SECRETS}/{name}");
        refused(&server.delete(&path).await, name, why);
        server.delete_unread(&path).await;
    }
    server.stop().await;

    // Without the key nothing opens, and nothing is missing.
    configure(&mut setup, "secrets", &[IDENTITY]);
    let server = setup.start().await;
    refused(&server.get(format!("{SECRETS}/a")).await, "a", "no matching prefix found");
    server.stop().await;
    setup.encryption = None;
    let server = setup.start().await;
    refused(
        &server.get(format!("{SECRETS}/a")).await,
        "a",
        "identity transformer tried to read encrypted data",
    );
    refused(&server.get(SECRETS).await, "a", "identity transformer tried to read encrypted data");
    server.delete_unread(&format!("{SECRETS}/a")).await;
    server.delete_unread(&format!("{SECRETS}/e")).await;
    assert_eq!(names(&server.get(SECRETS).await.ok()), [""; 0]);
    server.stop().await;
}

/// With `*.*`, also what the server keeps for itself and for others: leases, roles, definitions and their objects.
async fn everything_may_be_sealed(mut setup: Setup) {
    configure(&mut setup, "'*.*'", &[&keys("aescbc", &["k1"])]);
    setup.namespace_contents = true;
    setup.cluster_authentication = true;
    setup.register("rowplane-0");
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let service = json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let server = setup.start().await;
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let widgets = "/apis/ex.io/v1/namespaces/t/widgets";
    let widget = server.post(
        widgets,
        &json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "n": 1}),
    );
    let widget = widget.await.expect(201);
    let service = server.post("/api/v1/namespaces/t/services", &service).await.expect(201);
    starts(&stored(&*server.backend, "services", "web").await, "k8s:enc:aescbc:v1:k1:");
    server.stop().await;
    let server = setup.start().await;
    assert_eq!(server.get(format!("{widgets}/w")).await.ok(), widget);
    assert_eq!(server.get("/api/v1/namespaces/t/services/web").await.ok(), service);
    let taken = json!({"metadata": {"name": "other"}, "spec": {"type": "NodePort", "ports": [{"port": 80,
        "nodePort": service["spec"]["ports"][0]["nodePort"]}]}});
    assert_eq!(server.post("/api/v1/namespaces/t/services", &taken).await.status, 422);
    server.delete("/api/v1/namespaces/t").await.ok();
    assert_eq!(server.get("/readyz").await.status, 200);
    server.stop().await;
}

/// Two servers on one database, of which one does not know the new key yet: its reads fail, and work as soon as it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lacks_a_key_says_so_until_it_has_it() {
    let mut setup = Setup::new(Database::postgres().await);
    let sealed = "secrets, clusterrolebindings.rbac.authorization.k8s.io";
    configure(&mut setup, sealed, &[&keys("aesgcm", &["k1"])]);
    let behind = setup.start().await;
    behind.secret("first").await;
    let file = setup.file("ahead.yaml");
    configure(&mut setup, sealed, &[&keys("aesgcm", &["k2", "k1"])]);
    std::fs::rename(setup.file("encryption.yaml"), &file).expect("rename");
    setup.encryption = Some(Config { file, reload: Reload::Yes });
    let ahead = setup.start_empty().await;
    let binding = json!({"metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "alice"}],
        "roleRef": {"kind": "ClusterRole", "name": "view"}});
    ahead.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let second = ahead.secret("second").await;
    assert_eq!(ahead.get(format!("{SECRETS}/first")).await.status, 200);
    let path = format!("{SECRETS}/second");
    refused(&behind.get(&path).await, "second", "no matching key was found for the provided AES transformer");
    refused(&behind.get(SECRETS).await, "second", "");
    assert_eq!(behind.get(format!("{SECRETS}/first")).await.status, 200);
    let review =
        json!({"spec": {"user": "alice", "resourceAttributes": {"verb": "list", "resource": "pods"}}});
    let is_allowed = async || {
        let review = behind.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await;
        review.expect(201)["status"]["allowed"].clone()
    };
    assert_eq!(is_allowed().await, false);
    configure(&mut setup, sealed, &[&keys("aesgcm", &["k1", "k2"])]);
    behind.look_at_encryption().await;
    assert_eq!(is_allowed().await, true, "a binding counts that can be read again");
    assert_eq!(behind.get(&path).await.ok(), second);
    assert_eq!(names(&behind.get(SECRETS).await.ok()), ["first", "second"]);
    // What the cache had of it is read from the table from now on.
    let since = rv(&second) - 1;
    let mut watch = behind.watch(format!("{SECRETS}?watch=1&resourceVersion={since}")).await;
    assert_eq!(watch.expect_named("ADDED", "second").await, second);
    ahead.stop().await;
    behind.stop().await;
}

/// Waits ten seconds for a service that does not come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_109_the_file_is_read_again() {
    let mut setup = Setup::new(Database::memory());
    configure(&mut setup, "secrets", &[&keys("secretbox", &["k1"])]);
    let server = setup.start().await;
    server.secret("a").await;
    let in_force = async || {
        let start = "apiserver_encryption_config_controller_last_config_info{apiserver_id_hash=\"";
        let metrics = server.get("/metrics").await.text();
        let found: Vec<_> =
            metrics.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect();
        assert!(found.len() == 1 && found[0].contains("hash=\"sha256:"), "{found:?}");
        found
    };
    let before = in_force().await;
    configure(&mut setup, "secrets, configmaps", &[&keys("secretbox", &["k2", "k1"]), IDENTITY]);
    server.look_at_encryption().await;
    let after = in_force().await;
    assert_ne!(before, after);
    server.secret("b").await;
    starts(&stored(&*server.backend, "secrets", "b").await, &format!("{BOX}k2:"));
    server.post(CONFIGMAPS, &config_map("c", json!({}))).await.expect(201);
    starts(&stored(&*server.backend, "configmaps", "c").await, &format!("{BOX}k2:"));
    assert_eq!(names(&server.get(SECRETS).await.ok()), ["a", "b"]);

    // A broken file changes nothing, and is counted.
    std::fs::write(setup.file("encryption.yaml"), "kind: Nothing\n").expect("write");
    server.look_at_encryption().await;
    server.secret("d").await;
    starts(&stored(&*server.backend, "secrets", "d").await, &format!("{BOX}k2:"));
    let metrics = server.get("/metrics").await.text();
    let counted = |status: &str| {
        let name = "apiserver_encryption_config_controller_automatic_reloads_total";
        let start = format!("{name}{{status=\"{status}\",apiserver_id_hash=\"");
        metrics.lines().any(|line| line.starts_with(&start) && line.ends_with("\"} 1"))
    };
    assert!(counted("success") && counted("failure"), "{metrics}");
    assert_eq!(in_force().await, after);
    assert!(server.get("/readyz?verbose").await.text().contains("[+]kms-providers ok"));

    // So does a service that is not there: it has to be well before it is used.
    let kms = "{kms: {apiVersion: v2, name: none, endpoint: 'unix:///nowhere.sock', timeout: 10ms}}";
    configure(&mut setup, "secrets", &[kms, &keys("secretbox", &["k2", "k1"])]);
    server.look_at_encryption().await;
    server.secret("e").await;
    starts(&stored(&*server.backend, "secrets", "e").await, &format!("{BOX}k2:"));
    server.stop().await;
}

/// The cache holds plain objects, so it would go on to serve what nobody can open any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_109_a_key_that_is_taken_out_opens_nothing_any_more() {
    let mut setup = Setup::new(Database::memory());
    configure(&mut setup, "secrets", &[&keys("secretbox", &["k1"])]);
    let server = setup.start().await;
    server.secret("a").await;
    configure(&mut setup, "secrets", &[&keys("secretbox", &["k2"]), IDENTITY]);
    server.look_at_encryption().await;
    server.secret("b").await;
    for path in [SECRETS.to_owned(), format!("{SECRETS}/a")] {
        refused(
            &server.get(&path).await,
            "a",
            "no matching key was found for the provided Secretbox transformer",
        );
    }
    server.get(format!("{SECRETS}/b")).await.ok();

    configure(&mut setup, "secrets", &[&keys("secretbox", &["k2", "k1"]), IDENTITY]);
    server.look_at_encryption().await;
    assert_eq!(names(&server.get(SECRETS).await.ok()), ["a", "b"]);
    server.stop().await;
}

async fn auth_106_a_migration_seals_all_rows_with_the_new_key(mut setup: Setup) {
    let server = setup.start().await;
    for n in 0..20 {
        server.secret(&format!("plain-{n:02}")).await;
    }
    server.stop().await;
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k1"]), IDENTITY]);
    let server = setup.start().await;
    for n in 0..10 {
        server.secret(&format!("sealed-{n:02}")).await;
    }
    assert_eq!(counts(&setup).await, [("protobuf".to_owned(), 20), ("aesgcm:k1".to_owned(), 10)]);
    server.stop().await;
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k2", "k1"]), IDENTITY]);
    let server = setup.start().await;
    server.secret("new").await;
    let all = names(&server.get(SECRETS).await.ok());
    let expected = [("protobuf".to_owned(), 20), ("aesgcm:k1".to_owned(), 10), ("aesgcm:k2".to_owned(), 1)];
    assert_eq!(counts(&setup).await, expected);
    let spec = json!({"resource": {"group": "", "resource": "secrets"}});
    let path = format!("{MIGRATIONS}/all");
    let mut watch =
        server.watch(format!("{MIGRATIONS}?watch=1&resourceVersion={}", server.revision().await)).await;
    server.post(MIGRATIONS, &json!({"metadata": {"name": "all"}, "spec": spec})).await.expect(201);
    loop {
        let event = watch.next().await.expect("an event");
        let conditions = event["object"]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        assert!(!conditions.iter().any(|c| c["type"] == "Failed" && c["status"] == "True"), "{event}");
        if conditions.iter().any(|c| c["type"] == "Succeeded" && c["status"] == "True") {
            break;
        }
    }
    server.get(path).await.ok();
    assert_eq!(counts(&setup).await, [("aesgcm:k2".to_owned(), 31)]);
    assert_eq!(names(&server.get(SECRETS).await.ok()), all);
    server.stop().await;
}

/// The commands that read a store read an encrypted one by its keys, and say what they lack without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_read_encrypted_stores_and_encrypt_backups() {
    let mut setup = Setup::new(Database::sqlite());
    let server = setup.start().await;
    server.secret("plain").await;
    let directory = tempfile::tempdir().expect("a directory");
    let (plain, sealed) = (directory.path().join("plain"), directory.path().join("sealed"));
    configure(&mut setup, r#""*.*""#, &[&keys("aesgcm", &["k1"]), IDENTITY]);
    let keys = KeyArgs::new(setup.file("encryption.yaml"));
    let store = setup.database.datastore();
    backup(&store, &plain, Keys::default()).await.expect("a backup");
    backup(&store, &sealed, keys.load().await.expect("keys")).await.expect("a backup");
    let has = |path: &Path, text: &str| contains(&std::fs::read(path).expect("a file"), text);
    assert!(has(&plain, "open sesame") && !has(&sealed, "open sesame"));
    server.stop().await;

    // The backup is a store of a server with these keys.
    setup.database = Database::sqlite();
    restore(&sealed, &setup.database.datastore()).await.expect("restored");
    let server = setup.start_empty().await;
    assert_eq!(server.get(format!("{SECRETS}/plain")).await.ok()["data"]["password"], "b3BlbiBzZXNhbWU=");
    starts(&stored(&*server.backend, "secrets", "plain").await, "k8s:enc:aesgcm:v1:k1:");
    let binding = json!({"metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "alice"}],
        "roleRef": {"kind": "ClusterRole", "name": "view"}});
    server.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let url = match setup.database.datastore() {
        Datastore::Sqlite(path) => format!("--datastore=sqlite:{}", path.display()),
        other => panic!("{other:?}"),
    };
    let file = format!("--encryption-provider-config={}", setup.file("encryption.yaml").display());
    let why = async |more: &[&str]| {
        let words = ["rowplane", "auth", "why", "--as", "alice", "get", "configmaps", &url];
        let Command::Auth(command) = Cli::parse_from([&words, more].concat()).command() else {
            unreachable!()
        };
        answer(command).await.map_err(|error| error.one_line())
    };
    let told = why(&[&file]).await.expect("an answer");
    assert!(told.starts_with("yes\nRBAC: allowed by ClusterRoleBinding \"b\""), "{told}");
    let refused = why(&[]).await.expect_err("no keys");
    assert!(
        refused.ends_with("it is encrypted; name the keys with --encryption-provider-config"),
        "{refused}"
    );
    let store = setup.database.datastore();
    server
        .post(
            MIGRATIONS,
            &json!({"metadata": {"name": "m"}, "spec": {"resource": {"group": "", "resource": "secrets"}}}),
        )
        .await
        .expect(201);
    inventory(&store, WaitMigrations::Yes, &keys).await.expect("it has ended");
    let refused = inventory(&store, WaitMigrations::Yes, &KeyArgs::default()).await.expect_err("no keys");
    assert!(refused.one_line().contains("it is encrypted"), "{refused}");
}

/// What `rowplane status` says of Secrets: rows per format.
async fn counts(setup: &Setup) -> Vec<(String, u64)> {
    let inventory = inventory(&setup.database.datastore(), WaitMigrations::No, &KeyArgs::default())
        .await
        .expect("an inventory");
    let stored = &inventory.resources[&GroupResource::new("", "secrets")].stored;
    let name = |format: &Format| match format {
        Format::Json => "json".to_owned(),
        Format::Protobuf => "protobuf".to_owned(),
        Format::Sealed(prefix) => sealed::key_name(prefix),
    };
    stored.iter().map(|stored| (name(&stored.format), stored.objects)).collect()
}

/// The state of a replica that is behind in a rotation: everything is readable again once the key is there.
async fn a_key_that_is_missing_lets_nobody_delete_what_it_seals(mut setup: Setup) {
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k1"])]);
    let server = setup.start().await;
    let mut kept = secret("kept");
    kept["metadata"]["finalizers"] = json!(["ex.io/f"]);
    let kept = server.post(SECRETS, &kept).await.expect(201);
    server.stop().await;
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k2"])]);
    let server = setup.start().await;
    let path = format!("{SECRETS}/kept");
    let why = "no matching key was found";
    refused(&server.delete(&path).await, "kept", why);
    let preconditions = json!({"preconditions": {"uid": "other", "resourceVersion": "1"}});
    refused(&server.delete(&path).json(&preconditions).await, "kept", why);
    refused(&server.delete(SECRETS).await, "kept", why);
    server.stop().await;
    configure(&mut setup, "secrets", &[&keys("aesgcm", &["k2", "k1"])]);
    let server = setup.start().await;
    assert_eq!(server.get(&path).await.ok(), kept);
    server.stop().await;
}
