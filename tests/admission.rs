//! Admission: what plugins see and stop, and what happens if another server changes what admission relied on before the
//! write is committed.

#[macro_use]
mod support;

#[path = "admission/chain.rs"]
mod chain;
#[path = "admission/foreseen.rs"]
mod foreseen;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::TryStreamExt as _;
use rowplane::api::error::Error;
use rowplane::api::input::decode::Body;
use rowplane::api::input::options::write::WriteOptions;
use rowplane::api::meta::generate_name;
use rowplane::api::request::Request;
use rowplane::api::{Answer, Api, Target};
use rowplane::causes::CauseReason;
use rowplane::codec::object::Draft;
use rowplane::patch::PatchKind;
use rowplane::patch::apply::ownership::Conflicts;
use rowplane::revision::Revision;
use rowplane::schema::names::{GroupResource, GroupVersion, Gvr};
use rowplane::schema::resource::Verb;
use rowplane::storage::{Backend, Change, Expect, Key, Mutation, Outcome, ResourceId, Row, Scan};
use rowplane::tree::{Value, json};

use support::raced::Raced;
use support::server::Setup;
use support::verbs::api_over;

on_both_databases! {
    nothing_is_created_in_a_namespace_that_is_gone,
    nothing_is_created_in_a_namespace_that_is_being_deleted,
    a_namespace_that_changes_otherwise_is_not_in_the_way,
    a_namespace_that_never_stands_still_ends_the_attempts,
    an_object_that_goes_while_it_is_applied_is_not_made_anew,
    what_a_service_has_claimed_is_given_back,
}

/// What another server does to the namespace `t`.
#[derive(Clone, Copy)]
enum Deed {
    Label,
    Terminate,
    Delete,
}

/// An API with the namespace `t`. Between admission and commit of a write to this resource, another server carries out
/// the deed, at most this many times.
async fn raced(
    setup: &Setup,
    plural: &'static str,
    deed: Deed,
    times: usize,
) -> (Arc<Api>, Arc<AtomicUsize>) {
    let inner = setup.database.open().await;
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    let backend = Raced::new(inner, move |backend, batch| {
        let count = count.clone();
        async move {
            let resource = id(&*backend, plural).await;
            let concerned = batch.iter().any(|mutation| mutation.key.resource == resource);
            if concerned && count.load(Ordering::SeqCst) < times {
                count.fetch_add(1, Ordering::SeqCst);
                act(&*backend, deed).await;
            }
        }
    });
    let api = api_over(backend, |prefix| generate_name(prefix, &mut rand::rng())).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await.expect("a namespace");
    (api, done)
}

async fn id(backend: &dyn Backend, plural: &str) -> ResourceId {
    backend.resource_ids(&[GroupResource::new("", plural)]).await.expect("an id")[0]
}

async fn act(backend: &dyn Backend, deed: Deed) {
    let namespaces = id(backend, "namespaces").await;
    let now = backend.clock().await.expect("clock").revision;
    let rows: Vec<Row> =
        backend.scan(Scan::all(namespaces), now).await.expect("scan").try_collect().await.expect("rows");
    let found = rows.into_iter().find(|row| &*row.name == "t").expect("the namespace");
    let object = Draft::parse("", "t", found.value).into_object(found.revision);
    let mut object = Value::Object(object.to_map().expect("decodable"));
    match deed {
        Deed::Label => object["metadata"]["labels"] = json!({"at": found.revision.to_string()}),
        Deed::Terminate => object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into(),
        Deed::Delete => {}
    }
    let change = match (deed, object) {
        (Deed::Delete, _) => Change::Delete,
        (_, Value::Object(object)) => Change::Put {
            uid: "u".into(),
            stored_version: "v1".into(),
            value: Draft::encode("", "t", object, Default::default()).into(),
        },
        _ => unreachable!("an object"),
    };
    let mutation = Mutation::new(Key::new(namespaces, "", "t"), Expect::At(found.revision), change);
    let outcome = backend.commit(&[mutation], Revision(0)).await.expect("commit").outcomes[0];
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
}

async fn create(api: &Api, plural: &str, namespace: &str, object: Value) -> Result<Answer, Error> {
    let resource = api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural);
    let Value::Object(object) = object else { unreachable!("an object") };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    api.create(&request, Body::Object(&object)).await
}

async fn apply(api: &Api, name: &str) -> Result<(), Error> {
    let resource = api.resources.get(&Gvr::fixed("v1", "configmaps")).expect("configmaps");
    let target = Target { resource, namespace: "t", name };
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
    let options = WriteOptions {
        field_manager: Some("m".to_owned()),
        conflicts: Conflicts::Force,
        ..WriteOptions::default()
    };
    let request = Request::own(Verb::Patch, target).with(&options);
    api.patch(&request, PatchKind::Apply, config.to_string().as_bytes()).await.map(drop)
}

async fn count(api: &Api, plural: &str) -> usize {
    let state = api.cache.fresh().await.expect("a state");
    state.objects(api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural).id).len()
}

async fn post(api: &Api, name: &str) -> Result<Answer, Error> {
    create(api, "configmaps", "t", json!({"metadata": {"name": name}})).await
}

async fn nothing_is_created_in_a_namespace_that_is_gone(setup: Setup) {
    let (api, _) = raced(&setup, "configmaps", Deed::Delete, 1).await;
    let refused = post(&api, "a").await.map(drop).expect_err("the namespace is gone");
    assert_eq!(refused.to_string(), "namespaces \"t\" not found");
    assert!(matches!(refused, Error::NotFound { .. }), "{refused:?}");
    assert_eq!(count(&api, "configmaps").await, 0);
    assert_eq!(setup.database.number("SELECT COUNT(*) FROM objects WHERE namespace = 't'").await, 0);
}

async fn nothing_is_created_in_a_namespace_that_is_being_deleted(setup: Setup) {
    let (api, done) = raced(&setup, "configmaps", Deed::Terminate, 1).await;
    for attempt in 0..3 {
        // By POST and by apply; in a later attempt the namespace changes before the first write, too.
        let refused = match attempt {
            1 => apply(&api, "a").await,
            _ => post(&api, "a").await.map(drop),
        };
        let Err(Error::ForbiddenBecause { causes, reason, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(causes[0].reason, CauseReason::NamespaceTerminating);
        assert!(reason.contains("because it is being terminated"), "{reason}");
    }
    assert_eq!(done.load(Ordering::SeqCst), 1);
    assert_eq!(count(&api, "configmaps").await, 0);
}

async fn a_namespace_that_changes_otherwise_is_not_in_the_way(setup: Setup) {
    // One less than the number of attempts.
    let (api, done) = raced(&setup, "configmaps", Deed::Label, 15).await;
    post(&api, "a").await.expect("created");
    assert_eq!(done.load(Ordering::SeqCst), 15, "each attempt met another version");
    apply(&api, "b").await.expect("created");
    assert_eq!(count(&api, "configmaps").await, 2);
}

async fn a_namespace_that_never_stands_still_ends_the_attempts(setup: Setup) {
    let (api, done) = raced(&setup, "configmaps", Deed::Label, usize::MAX).await;
    for attempts in [16, 32] {
        let refused = match attempts {
            16 => post(&api, "a").await.map(drop),
            _ => apply(&api, "a").await,
        };
        let Err(Error::ServerTimeout { operation, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(operation, "create");
        assert_eq!(done.load(Ordering::SeqCst), attempts, "bounded");
    }
    assert_eq!(count(&api, "configmaps").await, 0);
}

/// An update becomes a create if the object is deleted after admission, and then it needs the namespace.
async fn an_object_that_goes_while_it_is_applied_is_not_made_anew(setup: Setup) {
    let inner = setup.database.open().await;
    let armed = Arc::new(AtomicUsize::new(0));
    let trigger = armed.clone();
    let backend = Raced::new(inner, move |backend, batch| {
        let trigger = trigger.clone();
        async move {
            let update = match &batch[..] {
                [Mutation { key, expect: Expect::At(found), .. }] if &*key.name == "a" => {
                    (key.clone(), *found)
                }
                _ => return,
            };
            if trigger.swap(0, Ordering::SeqCst) == 1 {
                let removal = Mutation::new(update.0, Expect::At(update.1), Change::Delete);
                backend.commit(&[removal], Revision(0)).await.expect("commit");
                act(&*backend, Deed::Terminate).await;
            }
        }
    });
    let api = api_over(backend, |prefix| generate_name(prefix, &mut rand::rng())).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await.expect("a namespace");
    post(&api, "a").await.expect("created");
    armed.store(1, Ordering::SeqCst);
    let refused = apply(&api, "a").await;
    assert!(matches!(refused, Err(Error::ForbiddenBecause { .. })), "{refused:?}");
    assert_eq!(count(&api, "configmaps").await, 0);
}

async fn what_a_service_has_claimed_is_given_back(setup: Setup) {
    let (api, done) = raced(&setup, "services", Deed::Delete, 1).await;
    let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    let service = json!({"metadata": {"name": "s"}, "spec": spec});
    let refused = create(&api, "services", "t", service).await.map(drop);
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    assert_eq!(done.load(Ordering::SeqCst), 1, "behind the claims");
    let state = api.cache.fresh().await.expect("a state");
    assert!(state.objects(api.hidden.node_ports.id()).is_empty());
    assert!(api.orphaned_claims(&state).is_empty());
    assert_eq!(count(&api, "services").await, 0);
    let claims = api.resources.get(&Gvr::fixed("networking.k8s.io/v1", "ipaddresses")).expect("addresses").id;
    assert!(state.objects(claims).is_empty());
}
