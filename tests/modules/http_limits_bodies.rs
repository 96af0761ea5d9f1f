//! Tests of `http::limits::bodies`.

use std::time::Duration;

use futures_util::FutureExt as _;
use metrics::Counter;
use rowplane::http::limits::{BodyBudget, Room};
use rowplane_api::error::Error;

const KB: usize = 1 << 10;

fn budget(all: usize) -> BodyBudget {
    BodyBudget::new(all, Duration::from_secs(60), Counter::noop())
}

async fn taken<'a>(budget: &'a BodyBudget, user: &str, bytes: usize) -> Room<'a> {
    let mut room = budget.room(user);
    room.extend_to(bytes).now_or_never().expect("room").expect("room");
    room
}

#[tokio::test]
async fn a_user_has_his_share_and_others_theirs() {
    let budget = budget(80 * KB);
    let held = taken(&budget, "alice", 10 * KB).await;
    let first = taken(&budget, "alice", 7 * KB).await;
    let mut second = budget.room("alice");
    let mut waiting = Box::pin(second.extend_to(1));
    assert!(waiting.as_mut().now_or_never().is_none(), "one body may exceed the share");
    let _other = taken(&budget, "bob", 10 * KB).await;
    drop(first);
    assert!(waiting.as_mut().now_or_never().is_some_and(|granted| granted.is_ok()), "it is foremost now");
    drop(held);
}

#[tokio::test]
async fn when_all_is_taken_whoever_waits_longest_is_next() {
    let budget = budget(80 * KB);
    let names: Vec<String> = (0..8).map(|user| format!("user-{user}")).collect();
    let mut held = Vec::new();
    for name in &names {
        held.push(taken(&budget, name, 10 * KB).await);
    }
    // It may exceed what there is.
    let exceeding = taken(&budget, "ann", 5 * KB).await;
    let (mut one, mut two) = (budget.room("bob"), budget.room("carl"));
    let mut one = Box::pin(one.extend_to(6 * KB));
    let mut two = Box::pin(two.extend_to(4 * KB));
    assert!(one.as_mut().now_or_never().is_none() && two.as_mut().now_or_never().is_none());
    drop(exceeding);
    assert!(one.as_mut().now_or_never().is_some(), "it is the one that may exceed now");
    assert!(two.as_mut().now_or_never().is_none());
    drop(held.pop());
    assert!(two.as_mut().now_or_never().is_some_and(|granted| granted.is_ok()));
}

#[tokio::test]
async fn who_waits_too_long_is_told_to_come_again() {
    let budget = BodyBudget::new(8 * KB, Duration::from_millis(4), Counter::noop());
    let _held = [taken(&budget, "alice", KB).await, taken(&budget, "alice", KB).await];
    let refused = budget.room("alice").extend_to(KB).await;
    assert_eq!(refused, Err(Error::too_many("bytes of request bodies")));
}
