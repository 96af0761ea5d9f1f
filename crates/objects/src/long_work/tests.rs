use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::thread;

use tokio::sync::oneshot;

use super::*;

/// The lanes of a process that has so many.
fn lanes(count: usize) -> Lanes {
    Lanes { own: Arc::new(Semaphore::new(count)), process: None }
}

/// Whatever a cluster has waiting, another one's work comes after as much of it as there are lanes.
#[tokio::test]
async fn the_work_of_one_cluster_waits_for_no_flood_of_another() {
    let process = lanes(1);
    let [flooded, quiet] = [(); 2].map(|()| Lanes { process: Some(process.own.clone()), ..lanes(1) });
    let busy = process.clone().lane().await;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let work = |lanes: &Lanes, name: &'static str| {
        let (lanes, order) = (lanes.clone(), order.clone());
        tokio::spawn(async move { lanes.run(LONG, || order.lock().expect("a lock").push(name)).await })
    };
    let mut all: Vec<_> = (0..20).map(|_| work(&flooded, "flooded")).collect();
    task::yield_now().await;
    all.push(work(&quiet, "quiet"));
    task::yield_now().await;
    drop(busy);
    for one in all {
        one.await.expect("runs");
    }
    let at = order.lock().expect("a lock").iter().position(|name| *name == "quiet");
    assert_eq!(at, Some(1), "behind the one that was there first");
}

/// Without another thread, the work is done on this one.
#[test]
fn long_work_needs_no_runtime() {
    assert_eq!(run(|| 1), 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(runtime.block_on(async { run(|| 2) }), 2);
}

/// On a runtime with one thread, long work does not block other tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn others_go_on_while_long_work_is_done() {
    let (lanes, (done, awaited)) = (Lanes::default(), std::sync::mpsc::channel());
    let long = tokio::spawn(async move { lanes.run(LONG, move || awaited.recv()).await });
    // The work waits for a message that only another task can send.
    tokio::spawn(async move { done.send(7) }).await.expect("runs").expect("is awaited");
    assert_eq!(long.await.expect("runs"), Ok(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_than_there_are_lanes_work_at_a_time() {
    let lanes = lanes(2);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = || {
        let (now, most) = (now.clone(), most.clone());
        move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            (0..100).for_each(|_| thread::yield_now());
            now.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let all: Vec<_> = (0..20)
        .map(|n| {
            let (lanes, one, other) = (lanes.clone(), work(), work());
            tokio::spawn(async move {
                if n % 2 == 0 {
                    return lanes.run(LONG, one).await;
                }
                let driven = pin!(async {
                    one();
                    task::yield_now().await;
                    other();
                });
                lanes.drive(driven, &AtomicBool::new(true)).await
            })
        })
        .collect();
    for one in all {
        one.await.expect("runs");
    }
    assert!(most.load(Ordering::SeqCst) <= 2, "{most:?}");
}

/// With a single lane of each sort, any number of requests that need both make progress.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_is_not_held_while_another_is_awaited() {
    let (outer, inner) = (lanes(1), lanes(1));
    let all: Vec<_> = (0..50)
        .map(|_| {
            let (outer, inner) = (outer.clone(), inner.clone());
            tokio::spawn(async move {
                let driven = pin!(async {
                    task::yield_now().await;
                    inner.run(LONG, || ()).await;
                    task::yield_now().await;
                });
                outer.drive(driven, &AtomicBool::new(true)).await
            })
        })
        .collect();
    for one in all {
        one.await.expect("runs");
    }
}

/// A future that becomes long holds no lane while it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_is_free_while_its_work_waits() {
    let lanes = lanes(1);
    let (started, is_started) = oneshot::channel();
    let (answer, awaited) = oneshot::channel();
    let of_first = lanes.clone();
    let first = tokio::spawn(async move {
        let is_long = AtomicBool::new(false);
        let driven = pin!(async {
            is_long.store(true, Ordering::Relaxed);
            task::yield_now().await;
            let _ = started.send(());
            awaited.await
        });
        of_first.drive(driven, &is_long).await
    });
    is_started.await.expect("started");
    assert_eq!(lanes.run(LONG, || 1).await, 1);
    answer.send(2).expect("awaited");
    assert_eq!(first.await.expect("runs"), Ok(2));
}

#[tokio::test]
async fn a_turn_ends_after_so_many_steps() {
    let mut turn = Turn::default();
    assert_eq!((0..TURN).position(|_| turn.take(1)), Some(TURN - 1));
    turn.end().await;
    assert!(!turn.take(TURN - 1) && turn.take(1));
}
