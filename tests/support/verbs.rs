//! The verbs on a database, without a server.

use std::sync::Arc;
use std::time::Duration;

use rowplane::api::admission::{Chain, Settings};
use rowplane::api::catalog::Served;
use rowplane::api::cluster::{Cluster, Parts};
use rowplane::api::config::TokenIssuing;
use rowplane::api::hidden::HiddenResources;
use rowplane::api::kubelets::Kubelets;
use rowplane::api::meta::generate_name;
use rowplane::api::options::continue_token::{TokenKey, TokenKeys};
use rowplane::api::service_routes::{self, ServiceRoutes};
use rowplane::api::{self, Api};
use rowplane::auth::jwt::keys::SigningKey;
use rowplane::auth::pki::temporary_token_key;
use rowplane::auth::service_accounts::{Issuer, Keys};
use rowplane::cache::Cache;
use rowplane::codec::at_rest::StorageMediaType;
use rowplane::codec::object::Draft;
use rowplane::kinds::built_in;
use rowplane::metrics::Metrics;
use rowplane::runtime::Runtime;
use rowplane::schema::registry::Registry;
use rowplane::storage::{Backend, HighWaterMark, Store};

use super::database::Database;

/// An `Api` like that of a server without controllers.
pub async fn api_on(database: &Database) -> Arc<Api> {
    api_that_names(database, |prefix| generate_name(prefix, &mut rand::rng())).await
}

/// Like [`api_on`], with this generator for names.
pub async fn api_that_names(database: &Database, generate_name: fn(&str) -> String) -> Arc<Api> {
    api_over(database.open().await, generate_name).await
}

/// Like [`api_that_names`], on any store.
pub async fn api_over(backend: Arc<dyn Backend>, generate_name: fn(&str) -> String) -> Arc<Api> {
    api_of(backend, generate_name, chain()).await
}

/// Like [`api_on`], with these admission plugins on any store.
pub async fn api_that_admits(backend: Arc<dyn Backend>, admission: Chain) -> Arc<Api> {
    api_of(backend, |prefix| generate_name(prefix, &mut rand::rng()), admission).await
}

/// The plugins that are on by default, without ServiceAccount, since namespaces have no accounts.
pub fn chain() -> Chain {
    let settings = Settings::new(&[], &["ServiceAccount"]).expect("a known plugin");
    Chain::new(&settings, &Metrics::default()).expect("a chain")
}

fn issuer() -> Arc<Issuer> {
    let signing = SigningKey::of_pem(temporary_token_key().expect("a key").as_bytes()).expect("a key");
    let keys = Keys::new(signing, Vec::new(), &[]);
    Arc::new(Issuer { issuers: Vec::new(), keys, max_seconds: None, extended: None, jwks_uri: None })
}

async fn api_of(backend: Arc<dyn Backend>, generate_name: fn(&str) -> String, admission: Chain) -> Arc<Api> {
    let registry = Arc::new(Registry::new(built_in::definitions()));
    let names: Vec<_> = registry.stored().map(|(name, _)| name.clone()).collect();
    let mut ids = backend.resource_ids(&names).await.expect("ids");
    let hidden = HiddenResources::register(&*backend).await.expect("ids");
    ids.extend(hidden.ids());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mark = Arc::new(HighWaterMark::load(directory.path().join("mark")));
    let runtime = Runtime::default();
    let (cache, sink) =
        Cache::start(backend.clone(), Draft::parse, &ids, mark.clone(), &runtime, &Default::default())
            .await
            .expect("load");
    let ids = names.into_iter().zip(ids).collect();
    let built_in = Arc::new(Served::new(
        registry,
        &ids,
        StorageMediaType::default(),
        rowplane::api::concerns::of_definition,
    ));
    let routes = built_in.ids(&service_routes::RESOURCES);
    let service_routes = ServiceRoutes::new(Default::default(), cache.clone(), routes, &runtime, None);
    let cluster = Cluster::new(Parts {
        store: Store::start(backend, Some(sink), mark, &runtime),
        cache,
        resources: built_in,
        service_routes,
        kubelets: Kubelets::new(Default::default(), Default::default()).expect("settings"),
        proxy_identity: Default::default(),
        remote_services: Default::default(),
        token_keys: TokenKeys::new(TokenKey { id: 1, secret: vec![0; 32] }, Vec::new()),
        hidden,
        tokens: TokenIssuing { issuer: issuer(), audiences: Arc::default() },
        encryption: Default::default(),
        rbac: None,
        inheritance: Default::default(),
        runtime,
        lanes: Default::default(),
        config: api::config::Config {
            min_request_timeout: Duration::from_secs(1800),
            services: Default::default(),
            namespace_contents: None,
            cluster_controllers: true,
            record_writers: Default::default(),
            garbage_collection: true,
            generate_name: Arc::new(generate_name),
        },
    });
    Arc::new(Api { cluster: Arc::new(cluster), admission })
}
