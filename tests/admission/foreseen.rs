//! A write that goes ahead by what its server knows of the user's rights: they may end, at another server, before it is
//! committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rowplane::api::decode::Body;
use rowplane::api::error::Error;
use rowplane::api::meta::generate_name;
use rowplane::api::options::delete::DeleteOptions;
use rowplane::api::request::Request;
use rowplane::api::{Api, Target};
use rowplane::auth::authorizer::{Attributes, Authorization, Member};
use rowplane::auth::foreseen::Foreseen;
use rowplane::auth::rbac::{ROLE_BINDINGS, ROLES, Rbac};
use rowplane::revision::Revision;
use rowplane::schema::names::Gvr;
use rowplane::schema::resource::Verb;
use rowplane::storage::{Change, Mutation, Outcome, Requirement};
use rowplane::tree::{Value, json};
use rowplane::user::User;

use crate::support::database::Database;
use crate::support::raced::Raced;
use crate::support::verbs::api_over;

/// Who may write ConfigMaps in the namespace `t` by a binding and its role.
struct Site {
    api: Arc<Api>,
    authorization: Authorization,
    user: User,
    /// How often another server takes the right away, before a commit of a ConfigMap.
    takes: Arc<AtomicUsize>,
    _database: Database,
}

async fn make(api: &Api, resource: &Gvr, namespace: &str, object: Value) -> Revision {
    let resource = api.resources.get(resource).expect("a resource");
    let Value::Object(object) = object else { unreachable!("an object") };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    api.create(&request, Body::Object(&object)).await.expect("created");
    api.cache.any().revision
}

impl Site {
    async fn start() -> Self {
        let database = Database::postgres().await;
        let takes = Arc::new(AtomicUsize::new(0));
        let left = takes.clone();
        let backend = Raced::new(database.open().await, move |backend, batch: Vec<Mutation>| {
            let left = left.clone();
            async move {
                let mut required = batch.iter().flat_map(|mutation| &mutation.requires);
                let concerned = required.find(|one| &*one.key.name == "u").cloned();
                let Some(Requirement { key, expect }) = concerned else { return };
                let is_left = |left: usize| left.checked_sub(1);
                if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_left).is_ok() {
                    let removal = Mutation::new(key, expect, Change::Delete);
                    let outcomes = backend.commit(&[removal], Revision(0)).await.expect("commit").outcomes;
                    assert!(matches!(outcomes[..], [Outcome::Committed(_)]), "{outcomes:?}");
                }
            }
        });
        let api = api_over(backend, |prefix| generate_name(prefix, &mut rand::rng())).await;
        make(&api, &Gvr::fixed("v1", "namespaces"), "", json!({"metadata": {"name": "t"}})).await;
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete"]});
        make(&api, &ROLES, "t", json!({"metadata": {"name": "writer"}, "rules": [rule]})).await;
        let rbac = Rbac::new(api.cache.clone(), |gvr| Some(api.resources.get(gvr)?.id)).expect("roles");
        let authorization = Authorization::default();
        let member = Member { authorizer: Arc::new(rbac), name: None, decisions: None };
        authorization.install(vec![member], &api.cache);
        let user = User { name: "u".to_owned(), ..User::default() };
        let site = Self { api, authorization, user, takes, _database: database };
        site.bind("u").await;
        site
    }

    async fn bind(&self, name: &str) -> Revision {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"});
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"});
        let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        make(&self.api, &ROLE_BINDINGS, "t", binding).await
    }

    /// What the door finds about a request of the user's.
    fn foreseen(&self, verb: &str, name: &str) -> Option<Foreseen> {
        let attributes = Attributes {
            version: "v1",
            resource: "configmaps",
            namespace: "t",
            name,
            ..Attributes::of_path(&self.user, verb, "")
        };
        self.authorization.foreseen(&attributes).map(|grant| Foreseen::new(grant, None))
    }

    fn request<'a>(&'a self, verb: Verb, name: &'a str, foreseen: &'a Foreseen) -> Request<'a> {
        let resource = self.api.resources.get(&Gvr::fixed("v1", "configmaps")).expect("configmaps");
        Request {
            user: &self.user,
            authorizer: &self.authorization,
            foreseen: Some(foreseen),
            ..Request::own(verb, Target { resource, namespace: "t", name })
        }
        .seen_by_hooks()
    }

    async fn create(&self, name: &str, foreseen: &Foreseen) -> Result<(), Error> {
        let object = json!({"metadata": {"name": name}});
        let request = self.request(Verb::Create, "", foreseen);
        self.api.create(&request, Body::Object(object.as_object().expect("an object"))).await.map(drop)
    }

    async fn delete(&self, name: &str, foreseen: &Foreseen) -> Result<(), Error> {
        let options = DeleteOptions::NONE;
        self.api.delete(&self.request(Verb::Delete, name, foreseen).with(&options)).await.map(drop)
    }

    fn count(&self) -> usize {
        let resource = self.api.resources.get(&Gvr::fixed("v1", "configmaps")).expect("configmaps");
        self.api.cache.any().objects(resource.id).len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_confirms_what_was_foreseen() {
    let site = Site::start().await;
    let foreseen = site.foreseen("create", "").expect("a right");
    let rows: Vec<_> = foreseen.rows().iter().map(|row| (&*row.key.namespace, &*row.key.name)).collect();
    assert_eq!(rows, [("t", "u"), ("t", "writer")], "the binding and its role");
    site.create("a", &foreseen).await.expect("created");
    assert!(!foreseen.is_open() && foreseen.rows().is_empty());
    let foreseen = site.foreseen("delete", "a").expect("a right");
    site.delete("a", &foreseen).await.expect("deleted");
    assert!(!foreseen.is_open());
    assert!(site.foreseen("update", "a").is_none(), "who has no right is told so by a decision");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_ends_before_the_commit_permits_nothing() {
    let site = Site::start().await;
    let foreseen = site.foreseen("create", "").expect("a right");
    site.create("a", &foreseen).await.expect("created");
    for verb in ["create", "delete"] {
        let foreseen = site.foreseen(verb, "a").expect("a right");
        site.takes.store(1, Ordering::SeqCst);
        let refused = match verb {
            "create" => site.create("b", &foreseen).await,
            _ => site.delete("a", &foreseen).await,
        };
        let Err(Error::Forbidden { reason, .. }) = refused else { panic!("{refused:?}") };
        assert!(reason.starts_with(&format!("User \"u\" cannot {verb} resource \"configmaps\"")), "{reason}");
        assert_eq!((site.takes.load(Ordering::SeqCst), site.count()), (0, 1));
        assert!(foreseen.is_open(), "nobody has confirmed it");
        site.bind("u").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_the_right_by_another_binding_writes_all_the_same() {
    let site = Site::start().await;
    let foreseen = site.foreseen("create", "").expect("a right");
    site.bind("v").await;
    site.takes.store(1, Ordering::SeqCst);
    site.create("a", &foreseen).await.expect("created");
    assert_eq!((site.takes.load(Ordering::SeqCst), site.count()), (0, 1));
    assert!(!foreseen.is_open());
}

/// The state that this server has is good for a write, but not for an answer without one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_a_commit_is_not_confirmed() {
    let site = Site::start().await;
    let foreseen = site.foreseen("create", "").expect("a right");
    site.create("a", &foreseen).await.expect("created");
    let foreseen = site.foreseen("create", "").expect("a right");
    let refused = site.create("a", &foreseen).await;
    assert!(matches!(refused, Err(Error::AlreadyExists { .. })), "{refused:?}");
    assert!(foreseen.is_open());
}
