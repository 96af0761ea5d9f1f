//! The real server, in this process, over real HTTPS, with its own database.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::HeaderValue;
use kube::config::Kubeconfig;
use rowplane::api::Api;
use rowplane::api::admission::Settings;
use rowplane::api::kubelets;
use rowplane::api::service_routes;
use rowplane::api::services::{self, Network};
use rowplane::auth::pki::Overrides;
use rowplane::codec::at_rest::StorageMediaType;
use rowplane::controllers::IdentityLeases;
use rowplane::controllers::servers::kubernetes_service::Endpoints;
use rowplane::http;
use rowplane::http::console::Console;
use rowplane::http::door::cors::Cors;
use rowplane::kinds::built_in::enablement::Enablement;
use rowplane::revision::Revision;
use rowplane::schema::names::{GroupResource, GroupVersion};
use rowplane::server::application::build_with_api;
use rowplane::server::config::{
    Aggregation, ApiLimits, Authentication, Authorization, CertificateControllers, Config, Controllers,
    Https, IdentityConfig, Registration,
};
use rowplane::server::datastore::Datastore;
use rowplane::server::{Builder, Server};
use rowplane::storage::{Backend, Compaction, RecordWriters};
use rowplane::tasks::Failure;
use rowplane::wall_clock::WallClock;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Client, Protocol};
use super::database::Database;

/// A line of the token file: a user who may do nothing.
pub const ALICE: &str = "alice-token,alice,u-1,\"developers\"\n";
/// A line of the token file: a user who may do everything.
pub const ROOT: &str = "root-token,root,u-2,\"system:masters\"\n";

/// A database and the settings of servers on it. All servers that are started here share the database: one after the
/// other, and on PostgreSQL also at the same time.
pub struct Setup {
    pub database: Database,
    /// How servers reach the database, if not directly.
    pub detour: Option<Datastore>,
    pub limits: ApiLimits,
    pub connections: http::server::Limits,
    pub compaction: Option<Compaction>,
    pub record_writers: RecordWriters,
    /// The encoding in which the servers write from now on.
    pub storage_media_type: StorageMediaType,
    /// `None` unless the test sets it, since heartbeats advance the clock.
    pub identity: Option<IdentityConfig>,
    /// Resources that are stored in another version than the default.
    pub storage_versions: Vec<(GroupResource, GroupVersion)>,
    /// The built-in resources that are served.
    pub enablement: Enablement,
    pub certificates: Overrides,
    pub tls: http::tls::Settings,
    pub strict_transport_security: Option<HeaderValue>,
    pub cors: Option<Arc<Cors>>,
    pub audit: rowplane::audit::config::Config,
    /// What `/flagz` shows.
    pub flags: BTreeMap<String, String>,
    pub console: Console,
    pub encryption: Option<rowplane::encryption::Config>,
    /// Without ServiceAccount unless the test sets it, since namespaces have no accounts.
    pub admission: Settings,
    pub authentication: Authentication,
    /// Where webhooks of Services are called.
    pub service_routes: service_routes::Config,
    /// How kubelets are reached.
    pub kubelets: kubelets::Config,
    /// The networks of Services.
    pub networks: Vec<Network>,
    /// The keeper of the endpoints of the Service `kubernetes`.
    pub endpoints: Endpoints,
    /// The proxies that connections go through.
    pub egress: Option<rowplane::egress::config::Configuration>,
    /// The collector of spans.
    pub traces: Option<rowplane::traces::config::Configuration>,
    /// How requests are passed on to extension servers.
    pub aggregation: Aggregation,
    /// None of these runs unless the test switches it on.
    pub certificate_controllers: CertificateControllers,
    /// All of them unless the test says so.
    pub controllers: Controllers,
    pub garbage_collection: bool,
    /// Off unless the test sets it, so that namespaces are empty.
    pub namespace_contents: bool,
    /// Likewise.
    pub cluster_authentication: bool,
    /// The clock by which certificates expire.
    pub clock: WallClock,
    /// For how long a server that is stopped goes on as ever.
    pub shutdown_delay: Duration,
    /// Whether tests may use the server as they like.
    pub test_endpoints: bool,
    data: TempDir,
    /// Who decides who may do what.
    pub authorization: Authorization,
}

impl Setup {
    pub fn new(database: Database) -> Self {
        let data = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(data.path().join("tokens.csv"), format!("{ALICE}{ROOT}")).expect("write tokens");
        Self {
            database,
            detour: None,
            limits: ApiLimits::default(),
            connections: http::server::Limits::default(),
            compaction: None,
            record_writers: RecordWriters::default(),
            storage_media_type: StorageMediaType::default(),
            identity: None,
            authorization: Authorization::default(),
            storage_versions: Vec::new(),
            enablement: Enablement::default(),
            certificates: Overrides::default(),
            tls: http::tls::Settings::default(),
            strict_transport_security: None,
            cors: None,
            audit: rowplane::audit::config::Config::default(),
            flags: BTreeMap::new(),
            console: Console::default(),
            encryption: None,
            admission: Settings::new(&[], &["ServiceAccount"]).expect("a known plugin"),
            authentication: Authentication::default(),
            service_routes: service_routes::Config::default(),
            kubelets: kubelets::Config::default(),
            networks: services::Config::default().networks,
            endpoints: Endpoints::default(),
            egress: None,
            traces: None,
            aggregation: Aggregation::default(),
            certificate_controllers: CertificateControllers::default(),
            controllers: Controllers::Run,
            garbage_collection: true,
            namespace_contents: false,
            cluster_authentication: false,
            clock: WallClock::default(),
            shutdown_delay: Duration::ZERO,
            test_endpoints: false,
            data,
        }
    }

    /// Servers that are started from now on register, with this host name.
    pub fn register(&mut self, hostname: &str) {
        let never = Duration::from_secs(1 << 30);
        let leases = IdentityLeases { duration_seconds: 3600, renew_interval: never, gc_period: never };
        let hostname_override = Some(hostname.to_owned());
        self.identity = Some(IdentityConfig { hostname_override, leases, registration: Registration::On });
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self.database, Database::Sqlite(_))
    }

    pub fn is_in_memory(&self) -> bool {
        matches!(self.database, Database::Memory(_))
    }

    /// Starts a server without a client.
    pub async fn start_without_admin(&self) -> Server {
        let started = self.builder().start().await;
        started.unwrap_or_else(|error| panic!("start: {}", error.one_line()))
    }

    /// Starts a server with only those objects that it creates itself.
    pub async fn start_empty(&self) -> TestServer {
        type Built = OnceLock<(Arc<dyn Backend>, Arc<Api>)>;
        let opened: Arc<Built> = Arc::default();
        let slot = opened.clone();
        // A server would open an empty store in memory; a restart in a test finds what the server before has written.
        let in_memory = match &self.database {
            Database::Memory(store) => Some(store.clone()),
            Database::Sqlite(_) | Database::Postgres(_) => None,
        };
        let server = self.builder().start_with(async move |environment| {
            let backend = match in_memory {
                Some(store) => store,
                None => {
                    environment.commons.open(&environment.config, environment.runtime.clock.clone()).await?
                }
            };
            let (application, api) = build_with_api(backend.clone(), environment).await?;
            assert!(slot.set((backend, api)).is_ok(), "built once");
            Ok(application)
        });
        let server = server.await.unwrap_or_else(|error| panic!("start: {}", error.one_line()));
        let kubeconfig = self.kubeconfig();
        let (backend, api) = opened.get().expect("opened").clone();
        let admin = Client::of_certificate(&kubeconfig, Protocol::Any);
        TestServer { admin, kubeconfig, backend, api, server }
    }

    /// Starts a server that also has the namespace `t`.
    pub async fn start(&self) -> TestServer {
        let server = self.start_empty().await;
        let made = server.post("/api/v1/namespaces", &json!({"metadata": {"name": "t"}})).await;
        assert!(made.status == 201 || made.status == 409, "{made:?}");
        server
    }

    /// The admin's present kubeconfig.
    pub fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig::read_from(self.file("admin.kubeconfig")).expect("a kubeconfig")
    }

    /// The path of a file in the data directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    /// Replaces a file that a server follows, so that the server never sees half of it.
    pub fn replace(&self, name: &str, content: &str) {
        let new = self.file(&format!("{name}.new"));
        std::fs::write(&new, content).expect("write");
        std::fs::rename(new, self.file(name)).expect("rename");
    }

    pub fn builder(&self) -> Builder {
        Server::builder().config(self.config()).clock(self.clock.clone())
    }

    fn config(&self) -> Config {
        Config {
            data_dir: Some(self.data.path().to_owned()),
            https: Some(Https {
                certificates: self.certificates.clone(),
                tls: self.tls.clone(),
                strict_transport_security: self.strict_transport_security.clone(),
                cors: self.cors.clone(),
                token_auth_file: Some(self.file("tokens.csv")),
                connections: self.connections,
                kubeconfig: Some(self.file("admin.kubeconfig")),
                ..Https::default()
            }),
            // Fixed, so that tests are the same on every host.
            advertise_address: Some([192, 0, 2, 7].into()),
            endpoints: self.endpoints,
            services: services::Config { networks: self.networks.clone(), ..services::Config::default() },
            datastore: self.detour.clone().unwrap_or_else(|| self.database.datastore()),
            storage_media_type: self.storage_media_type,
            limits: self.limits,
            compaction: self.compaction.clone(),
            record_writers: self.record_writers,
            shutdown_delay: self.shutdown_delay,
            test_endpoints: self.test_endpoints,
            shutdown_grace: Duration::from_secs(20),
            identity: self.identity.clone(),
            authorization: self.authorization.clone(),
            storage_versions: self.storage_versions.clone(),
            enablement: self.enablement.clone(),
            audit: self.audit.clone(),
            flags: self.flags.clone(),
            console: self.console,
            encryption: self.encryption.clone(),
            admission: self.admission.clone(),
            authentication: self.authentication.clone(),
            service_routes: self.service_routes.clone(),
            kubelets: self.kubelets.clone(),
            egress: self.egress.clone(),
            traces: self.traces.clone(),
            aggregation: self.aggregation.clone(),
            certificate_controllers: self.certificate_controllers.clone(),
            controllers: self.controllers,
            garbage_collection: self.garbage_collection,
            namespace_contents: self.namespace_contents,
            cluster_authentication: self.cluster_authentication,
            ..Config::default()
        }
    }
}

/// A running server, with a client that is its admin.
pub struct TestServer {
    pub admin: Client,
    pub kubeconfig: Kubeconfig,
    pub backend: Arc<dyn Backend>,
    pub api: Arc<Api>,
    server: Server,
}

impl Deref for TestServer {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.admin
    }
}

impl TestServer {
    pub async fn stop(self) {
        let Self { api, server, .. } = self;
        drop(api);
        server.stop().await;
    }

    /// Reads the files of certificates and tokens again, as the server does regularly.
    pub async fn reload_credentials(&self) {
        self.server.reload_credentials().await;
    }

    /// Looks at the configuration of encryption and its services, as the server does regularly.
    pub async fn look_at_encryption(&self) {
        let cache = self.api.cache.clone();
        let reread = async move |refused: Vec<_>| cache.reread(&refused).await.expect("read again");
        self.api.encryption.look_now(reread).await;
    }

    /// Returns once the server cannot continue.
    pub async fn failed(&self) -> Failure {
        self.server.failed().await
    }

    pub fn port(&self) -> u16 {
        self.server.address().expect("it listens").port()
    }

    pub fn token(&self, token: &str) -> Client {
        Client::of_token(&self.kubeconfig, Some(token))
    }

    pub fn anonymous(&self) -> Client {
        Client::of_token(&self.kubeconfig, None)
    }

    pub async fn kube(&self) -> kube::Client {
        let config = kube::Config::from_custom_kubeconfig(self.kubeconfig.clone(), &Default::default()).await;
        kube::Client::try_from(config.expect("a config")).expect("a client")
    }

    /// The newest revision.
    pub async fn revision(&self) -> u64 {
        self.backend.clock().await.expect("clock").revision.0
    }

    /// Gives up the history before `to`, and removes its rows.
    pub async fn compact(&self, to: u64) {
        self.backend.compact(Revision(to)).await.expect("compact");
        self.backend.raise_floors(Revision(to), &[]).await.expect("raised floors");
        while self.backend.sweep(1000).await.expect("sweep").changes >= 1000 {}
    }

    /// Creates a ConfigMap in `t`.
    pub async fn create(&self, name: &str, data: Value) -> Value {
        self.post(CONFIGMAPS, &config_map(name, data)).await.expect(201)
    }

    /// Sets `data` of a ConfigMap in `t`. Returns the object.
    pub async fn set(&self, name: &str, data: Value) -> Value {
        self.patch(format!("{CONFIGMAPS}/{name}"), &json!({"data": data})).await.ok()
    }

    /// Deletes a ConfigMap in `t`.
    pub async fn remove(&self, name: &str) {
        self.delete(format!("{CONFIGMAPS}/{name}")).await.ok();
    }

    /// Deletes an object that cannot be read.
    pub async fn delete_unread(&self, path: &str) -> Value {
        self.delete(format!("{path}?{UNREAD}")).await.ok()
    }

    /// Creates a namespace.
    pub async fn namespace(&self, name: &str) -> Value {
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.expect(201)
    }
}

/// The option of a DELETE of what cannot be read.
pub const UNREAD: &str = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
/// The collection that most tests use.
pub const CONFIGMAPS: &str = "/api/v1/namespaces/t/configmaps";
pub const ALL_CONFIGMAPS: &str = "/api/v1/configmaps";

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

/// A Deployment with these members in its spec, and those that every Deployment needs.
pub fn deployment(name: &str, spec: Value) -> Value {
    let mut whole = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "i"}]},
        },
    });
    if let (Value::Object(whole), Value::Object(spec)) = (&mut whole, spec) {
        whole.extend(spec);
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole})
}

/// The revision in the metadata of an object or list.
#[track_caller]
pub fn rv(object: &Value) -> u64 {
    let text =
        object["metadata"]["resourceVersion"].as_str().unwrap_or_else(|| panic!("no revision: {object}"));
    text.parse().unwrap_or_else(|error| panic!("{error}: {object}"))
}

/// The names of a list's items.
#[track_caller]
pub fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("no items: {list}"));
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// The continue token of a list, which must have one.
#[track_caller]
pub fn token(list: &Value) -> String {
    list["metadata"]["continue"].as_str().unwrap_or_else(|| panic!("no token: {list}")).to_owned()
}
