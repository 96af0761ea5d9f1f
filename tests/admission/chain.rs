//! A plugin of the test's own behind the built-in ones: it sees every write, and can stop each of them.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use rowplane::api::admission::{Admission, Attempt, Operation, Verdict};
use rowplane::api::decode::{Body, Encoded};
use rowplane::api::error::Error;
use rowplane::api::options::DryRun;
use rowplane::api::options::delete::DeleteOptions;
use rowplane::api::options::list::{Collection, ListOptions};
use rowplane::api::options::query::Query;
use rowplane::api::options::write::WriteOptions;
use rowplane::api::request::{Options, Request};
use rowplane::api::{Api, ObjectMap, Target, fields, metadata_mut};
use rowplane::codec::media_type::MediaType;
use rowplane::metrics::Metrics;
use rowplane::patch::PatchKind;
use rowplane::patch::apply::ownership::Conflicts;
use rowplane::schema::names::Gvr;
use rowplane::schema::resource::Verb;
use rowplane::storage::{Expect, Key, Requirement};
use rowplane::tree::{Value, json};
use rowplane::user::{MASTERS, User};

use crate::support::server::Setup;
use crate::support::verbs::{api_that_admits, chain};

on_both_databases! {
    a_plugin_sees_every_operation_and_stops_it,
    what_a_plugin_adds_belongs_to_nobody,
    what_a_plugin_relied_on_still_holds_at_the_commit,
}

/// The plugin's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Yes,
    /// Contains the phase in which it refuses.
    Refuses(&'static str),
    Fails(&'static str),
}

/// Records everything that it sees of one user's writes, after a query of the store.
struct Recorder {
    seen: Arc<Mutex<Vec<String>>>,
    says: Arc<Mutex<Says>>,
}

impl Recorder {
    fn record(&self, phase: &'static str, attempt: &Attempt<'_>) -> Result<(), Error> {
        let Attempt { request, operation, target, object, old, .. } = attempt;
        let dry = if request.options.dry_run() == DryRun::Yes { " dry" } else { "" };
        let options = match request.options {
            Options::None => "no options",
            Options::Write(_) => "write",
            Options::Delete(_) => "delete",
        };
        let (verb, plural) = (request.verb.as_str(), &target.resource.definition.plural);
        let (old, new) = (shown(*old), shown(object.as_ref()));
        let what = format!("{plural}/{}/{} ({options}{dry})", target.name, request.subresource);
        self.seen.lock().unwrap().push(format!("{phase}: {verb} {operation:?} {what} {old} -> {new}"));
        match *self.says.lock().unwrap() {
            Says::Refuses(when) if when == phase => {
                let resource = target.resource.group_resource();
                Err(Error::Forbidden { resource, name: target.name.to_owned(), reason: "no".to_owned() })
            }
            Says::Fails(when) if when == phase => Err(Error::Internal("lost the webhook".to_owned())),
            _ => Ok(()),
        }
    }
}

impl Admission for Recorder {
    fn handles(&self, _: Operation, request: &Request<'_>) -> bool {
        request.user.name == "alice"
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Later(Box::pin(async move {
            attempt.cluster.cache.fresh().await?;
            tokio::task::yield_now().await;
            self.record("mutate", attempt)
        }))
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(self.record("validate", attempt))
    }
}

/// The values in which versions of an object differ.
fn shown(object: Option<&ObjectMap>) -> String {
    let Some(object) = object else { return "nothing".to_owned() };
    let paths: [&[&str]; 5] = [
        &["data", "k"],
        &["spec", "holderIdentity"],
        &["target", "name"],
        &["status", "observedGeneration"],
        &["spec", "replicas"],
    ];
    let found = paths.iter().find_map(|path| fields::at(object, path)).cloned();
    format!("{} {}", fields::text(object, &["kind"]), found.unwrap_or_default())
}

/// A request by alice.
struct Call {
    verb: Verb,
    place: Gvr,
    name: &'static str,
    subresource: &'static str,
    patch: Option<PatchKind>,
    body: Value,
}

const CONFIGMAPS: Gvr = Gvr::fixed("v1", "configmaps");
const LEASES: Gvr = Gvr::fixed("coordination.k8s.io/v1", "leases");
const DEPLOYMENTS: Gvr = Gvr::fixed("apps/v1", "deployments");
const PODS: Gvr = Gvr::fixed("v1", "pods");

impl Call {
    fn new(verb: Verb, place: Gvr, name: &'static str, body: Value) -> Self {
        Self { verb, place, name, subresource: "", patch: None, body }
    }

    fn patch(kind: PatchKind, place: Gvr, name: &'static str, body: Value) -> Self {
        Self { patch: Some(kind), ..Self::new(Verb::Patch, place, name, body) }
    }

    fn on(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    async fn run(&self, api: &Api, dry_run: DryRun) -> Result<(), Error> {
        let alice = User { name: "alice".to_owned(), groups: vec![MASTERS.to_owned()], ..User::default() };
        let resource = api.resources.get(&self.place).expect("a resource");
        let write = WriteOptions { dry_run, conflicts: Conflicts::Force, ..WriteOptions::default() };
        let delete = DeleteOptions { dry_run, ..DeleteOptions::default() };
        let is_deletion = matches!(self.verb, Verb::Delete | Verb::DeleteCollection);
        let request = &Request {
            user: &alice,
            subresource: self.subresource,
            options: if is_deletion { Options::Delete(&delete) } else { Options::Write(&write) },
            ..Request::own(self.verb, Target { resource, namespace: "t", name: self.name })
        };
        let encoded = Encoded { media: MediaType::Json, bytes: self.body.to_string().into() };
        let body = Body::Encoded(&encoded);
        match (self.verb, self.subresource) {
            (Verb::Create, "binding") => api.bind(request, &encoded).await,
            (Verb::Create, "eviction") => api.evict(request, &encoded).await,
            (Verb::Create, _) => api.create(request, body).await.map(drop),
            (Verb::Update, _) => api.update(request, body).await.map(drop),
            (Verb::Delete, _) => api.delete(request).await.map(drop),
            (Verb::DeleteCollection, _) => {
                let group_resource = self.place.group_resource();
                let collection = Collection {
                    resource: &group_resource,
                    namespaced: true,
                    namespace: Some("t"),
                    name: None,
                    fields: &resource.behavior.fields,
                    door: None,
                    ask: None,
                };
                let keys = api.token_keys.load();
                let list = ListOptions::parse(&Query::default(), collection, &keys).expect("options");
                api.delete_collection(request, resource, Some("t"), list).await.map(drop)
            }
            _ => api.patch(request, self.patch.expect("a patch"), &encoded.bytes).await.map(drop),
        }
    }
}

fn config(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": value}})
}

fn template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// Every operation, with what the plugin sees of it, except verb and options.
fn calls() -> Vec<(Call, &'static str)> {
    let named = |name: &str, value: &str| {
        let mut object = config(value);
        object["metadata"] = json!({"name": name});
        object
    };
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template(),
    }});
    let mut status = deployment.clone();
    status["status"] = json!({"observedGeneration": 7});
    let scale = json!({"metadata": {"name": "d"}, "spec": {"replicas": 4}});
    let mut pod = template();
    pod["metadata"]["name"] = "p".into();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let json_patch = json!([{"op": "replace", "path": "/data/k", "value": "3"}]);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "h"}});
    let rescaled = json!({"spec": {"replicas": 5}});
    let applied = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "d"}, "spec": {"replicas": 6}});
    use PatchKind::{Apply, Json, Merge, StrategicMerge};
    vec![
        (
            Call::new(Verb::Create, CONFIGMAPS, "", named("a", "1")),
            r#"create Create configmaps/a/ nothing -> ConfigMap "1""#,
        ),
        (
            Call::new(Verb::Update, CONFIGMAPS, "a", named("a", "2")),
            r#"update Update configmaps/a/ ConfigMap "1" -> ConfigMap "2""#,
        ),
        (
            Call::patch(Json, CONFIGMAPS, "a", json_patch),
            r#"patch Update configmaps/a/ ConfigMap "2" -> ConfigMap "3""#,
        ),
        (
            Call::patch(Merge, CONFIGMAPS, "a", json!({"data": {"k": "4"}})),
            r#"patch Update configmaps/a/ ConfigMap "3" -> ConfigMap "4""#,
        ),
        (
            Call::patch(StrategicMerge, CONFIGMAPS, "a", json!({"data": {"k": "5"}})),
            r#"patch Update configmaps/a/ ConfigMap "4" -> ConfigMap "5""#,
        ),
        (
            Call::patch(Apply, CONFIGMAPS, "b", named("b", "1")),
            r#"patch Create configmaps/b/ nothing -> ConfigMap "1""#,
        ),
        (
            Call::patch(Apply, CONFIGMAPS, "b", named("b", "2")),
            r#"patch Update configmaps/b/ ConfigMap "1" -> ConfigMap "2""#,
        ),
        (Call::new(Verb::Update, LEASES, "l", lease), r#"update Create leases/l/ nothing -> Lease "h""#),
        (
            Call::new(Verb::Create, DEPLOYMENTS, "", deployment),
            "create Create deployments/d/ nothing -> Deployment 3",
        ),
        (
            Call::new(Verb::Update, DEPLOYMENTS, "d", status).on("status"),
            "update Update deployments/d/status Deployment 3 -> Deployment 7",
        ),
        (
            Call::new(Verb::Update, DEPLOYMENTS, "d", scale).on("scale"),
            "update Update deployments/d/scale Scale 3 -> Scale 4",
        ),
        (
            Call::patch(Merge, DEPLOYMENTS, "d", rescaled).on("scale"),
            "patch Update deployments/d/scale Scale 4 -> Scale 5",
        ),
        (
            Call::patch(Apply, DEPLOYMENTS, "d", applied).on("scale"),
            "patch Update deployments/d/scale Scale 5 -> Scale 6",
        ),
        (Call::new(Verb::Create, PODS, "", pod), "create Create pods/p/ nothing -> Pod null"),
        (
            Call::new(Verb::Create, PODS, "p", binding).on("binding"),
            r#"create Create pods/p/binding nothing -> Binding "n""#,
        ),
        (
            Call::new(Verb::Create, PODS, "p", json!({"metadata": {"name": "p"}})).on("eviction"),
            "create Create pods/p/eviction nothing -> Eviction null",
        ),
        (
            Call::new(Verb::Delete, CONFIGMAPS, "a", Value::Null),
            r#"delete Delete configmaps/a/ ConfigMap "5" -> nothing"#,
        ),
        (
            Call::new(Verb::DeleteCollection, CONFIGMAPS, "", Value::Null),
            r#"deletecollection Delete configmaps/b/ ConfigMap "2" -> nothing"#,
        ),
    ]
}

async fn with_namespace(api: &Api) {
    crate::create(api, "namespaces", "", json!({"metadata": {"name": "t"}})).await.expect("a namespace");
}

async fn a_plugin_sees_every_operation_and_stops_it(setup: Setup) {
    let (seen, says) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Says::Yes)));
    let recorder = Recorder { seen: seen.clone(), says: says.clone() };
    let api =
        api_that_admits(setup.database.open().await, chain().with("Recorder", recorder, &Metrics::default()))
            .await;
    with_namespace(&api).await;
    let at = async || api.cache.fresh().await.expect("a state").revision;
    for (call, expected) in calls() {
        let before = at().await;
        for phase in ["mutate", "validate"] {
            *says.lock().unwrap() = Says::Refuses(phase);
            let refused = call.run(&api, DryRun::No).await;
            assert!(matches!(refused, Err(Error::Forbidden { .. })), "{expected}: {refused:?}");
            *says.lock().unwrap() = Says::Fails(phase);
            let failed = call.run(&api, DryRun::No).await;
            assert!(matches!(failed, Err(Error::Internal(_))), "{expected}: {failed:?}");
        }
        *says.lock().unwrap() = Says::Yes;
        let saw = |dry: &str| {
            let (what, change) = expected.rsplit_once("/").expect("a subresource");
            let (subresource, change) = change.split_once(' ').expect("a change");
            let options = if expected.contains("Delete") { "delete" } else { "write" };
            let line = format!("{what}/{subresource} ({options}{dry}) {change}");
            let phases = ["mutate", "validate"].map(|phase| format!("{phase}: {line}"));
            assert_once(&std::mem::take(&mut *seen.lock().unwrap()), &phases);
        };
        seen.lock().unwrap().clear();
        call.run(&api, DryRun::Yes).await.unwrap_or_else(|error| panic!("{expected}: {error}"));
        saw(" dry");
        assert_eq!(at().await, before, "{expected}: nothing is written before");
        call.run(&api, DryRun::No).await.unwrap_or_else(|error| panic!("{expected}: {error}"));
        saw("");
        assert!(at().await > before, "{expected}: written");
    }
}

/// The plugin was called once in each phase, in order; or twice, if the first attempt was based on a state that may
/// have been old.
fn assert_once<T: Debug + PartialEq>(seen: &[T], expected: &[T]) {
    assert!(seen.len().is_multiple_of(expected.len()) && !seen.is_empty(), "{seen:#?}");
    for attempt in seen.chunks(expected.len()) {
        assert_eq!(attempt, expected);
    }
    assert!(seen.len() <= 2 * expected.len(), "{seen:#?}");
}

/// A plugin that labels every object.
struct Labels;

impl Admission for Labels {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && request.user.name == "alice"
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        if let Some(object) = &mut attempt.object {
            fields::object_mut(metadata_mut(object), "labels").insert("by", "plugin".into());
        }
        Verdict::Now(Ok(()))
    }
}

async fn what_a_plugin_adds_belongs_to_nobody(setup: Setup) {
    let api =
        api_that_admits(setup.database.open().await, chain().with("Labels", Labels, &Metrics::default()))
            .await;
    with_namespace(&api).await;
    let read = async || {
        let state = api.cache.fresh().await.expect("a state");
        let configmaps = api.resources.get(&Gvr::fixed("v1", "configmaps")).expect("configmaps").id;
        let object = state.get(configmaps, "t", "a").expect("stored");
        Value::Object(object.to_map().expect("readable"))
    };
    let mut object = config("1");
    object["metadata"] = json!({"name": "a"});
    let replaced = object.clone();
    let patch = Call::patch(PatchKind::Merge, CONFIGMAPS, "a", json!({"metadata": {"labels": null}}));
    let post = Call::new(Verb::Create, CONFIGMAPS, "", object);
    for call in [post, Call::new(Verb::Update, CONFIGMAPS, "a", replaced), patch] {
        call.run(&api, DryRun::No).await.expect("written");
        let stored = read().await;
        assert_eq!(stored["metadata"]["labels"], json!({"by": "plugin"}));
        let managers = stored["metadata"]["managedFields"].to_string();
        assert!(managers.contains("f:data") && !managers.contains("f:by"), "{managers}");
    }
}

/// A plugin that relies on another object, which changes between the first admission and the commit.
struct Relies {
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Admission for Relies {
    fn handles(&self, _: Operation, request: &Request<'_>) -> bool {
        request.user.name == "alice"
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Later(Box::pin(async move {
            let configmaps =
                attempt.cluster.resources.get(&Gvr::fixed("v1", "configmaps")).expect("configmaps");
            let state = attempt.cluster.cache.fresh().await?;
            let limit = state.get(configmaps.id, "t", "limit").expect("the limit");
            let is_first = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(limit.revision().0);
                seen.len() == 1
            };
            let key = Key::new(configmaps.id, "t", "limit");
            attempt.require(Requirement { key, expect: Expect::At(limit.revision()) });
            if is_first {
                let target = Target { resource: configmaps, namespace: "t", name: "limit" };
                let mut object = configmaps.decode_closed(&limit)?;
                object.insert("data", json!({"k": limit.revision().0.to_string()}));
                let expect = Expect::At(limit.revision());
                let mutation = attempt.cluster.put_mutation(target, expect, object)?;
                attempt.cluster.store.write(mutation).await?;
            }
            Ok(())
        }))
    }
}

async fn what_a_plugin_relied_on_still_holds_at_the_commit(setup: Setup) {
    let calls = [
        Call::new(Verb::Create, CONFIGMAPS, "", json!({"metadata": {"name": "a"}})),
        Call::patch(PatchKind::Merge, CONFIGMAPS, "a", json!({"data": {"k": "1"}})),
        Call::new(Verb::Delete, CONFIGMAPS, "a", Value::Null),
    ];
    let seen = Arc::new(Mutex::new(Vec::new()));
    let chain = chain().with("Relies", Relies { seen: seen.clone() }, &Metrics::default());
    let api = api_that_admits(setup.database.open().await, chain).await;
    with_namespace(&api).await;
    crate::post(&api, "limit").await.expect("the limit");
    for call in calls {
        call.run(&api, DryRun::No).await.expect("written");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen.len(), 2, "asked again on the newer state");
        assert!(seen[1] > seen[0], "{seen:?}");
    }
}
