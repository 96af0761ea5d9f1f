//! Tests of `auth::impersonation`.

use rowplane_access::auth::authorizer::{Answer, Attributes, Authorizer, Decision, Reason};
use rowplane_access::auth::impersonation::Impersonator;
use rowplane_objects::user::{MASTERS, UNAUTHENTICATED, User};

/// Allows exactly what it lists, each as `verb resource[/subresource] name`, where a star is any name.
struct Rights(&'static [&'static str]);

impl Authorizer for Rights {
    fn decide<'a>(&'a self, asked: &'a Attributes<'a>) -> Answer<'a> {
        let resource = match asked.subresource {
            "" => asked.resource.to_owned(),
            subresource => format!("{}/{subresource}", asked.resource),
        };
        let named = format!("{} {resource} {}", asked.verb, asked.name);
        let any = format!("{} {resource} *", asked.verb);
        if self.0.iter().any(|right| *right == named || *right == any) {
            Answer::Now(Decision::Allow(Reason::None))
        } else {
            Answer::Now(Decision::Deny(Reason::None))
        }
    }
}

fn user(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

fn in_groups(name: &str, groups: &[&str]) -> User {
    User { groups: groups.iter().map(|group| (*group).to_owned()).collect(), ..user(name) }
}

/// Lists Pods as somebody else. The user and the constraint, or the refusal.
async fn act(
    requester: &User,
    wanted: &User,
    rights: &'static [&'static str],
) -> Result<(User, &'static str), String> {
    act_with(&Impersonator::default(), requester, wanted, rights).await
}

async fn act_with(
    impersonator: &Impersonator,
    requester: &User,
    wanted: &User,
    rights: &'static [&'static str],
) -> Result<(User, &'static str), String> {
    let attributes = Attributes {
        version: "v1",
        resource: "pods",
        namespace: "ns",
        ..Attributes::of_path(requester, "list", "")
    };
    let found = impersonator.impersonate(wanted, &attributes, &Rights(rights)).await;
    let found = found.map(|found| (User::clone(&found.user), found.constraint.unwrap_or("legacy")));
    found.map_err(|error| error.to_string())
}

#[tokio::test]
async fn auth_37_to_39_users() {
    let (u, bob) = (user("u"), user("bob"));
    let refused = act(&u, &bob, &[]).await.unwrap_err();
    assert_eq!(
        refused,
        "pods is forbidden: User \"u\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"ns\""
    );
    let as_bob = in_groups("bob", &["system:authenticated"]);
    let legacy = act(&u, &bob, &["impersonate users bob"]).await;
    assert_eq!(legacy, Ok((as_bob.clone(), "legacy")));
    let constrained: &[&str] = &["impersonate:user-info users bob", "impersonate-on:user-info:list pods *"];
    assert_eq!(act(&u, &bob, constrained).await, Ok((as_bob, "impersonate:user-info")));
    let refused = act(&u, &bob, &["impersonate-on:user-info:list pods *"]).await.unwrap_err();
    let text = "users.authentication.k8s.io \"bob\" is forbidden: User \"u\" cannot impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at the cluster scope";
    assert_eq!(refused, text);
}

#[tokio::test]
async fn auth_38_every_part_of_a_user_is_asked_for() {
    let u = user("u");
    let mut wanted = in_groups("bob", &["g"]);
    wanted.uid = "7".to_owned();
    wanted.extra.insert("example.com/scopes".to_owned(), vec!["a".to_owned()]);
    let all: &[&str] = &[
        "impersonate users bob",
        "impersonate uids 7",
        "impersonate groups g",
        "impersonate userextras/example.com/scopes a",
    ];
    let (found, _) = act(&u, &wanted, all).await.unwrap();
    assert_eq!(found.groups, ["g", "system:authenticated"]);
    assert_eq!((&*found.uid, &found.extra), ("7", &wanted.extra));
    for missing in 0..all.len() {
        let rights: Vec<&str> = (0..all.len()).filter(|at| *at != missing).map(|at| all[at]).collect();
        assert!(act(&u, &wanted, rights.leak()).await.is_err(), "{missing}");
    }
}

#[tokio::test]
async fn auth_40_some_groups_are_nobodys() {
    let everything: &[&str] = &[
        "impersonate:user-info users *",
        "impersonate:user-info groups *",
        "impersonate-on:user-info:list pods *",
    ];
    let refused = act(&user("u"), &in_groups("bob", &[MASTERS]), everything).await.unwrap_err();
    assert!(refused.ends_with(": impersonating the system:masters group is not allowed"), "{refused}");
    let refused = act(&user("u"), &in_groups("bob", &[""]), everything).await.unwrap_err();
    assert!(refused.ends_with(": impersonating the empty string group is not allowed"), "{refused}");
    let many = in_groups("bob", &["a", "b", "c", "d"]);
    assert!(act(&user("u"), &many, everything).await.is_ok());
}

#[tokio::test]
async fn auth_41_nodes_and_service_accounts() {
    let u = user("u");
    let node = user("system:node:n");
    let rights: &[&str] =
        &["impersonate:arbitrary-node nodes n", "impersonate-on:arbitrary-node:list pods *"];
    let (found, constraint) = act(&u, &node, rights).await.unwrap();
    assert_eq!(
        (found.groups, constraint),
        (vec!["system:nodes".into(), "system:authenticated".into()], "impersonate:arbitrary-node")
    );
    let account = user("system:serviceaccount:ns:s");
    let rights: &[&str] =
        &["impersonate:serviceaccount serviceaccounts s", "impersonate-on:serviceaccount:list pods *"];
    let (found, constraint) = act(&u, &account, rights).await.unwrap();
    assert_eq!(constraint, "impersonate:serviceaccount");
    assert_eq!(found.groups, ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]);
    let refused = act(&u, &in_groups("system:serviceaccount:ns:s", &["g"]), rights).await.unwrap_err();
    let text = "serviceaccounts \"s\" is forbidden: User \"u\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"ns\"";
    assert_eq!(refused, text);
}

#[tokio::test]
async fn auth_42_an_account_may_be_its_own_node_alone() {
    let mut agent = user("system:serviceaccount:kube-system:agent");
    agent.extra.insert("authentication.kubernetes.io/node-name".to_owned(), vec!["n".to_owned()]);
    let rights: &[&str] =
        &["impersonate:associated-node nodes *", "impersonate-on:associated-node:list pods *"];
    let (found, constraint) = act(&agent, &user("system:node:n"), rights).await.unwrap();
    assert_eq!((&*found.name, constraint), ("system:node:n", "impersonate:associated-node"));
    assert!(act(&agent, &user("system:node:m"), rights).await.is_err());
}

#[tokio::test]
async fn the_mode_that_has_passed_goes_first() {
    let impersonator = Impersonator::default();
    let (u, bob) = (user("u"), user("bob"));
    act_with(&impersonator, &u, &bob, &["impersonate users bob"]).await.unwrap();
    let refused = act_with(&impersonator, &u, &bob, &[]).await.unwrap_err();
    let text = "users \"bob\" is forbidden: User \"u\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    assert_eq!(refused, text);
}

#[tokio::test]
async fn nobody_becomes_authenticated() {
    let (found, _) = act(&user("u"), &user("system:anonymous"), &["impersonate users *"]).await.unwrap();
    assert_eq!(found.groups, [UNAUTHENTICATED]);
}
