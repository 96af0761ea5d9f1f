//! What a decision by roles and bindings costs, and what the index takes in memory, however many bindings there are; what
//! tokens of service accounts cost, encryption at rest, and audit.
//!
//!     cargo bench --bench authorization [-- --seconds N]
//!
//! RoleBindings of one user each, in a thousand namespaces, to 200 ClusterRoles, beside the policy of the start.

mod auditing;
#[path = "../codec/counting.rs"]
mod counting;
mod sealing;
#[path = "../codec/timing.rs"]
mod timing;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use rowplane::auth::authorizer::{Answer, Attributes, Authorizer, Decision};
use rowplane::auth::rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Rbac, bootstrap};
use rowplane::cache::Cache;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::schema::names::Gvr;
use rowplane::storage::{Change, Expect, HighWaterMark, Key, Mutation, ResourceId, memory};
use rowplane::tree::{Value, json};
use rowplane::user::User;

use self::counting::Counting;
use self::timing::{Measured, measure};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROLE_COUNT: usize = 200;
const NAMESPACES: usize = 1000;

#[derive(Parser)]
struct Arguments {
    /// How long each line runs.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let duration = Duration::from_secs_f64(arguments.seconds);
    runtime.block_on(auditing::auditing(duration));
    runtime.block_on(tokens::tokens(duration));
    runtime.block_on(sealing::sealing(duration));
    for count in [1000, 10_000, 100_000] {
        runtime.block_on(bindings(count, duration));
    }
}

async fn bindings(count: usize, duration: Duration) {
    let resources = [CLUSTER_ROLES, ROLES, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS];
    let backend = memory::open();
    let ids = backend.resource_ids(&resources.each_ref().map(Gvr::group_resource)).await.expect("ids");
    let id = |wanted: &Gvr| resources.iter().position(|one| one == wanted).map(|at| ids[at]);
    let objects: Vec<(ResourceId, Value)> = objects(count)
        .into_iter()
        .map(|(resource, object)| (id(&resource).expect("an id"), object))
        .collect();
    for batch in objects.chunks(200) {
        let batch: Vec<Mutation> = batch.iter().map(mutation).collect();
        backend.commit(&batch, Revision(0)).await.expect("committed");
    }
    drop(objects);
    let mark = Arc::new(HighWaterMark::default());
    let (cache, _sink) =
        Cache::start(backend.clone(), Draft::parse, &ids, mark, &Runtime::default(), &Default::default())
            .await
            .expect("a cache");
    let before = counting::held();
    let rbac = Rbac::new(cache, id).expect("all resources");
    println!("{count} RoleBindings: {} bytes of index each", (counting::held() - before) / count as u64);
    let user = |name: &str| User {
        name: name.to_owned(),
        groups: ["developers", "eu", "system:authenticated"].map(str::to_owned).into(),
        ..User::default()
    };
    let (bound, unbound) = (user("user-7"), user("nobody"));
    let ask = |user: &User, verb: &str, resource: &str, path: &str| {
        let attributes = Attributes { resource, namespace: "ns-7", ..Attributes::of_path(user, verb, path) };
        matches!(rbac.decide(&attributes), Answer::Now(Decision::Allow(_)))
    };
    assert!(ask(&bound, "get", "configmaps", "") && !ask(&bound, "delete", "configmaps", ""));
    assert!(ask(&unbound, "get", "", "/apis") && !ask(&unbound, "get", "configmaps", ""));
    let lines: [(&str, Measured); 4] = [
        ("allowed by a RoleBinding", measure(duration, || ask(&bound, "get", "configmaps", ""))),
        ("allowed to a group, by path", measure(duration, || ask(&unbound, "get", "", "/apis"))),
        ("not allowed, bound", measure(duration, || ask(&bound, "delete", "configmaps", ""))),
        ("not allowed, not bound", measure(duration, || ask(&unbound, "get", "configmaps", ""))),
    ];
    for (name, line) in &lines {
        println!("  {name}: {:.0} ns", line.nanoseconds());
    }
    Measured::print(&lines);
}

fn objects(count: usize) -> Vec<(Gvr, Value)> {
    let mut objects: Vec<(Gvr, Value)> = bootstrap::objects()
        .into_iter()
        .map(|object| {
            let resource = match object["kind"].as_str() {
                Some("ClusterRole") => CLUSTER_ROLES,
                Some("Role") => ROLES,
                Some("ClusterRoleBinding") => CLUSTER_ROLE_BINDINGS,
                _ => ROLE_BINDINGS,
            };
            (resource, Value::Object(object))
        })
        .collect();
    for n in 0..ROLE_COUNT {
        let verbs = ["get", "list", "watch"];
        let rules: Vec<Value> = ["configmaps", "secrets", "pods", "services", "events", "endpoints"]
            .map(|resource| json!({"verbs": verbs, "apiGroups": [""], "resources": [resource]}))
            .into();
        let role = json!({"kind": "ClusterRole", "metadata": {"name": format!("role-{n}")}, "rules": rules});
        objects.push((CLUSTER_ROLES, role));
    }
    for n in 0..count {
        let binding = json!({
            "kind": "RoleBinding",
            "metadata": {"name": format!("binding-{n}"), "namespace": format!("ns-{}", n % NAMESPACES)},
            "roleRef": {"kind": "ClusterRole", "name": format!("role-{}", n % ROLE_COUNT)},
            "subjects": [{"kind": "User", "name": format!("user-{n}")}],
        });
        objects.push((ROLE_BINDINGS, binding));
    }
    objects
}

fn mutation((resource, object): &(ResourceId, Value)) -> Mutation {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let draft = Draft::of_json(&namespace, &name, object.to_string().into());
    let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
    Mutation::new(Key::new(*resource, &namespace, &name), Expect::Absent, change)
}
