//! Tests of `tasks`.

use std::future::pending;

use futures_util::FutureExt as _;
use rowplane_store::tasks::{Failure, Tasks};

#[tokio::test]
async fn a_panic_of_any_task_is_the_servers_failure() {
    let tasks = Tasks::new();
    tasks.group().spawn("work", async { panic!("no {}", "way") });
    let told = tasks.failed().await;
    assert_eq!(told, Failure::Panicked { task: "work", message: "no way".into() });
    assert_eq!(told.to_string(), "its task \"work\" panicked: no way");
}

#[tokio::test]
async fn so_is_the_end_of_one_that_is_needed() {
    let tasks = Tasks::new();
    tasks.run("other", pending());
    tasks.run_to_end("feed", async {});
    assert_eq!(tasks.failed().await, Failure::Ended { task: "feed" });
}

#[tokio::test]
async fn work_may_end() {
    let tasks = Tasks::new();
    assert_eq!(tasks.spawn("work", async { 7 }).await.expect("joined"), Some(7));
    assert!(tasks.failed().now_or_never().is_none());
}

#[tokio::test]
async fn a_group_that_is_stopped_fails_nobody_and_leaves_the_others_running() {
    let tasks = Tasks::new();
    let (group, other) = (tasks.group(), tasks.group());
    group.run("loop", pending());
    let stop = group.clone();
    group.run_to_end("drains", async move { stop.stopping().await });
    other.run("loop", pending());
    group.stop();
    group.ended().await;
    assert!(!other.is_stopping() && tasks.failed().now_or_never().is_none());
}
