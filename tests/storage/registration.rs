//! Which servers may write.

use rowplane::codec::at_rest::ValueFormat;
use rowplane::revision::Revision;
use rowplane::storage::{
    Backend, Error, Expect, Fence, Key, Mutation, Outcome, Registration, RegistryChange, ResourceId, Terms,
    Units,
};

use crate::support::database::Database;
use crate::support::object::{committed, create, pass, put, resource};

fn registration(server: &str, incarnation: &str) -> RegistryChange {
    let registration = Registration {
        server: server.into(),
        incarnation: incarnation.into(),
        format: ValueFormat::NEWEST,
        resources: Vec::new(),
    };
    RegistryChange::Put(registration.into())
}

fn fence(server: &str, incarnation: &str, exempt: ResourceId) -> Fence {
    Fence { server: server.into(), incarnation: incarnation.into(), exempt: vec![exempt] }
}

async fn commit_under(
    backend: &dyn Backend,
    batch: &[Mutation],
    fence: Option<&Fence>,
    registry: Option<&RegistryChange>,
) -> Result<Vec<Outcome>, Error> {
    let terms = Terms { fence, registry, ..Terms::default() };
    Ok(backend.commit_under(&mut Units::from(batch.to_vec()), terms).await?.outcomes)
}

pub async fn only_a_registered_server_writes(database: &Database) {
    let backend = database.open().await;
    let (things, exempt) = (resource(&*backend, "things").await, resource(&*backend, "leases").await);
    let (own, former) = (fence("a", "second", exempt), fence("a", "first", exempt));
    let mut named = 0;
    let mut batch = || {
        named += 1;
        let name = named.to_string();
        [create(&Key::new(things, "ns", &name), 1), create(&Key::new(exempt, "ns", &name), 1)]
    };
    for not_yet in [&own, &former] {
        let outcomes = commit_under(&*backend, &batch(), Some(not_yet), None).await.expect("commit");
        assert_eq!(outcomes[0], Outcome::Fenced);
        committed(outcomes[1]);
    }
    let put = registration("a", "second");
    assert_eq!(commit_under(&*backend, &[], None, Some(&put)).await.expect("commit"), []);
    for outcome in commit_under(&*backend, &batch(), Some(&own), None).await.expect("commit") {
        committed(outcome);
    }
    let outcomes = commit_under(&*backend, &batch(), Some(&former), None).await.expect("commit");
    assert_eq!(outcomes[0], Outcome::Fenced, "an incarnation from before");
    let removed = RegistryChange::Remove(vec!["a".into(), "unknown".into()]);
    commit_under(&*backend, &[], None, Some(&removed)).await.expect("commit");
    let outcomes = commit_under(&*backend, &batch(), Some(&own), None).await.expect("commit");
    assert_eq!(outcomes[0], Outcome::Fenced);
    let changed = commit_under(&*backend, &batch(), Some(&own), Some(&removed)).await;
    assert!(matches!(changed, Err(Error::Fenced)), "{changed:?}");
}

pub async fn a_registration_and_its_mutations_pass_together(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let key = |name| Key::new(things, "ns", name);
    pass(&*backend, create(&key("taken"), 1)).await;
    let before = backend.clock().await.expect("clock").revision;
    let (put_a, own) = (registration("a", "1"), fence("a", "1", ResourceId(-1)));
    let batch = [create(&key("free"), 1), put(&key("taken"), Expect::Absent, 2)];
    let outcomes = commit_under(&*backend, &batch, None, Some(&put_a)).await.expect("commit");
    assert!(matches!(outcomes[1], Outcome::Conflict { found: Some(_) }), "{outcomes:?}");
    assert_eq!(backend.clock().await.expect("clock").revision, before, "nothing was written");
    let outcomes = commit_under(&*backend, &batch[..1], Some(&own), None).await.expect("commit");
    assert_eq!(outcomes, [Outcome::Fenced], "nor registered");

    let outcomes = commit_under(&*backend, &batch[..1], None, Some(&put_a)).await.expect("commit");
    assert_eq!(outcomes, [Outcome::Committed(Revision(before.0 + 1))]);
    let later = [create(&key("later"), 1)];
    committed(commit_under(&*backend, &later, Some(&own), None).await.expect("commit")[0]);
}
