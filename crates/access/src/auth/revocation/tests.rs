use std::sync::atomic::{AtomicBool, AtomicUsize};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::storage::ResourceId;

/// Counts how often it is asked, and says no once somebody has set the flag.
#[derive(Clone, Default)]
struct Asked {
    times: Arc<AtomicUsize>,
    refuses: Arc<AtomicBool>,
}

impl Reauthorize for Asked {
    fn ask(&self) -> BoxFuture<'_, Result<(), Revoked>> {
        self.times.fetch_add(1, Ordering::Relaxed);
        let refuses = self.refuses.load(Ordering::Relaxed);
        Box::pin(async move { if refuses { Err(Unauthenticated::Missing.into()) } else { Ok(()) } })
    }
}

fn user(name: &str) -> Concern {
    Concern::User(name.into())
}

#[tokio::test]
async fn only_those_are_asked_whom_a_change_can_concern() {
    let revocations = Revocations::default();
    let (alice, bob) = (Asked::default(), Asked::default());
    let row = Concern::Row(Key::new(ResourceId(1), "t", "p"));
    let of_alice = [user("alice"), Concern::Group("devs".into()), row.clone()];
    let (one, other) = (
        revocations.permit(of_alice, Box::new(alice.clone())),
        revocations.permit([user("bob"), Concern::Group("devs".into())], Box::new(bob.clone())),
    );
    let asked = async || {
        assert!(one.check().await.is_ok() && other.check().await.is_ok());
        (alice.times.load(Ordering::Relaxed), bob.times.load(Ordering::Relaxed))
    };
    assert_eq!(asked().await, (1, 1), "each asks once when it begins");
    assert_eq!(asked().await, (1, 1));
    for (raised, want) in [
        (user("alice"), (2, 1)),
        (user("carol"), (2, 1)),
        (row, (3, 1)),
        (Concern::Group("devs".into()), (4, 2)),
        (Concern::Group("alice".into()), (4, 2)),
    ] {
        revocations.shared.raise(&raised);
        assert_eq!(asked().await, want, "{raised:?}");
    }
    revocations.ask_everybody();
    assert_eq!(asked().await, (5, 3));
}

#[tokio::test]
async fn a_refusal_ends_the_request() {
    let revocations = Revocations::default();
    let asked = Asked::default();
    let permit = revocations.permit([user("alice")], Box::new(asked.clone()));
    let token = CancellationToken::new();
    permit.ends(token.clone());
    assert!(permit.check().await.is_ok());
    asked.refuses.store(true, Ordering::Relaxed);
    assert!(permit.check().await.is_ok(), "nothing has changed");
    revocations.shared.raise(&user("alice"));
    assert!(permit.check().await.is_err() && token.is_cancelled());
    asked.refuses.store(false, Ordering::Relaxed);
    revocations.ask_everybody();
    assert!(permit.check().await.is_err(), "an end is the end");
}

#[tokio::test]
async fn nothing_is_left_of_a_request_that_is_over() {
    let revocations = Revocations::default();
    let permits: Vec<_> =
        (0..3).map(|_| revocations.permit([user("alice")], Box::new(Asked::default()))).collect();
    assert_eq!(revocations.shared.register().permits.len(), 3);
    drop(permits);
    let register = revocations.shared.register();
    assert!(register.permits.is_empty() && register.concerned.is_empty());
}
