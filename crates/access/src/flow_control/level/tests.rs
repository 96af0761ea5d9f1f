use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::auth::authorizer::Attributes;
use crate::metrics::Metrics;
use crate::user::User;

fn level(discipline: Discipline, seats: usize) -> Arc<Level> {
    let spec = LevelSpec {
        name: "l".into(),
        uid: "1".into(),
        shares: Shares { nominal: 1, lendable_percent: 0, borrowing_percent: None },
        discipline,
    };
    let limits = Limits { nominal: seats, least: seats, most: seats };
    Arc::new(Level::new(&spec, limits, Metrics::default().level("l"), WallClock::default()))
}

const QUEUES: Discipline = Discipline::Queue { queues: 4, hand: 1, length: 4 };

fn request() -> waiter::Waiter {
    waiter::Waiter::new("f", "u", &Attributes::of_path(&User::default(), "get", "/x"), "/x", Timestamp::now())
}

const LONG: Duration = Duration::from_secs(60);

async fn enter(level: &Arc<Level>, longest: Duration) -> Result<Seat, Refused> {
    level.enter(&Arc::default(), Width::ONE, 1, Instant::now(), longest, request).await
}

#[tokio::test]
async fn a_seat_that_is_dropped_is_given_to_whoever_waits() {
    let level = level(QUEUES, 1);
    let first = enter(&level, LONG).await.expect("a seat");
    let second = tokio::spawn({
        let level = level.clone();
        async move { enter(&level, LONG).await.is_ok() }
    });
    while level.set().waiting() == 0 {
        tokio::task::yield_now().await;
    }
    drop(first);
    assert!(second.await.expect("no panic"));
    assert!(level.is_idle());
}

#[tokio::test]
async fn a_wait_has_an_end() {
    let level = level(QUEUES, 1);
    let _first = enter(&level, LONG).await.expect("a seat");
    let refused = enter(&level, Duration::ZERO).await.err();
    assert_eq!(refused, Some(Refused { reason: "time-out", retry_after: 1 }));
    assert_eq!(level.set().waiting(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_leaves_its_queue() {
    let level = level(QUEUES, 1);
    let first = enter(&level, LONG).await.expect("a seat");
    {
        let mut waiting = Box::pin(enter(&level, LONG));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(level.set().waiting(), 1);
    }
    assert_eq!(level.set().waiting(), 0);
    drop(first);
    assert!(level.is_idle());
}

#[test]
fn specs_are_read() {
    let object = crate::tree::json!({"metadata": {"name": "l", "uid": "u"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 30, "lendablePercent": 33, "limitResponse": {"type": "Queue", "queuing":
        {"queues": 64, "handSize": 6, "queueLengthLimit": 50}}}}});
    let spec = LevelSpec::read(object.as_object().expect("an object")).expect("a level");
    assert_eq!(spec.discipline, Discipline::Queue { queues: 64, hand: 6, length: 50 });
    assert_eq!(spec.shares, Shares { nominal: 30, lendable_percent: 33, borrowing_percent: None });
    let level = Level::new(
        &spec,
        Limits { nominal: 74, least: 50, most: 674 },
        Metrics::default().level("l"),
        WallClock::default(),
    );
    assert_eq!((level.widest(100), level.widest(10)), (12, 10));
}
