//! Tests of `auth::authorizer`.

use rowplane_access::auth::authorizer::Attributes;
use rowplane_access::auth::authorizer::Reason;
use rowplane_access::auth::authorizer::aggregate;
use rowplane_objects::user::User;

fn user(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

fn get_pod(user: &User) -> Attributes<'_> {
    Attributes {
        version: "v1",
        resource: "pods",
        namespace: "ns",
        name: "x",
        ..Attributes::of_path(user, "get", "/api/v1/namespaces/ns/pods/x")
    }
}

#[test]
fn refusals_read_like_upstream() {
    let u = user("u");
    let texts = [
        (
            get_pod(&u),
            r#"pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "ns""#,
        ),
        (
            Attributes { name: "", namespace: "", verb: "list", ..get_pod(&u) },
            r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            Attributes { group: "apps", resource: "deployments", subresource: "status", ..get_pod(&u) },
            r#"deployments.apps "x" is forbidden: User "u" cannot get resource "deployments/status" in API group "apps" in the namespace "ns""#,
        ),
        (Attributes::of_path(&u, "get", "/metrics"), r#"forbidden: User "u" cannot get path "/metrics""#),
    ];
    for (attributes, text) in texts {
        assert_eq!(attributes.forbidden("").to_string(), text);
    }
}

#[test]
fn hostile_names_are_escaped() {
    let mallory = user("<b>\"\n");
    assert_eq!(
        Attributes::of_path(&mallory, "get", "/x").forbidden("no").to_string(),
        r#"forbidden: User "&lt;b&gt;\"\n" cannot get path "/x": no"#
    );
}

#[test]
fn reasons_and_errors_are_joined_as_upstream_joins_them() {
    let (u, none) = (user("u"), Reason::None);
    let attributes = get_pod(&u);
    let (rbac, hook) = ("rbac".into(), "hook".into());
    let both = none.and(Reason::Fixed("a")).and(Reason::failed("no").named(&hook));
    let both = both.and(Reason::Fixed("b").named(&rbac)).and(Reason::None.named(&rbac));
    assert_eq!(both.text(&attributes), "a\nrbac: b");
    assert_eq!(both.error().as_deref(), Some("no"));
    assert_eq!(both.and(Reason::failed("why")).error().as_deref(), Some("[no, why]"));
    assert_eq!(aggregate(["a".to_owned(), "a".to_owned()]).as_deref(), Some("a"));
}
