//! The collector with a store of its own, and with reports that arrive when the test says so.

use super::*;
use crate::api::admission::{Chain, Settings};
use crate::api::catalog::Served;
use crate::api::cluster::{Cluster, Parts};
use crate::api::config::TokenIssuing;
use crate::api::decode::Body;
use crate::api::hidden::HiddenResources;
use crate::api::kubelets::Kubelets;
use crate::api::options::continue_token::{TokenKey, TokenKeys};
use crate::api::options::delete::DeleteOptions;
use crate::api::request::Request;
use crate::api::service_routes::{self, ServiceRoutes};
use crate::api::{Answer, Target};
use crate::auth::jwt::keys::SigningKey;
use crate::auth::pki::temporary_token_key;
use crate::auth::service_accounts::{Issuer, Keys};
use crate::cache::Cache;
use crate::codec::object::Draft;
use crate::kinds::behavior::deletion::{Dependents, Propagation};
use crate::kinds::built_in;
use crate::runtime::Runtime;
use crate::schema::names::{GroupVersion, Gvr};
use crate::schema::registry::Registry;
use crate::schema::resource::Verb;
use crate::storage::sqlite::Sqlite;
use crate::storage::{Backend, HighWaterMark, Store};
use crate::tree::{Value, json};

/// The verbs over a new store in a directory, without a server.
pub async fn api(directory: &std::path::Path) -> Api {
    let backend: Arc<dyn Backend> = Arc::new(Sqlite::open(&directory.join("state.db")).await.expect("open"));
    let registry = Arc::new(Registry::new(built_in::definitions()));
    let names: Vec<_> = registry.stored().map(|(name, _)| name.clone()).collect();
    let mut ids = backend.resource_ids(&names).await.expect("ids");
    let hidden = HiddenResources::register(&*backend).await.expect("ids");
    ids.extend(hidden.ids());
    let mark = Arc::new(HighWaterMark::load(directory.join("mark")));
    let runtime = Runtime::default();
    let (cache, sink) =
        Cache::start(backend.clone(), Draft::parse, &ids, mark.clone(), &runtime, &Default::default())
            .await
            .expect("load");
    let key = TokenKey { id: 1, secret: vec![0; 32] };
    let ids = names.into_iter().zip(ids).collect();
    let built_in =
        Arc::new(Served::new(registry, &ids, Default::default(), crate::api::concerns::of_definition));
    let routes = built_in.ids(&service_routes::RESOURCES);
    let service_routes = ServiceRoutes::new(Default::default(), cache.clone(), routes, &runtime, None);
    let admission = Chain::new(&Settings::default(), &runtime.metrics).expect("a chain");
    let cluster = Cluster::new(Parts {
        store: Store::start(backend, Some(sink), mark, &runtime),
        cache,
        resources: built_in,
        service_routes,
        kubelets: Kubelets::new(Default::default(), Default::default()).expect("settings"),
        proxy_identity: Default::default(),
        remote_services: Default::default(),
        token_keys: TokenKeys::new(key, Vec::new()),
        hidden,
        tokens: TokenIssuing { issuer: issuer(), audiences: Arc::default() },
        encryption: Default::default(),
        rbac: None,
        inheritance: Default::default(),
        runtime,
        lanes: Default::default(),
        config: crate::api::config::Config {
            min_request_timeout: Duration::from_secs(1800),
            services: Default::default(),
            namespace_contents: None,
            cluster_controllers: true,
            garbage_collection: true,
            record_writers: Default::default(),
            generate_name: Arc::new(str::to_owned),
        },
    });
    Api { cluster: Arc::new(cluster), admission }
}

fn issuer() -> Arc<Issuer> {
    let signing = SigningKey::of_pem(temporary_token_key().expect("a key").as_bytes()).expect("a key");
    let keys = Keys::new(signing, Vec::new(), &[]);
    Arc::new(Issuer { issuers: Vec::new(), keys, max_seconds: None, extended: None, jwks_uri: None })
}

async fn create(api: &Api, plural: &str, object: Value) -> Arc<Object> {
    let resource = api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural);
    let namespace = if resource.definition.namespaced() { "t" } else { "" };
    let Value::Object(object) = object else { unreachable!("an object") };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    match api.create(&request, Body::Object(&object)).await {
        Ok(Answer::Stored(object)) => object,
        _ => panic!("not created"),
    }
}

/// An owner that was deleted so, and a dependent that was created just before: the collector gets the owner's report first.
struct Overtaken {
    api: Api,
    graph: Graph,
    owner: Node,
    dependent: (Node, Arc<Object>),
    at: Revision,
}

impl Overtaken {
    async fn deleted(directory: &std::path::Path, propagation: Propagation) -> Self {
        let api = api(directory).await;
        create(&api, "namespaces", json!({"metadata": {"name": "t"}})).await;
        let mut graph = Graph::default();
        let all: Vec<_> = api.catalog.served().stored().cloned().collect();
        assert!(load(&api, &api.cache.any(), &all, &mut graph).is_empty());

        let owner = create(&api, "configmaps", json!({"metadata": {"name": "owner"}})).await;
        let uid = owner.to_map().expect("readable")["metadata"]["uid"].clone();
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid,
            "blockOwnerDeletion": true});
        let metadata = json!({"name": "dependent", "ownerReferences": [reference]});
        let dependent = create(&api, "secrets", json!({ "metadata": metadata })).await;
        let id = |plural| api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural).id;
        let (configmaps, secrets) = (id("configmaps"), id("secrets"));
        let resource = api.resources.get(&Gvr::fixed("v1", "configmaps")).expect("configmaps");
        let target = Target { resource, namespace: "t", name: "owner" };
        let options =
            DeleteOptions { dependents: Dependents::Policy(propagation), ..DeleteOptions::default() };
        api.delete(&Request::own(Verb::Delete, target).with(&options)).await.map(drop).expect("deleted");

        let node = Node { resource: configmaps, key: owner.key().into() };
        let current = api.cache.any().get(configmaps, "t", "owner");
        let at = api.cache.any().revision;
        let mut queue = Vec::new();
        take_in(
            &api,
            &mut graph,
            &Elsewhere::default(),
            Report::Change { node: node.clone(), current, previous: None },
            &mut queue,
        );
        take_in(&api, &mut graph, &Elsewhere::default(), Report::Reached(configmaps, at), &mut queue);
        assert_eq!(queue, std::slice::from_ref(&node));
        let known = Node { resource: secrets, key: dependent.key().into() };
        Self { api, graph, owner: node, dependent: (known, dependent), at }
    }

    /// Now the dependent is reported, too.
    fn report(&mut self) {
        let (node, dependent) = self.dependent.clone();
        let report = Report::Change { node, current: Some(dependent), previous: None };
        take_in(&self.api, &mut self.graph, &Elsewhere::default(), report, &mut Vec::new());
        for resource in self.api.catalog.served().stored() {
            take_in(
                &self.api,
                &mut self.graph,
                &Elsewhere::default(),
                Report::Reached(resource.id, self.at),
                &mut Vec::new(),
            );
        }
    }

    async fn collect(&self) -> CollectResult {
        let collector = Collector { api: &self.api, elsewhere: &Elsewhere::default(), decided_at: self.at };
        collector.collect(&self.graph, &self.owner).await.expect("a verdict")
    }

    fn has_owner(&self) -> bool {
        self.api.cache.any().get(self.owner.resource, "t", "owner").is_some()
    }

    fn found_dependent(&self) -> Option<Arc<Object>> {
        self.api.cache.any().get(self.dependent.0.resource, "t", "dependent")
    }
}

#[tokio::test]
async fn orphaning_waits_for_the_reports_of_what_was_made_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut overtaken = Overtaken::deleted(directory.path(), Propagation::Orphan).await;
    assert!(matches!(overtaken.collect().await, CollectResult::Later) && overtaken.has_owner(), "it waits");
    overtaken.report();
    assert!(matches!(overtaken.collect().await, CollectResult::Done) && !overtaken.has_owner());
    let left = overtaken.found_dependent().expect("it stays").to_map().expect("readable");
    assert_eq!(left["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_the_reports_of_what_was_made_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut overtaken = Overtaken::deleted(directory.path(), Propagation::Foreground).await;
    assert!(matches!(overtaken.collect().await, CollectResult::Later) && overtaken.has_owner(), "it waits");
    overtaken.report();
    assert!(
        matches!(overtaken.collect().await, CollectResult::Later) && overtaken.has_owner(),
        "for the dependent"
    );
    assert!(overtaken.found_dependent().is_none());
    assert!(matches!(overtaken.collect().await, CollectResult::Done) && !overtaken.has_owner());
}

/// The owner of an object was deleted, and a failover may have taken that back since.
#[tokio::test]
async fn what_was_decided_before_a_failover_deletes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let api = api(directory.path()).await;
    create(&api, "namespaces", json!({"metadata": {"name": "t"}})).await;
    let references = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "gone"}]);
    let dependent = json!({"metadata": {"name": "dependent", "ownerReferences": references}});
    create(&api, "secrets", dependent).await;
    let mut graph = Graph::default();
    let all: Vec<_> = api.catalog.served().stored().cloned().collect();
    let state = api.cache.any();
    let queue = load(&api, &state, &all, &mut graph);
    let [node] = &queue[..] else { panic!("one dependent") };

    let secrets = api.resources.get(&Gvr::fixed("v1", "secrets")).expect("secrets").id;
    let is_there = || api.cache.any().get(secrets, "t", "dependent").is_some();
    let jumped = api.cache.backend().advance_clock(Revision(state.revision.0 + 1000)).await.expect("a jump");
    let collector = Collector { api: &api, elsewhere: &Elsewhere::default(), decided_at: state.revision };
    assert!(collector.collect(&graph, node).await.is_err());
    assert!(is_there());
    let state = api.cache.at_least(jumped.revision).await.expect("a state");
    assert_eq!((state.revision, state.loaded_at), (jumped.revision, jumped.revision), "it was loaded anew");
    let collector = Collector { api: &api, elsewhere: &Elsewhere::default(), decided_at: state.revision };
    assert!(matches!(collector.collect(&graph, node).await, Ok(CollectResult::Done)));
    assert!(!is_there());
}
