use super::*;

const QUEUES: Discipline = Discipline::Queue { queues: 8, hand: 1, length: 4 };

/// A hash that deals the queue with this number.
fn flow(queue: usize) -> u64 {
    queue as u64
}

fn runs(start: Start) -> Ticket {
    match start {
        Start::Runs(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn waits(start: Start) -> QueuedRequest {
    match start {
        Start::Waits(place) => place,
        other => panic!("{other:?}"),
    }
}

fn at(start: Instant, milliseconds: u64) -> Instant {
    start + Duration::from_millis(milliseconds)
}

#[test]
fn what_fits_runs_at_once() {
    let now = Instant::now();
    let mut set = QueueSet::new(QUEUES, 2, now);
    let tickets = [runs(set.start(Width::ONE, flow(1), now)), runs(set.start(Width::ONE, flow(1), now))];
    assert_eq!((set.seats_in_use(), set.waiting()), (2, 0));
    let mut third = waits(set.start(Width::ONE, flow(1), now));
    assert!(third.dispatched.try_recv().is_err());
    assert_eq!(set.finish(&tickets[0], at(now, 5)), None);
    let ticket = third.dispatched.try_recv().expect("dispatched");
    for ticket in [&tickets[1], &ticket] {
        set.finish(ticket, at(now, 9));
    }
    assert!(set.is_idle() && set.queues.is_empty());
    assert_eq!((set.active, set.requested, set.waiting_seats), (0, 0, 0));
}

#[test]
fn a_full_queue_refuses() {
    let now = Instant::now();
    let mut set = QueueSet::new(QUEUES, 1, now);
    let _running = runs(set.start(Width::ONE, flow(1), now));
    let _waiting: Vec<QueuedRequest> = (0..4).map(|_| waits(set.start(Width::ONE, flow(2), now))).collect();
    assert!(matches!(set.start(Width::ONE, flow(2), now), Start::Refused("queue-full")));
    waits(set.start(Width::ONE, flow(3), now));
}

#[test]
fn a_level_without_queues_refuses_what_does_not_fit() {
    let now = Instant::now();
    let mut set = QueueSet::new(Discipline::Reject, 3, now);
    let wide = runs(set.start(Width::of(10), 0, now));
    assert!(matches!(set.start(Width::ONE, 0, now), Start::Refused("concurrency-limit")));
    set.finish(&wide, now);
    let _two = runs(set.start(Width::of(2), 0, now));
    assert!(matches!(set.start(Width::of(2), 0, now), Start::Refused("concurrency-limit")));
    runs(set.start(Width::ONE, 0, now));
}

#[test]
fn exempt_requests_never_wait() {
    let now = Instant::now();
    let mut set = QueueSet::new(Discipline::Exempt, 0, now);
    for _ in 0..1000 {
        runs(set.start(Width::of(10), 0, now));
    }
    assert_eq!(set.seats_in_use(), 10_000);
}

#[test]
fn a_flood_in_one_queue_does_not_hold_another_up() {
    let now = Instant::now();
    let discipline = Discipline::Queue { queues: 8, hand: 1, length: 1000 };
    let mut set = QueueSet::new(discipline, 1, now);
    let mut running = runs(set.start(Width::ONE, flow(1), now));
    let mut flood: Vec<QueuedRequest> =
        (0..500).map(|_| waits(set.start(Width::ONE, flow(1), now))).collect();
    // The flood has been served for a while when another flow comes.
    let mut time = 0;
    for place in flood.iter_mut().take(100) {
        time += 3;
        set.finish(&running, at(now, time));
        running = place.dispatched.try_recv().expect("its turn");
    }
    let mut other: Vec<QueuedRequest> =
        (0..20).map(|_| waits(set.start(Width::ONE, flow(2), at(now, time)))).collect();
    let (mut served, mut rest) = (0, flood.iter_mut().skip(100));
    let mut next_of_flood = rest.next().expect("more");
    for _ in 0..40 {
        time += 3;
        set.finish(&running, at(now, time));
        if let Ok(ticket) = other[served.min(19)].dispatched.try_recv() {
            (running, served) = (ticket, served + 1);
        } else {
            running = next_of_flood.dispatched.try_recv().expect("one of both");
            next_of_flood = rest.next().expect("more");
        }
    }
    assert!((18..=20).contains(&served), "{served} of 40");
}

#[test]
fn a_wide_request_holds_up_what_comes_behind_it() {
    let now = Instant::now();
    let mut set = QueueSet::new(QUEUES, 4, now);
    let running = [runs(set.start(Width::of(3), flow(1), now)), runs(set.start(Width::ONE, flow(1), now))];
    let mut wide = waits(set.start(Width::of(4), flow(2), now));
    let mut narrow = waits(set.start(Width::ONE, flow(2), now));
    set.finish(&running[1], at(now, 1));
    assert!(wide.dispatched.try_recv().is_err() && narrow.dispatched.try_recv().is_err());
    set.finish(&running[0], at(now, 2));
    let wide = wide.dispatched.try_recv().expect("all four seats are free");
    assert!(narrow.dispatched.try_recv().is_err());
    set.finish(&wide, at(now, 3));
    narrow.dispatched.try_recv().expect("its turn");
}

#[test]
fn lingering_requests_keep_their_seats() {
    let now = Instant::now();
    let mut set = QueueSet::new(QUEUES, 10, now);
    let width = Width { initial: 1, last: 4, lingering: Duration::from_millis(20) };
    let ticket = runs(set.start(width, flow(1), now));
    assert_eq!(set.seats_in_use(), 4);
    assert_eq!(set.finish(&ticket, at(now, 1)), Some(Duration::from_millis(20)));
    assert_eq!(set.seats_in_use(), 4);
    set.release(&ticket, at(now, 21));
    assert!(set.is_idle() && set.queues.is_empty());
    // With fewer seats it takes longer.
    set.set_limit(2, now);
    let ticket = runs(set.start(width, flow(1), now));
    assert_eq!(set.finish(&ticket, at(now, 1)), Some(Duration::from_millis(40)));
}

#[test]
fn whoever_leaves_is_forgotten() {
    let now = Instant::now();
    let mut set = QueueSet::new(QUEUES, 1, now);
    let running = runs(set.start(Width::ONE, flow(1), now));
    let gone = waits(set.start(Width::ONE, flow(2), now));
    let mut stays = waits(set.start(Width::ONE, flow(2), now));
    let dropped = waits(set.start(Width::ONE, flow(3), now));
    assert!(set.cancel(gone.queue, gone.id, now) && !set.cancel(gone.queue, gone.id, now));
    drop(dropped);
    set.finish(&running, at(now, 1));
    let ticket = stays.dispatched.try_recv().expect("its turn");
    assert!(!set.cancel(stays.queue, stays.id, now));
    set.finish(&ticket, at(now, 2));
    assert!(set.is_idle() && set.queues.is_empty());
    assert_eq!((set.active, set.requested, set.waiting_seats), (0, 0, 0));
}

#[test]
fn more_seats_let_waiting_requests_run() {
    let now = Instant::now();
    let mut set = QueueSet::new(QUEUES, 0, now);
    let mut place = waits(set.start(Width::ONE, flow(1), now));
    set.set_limit(1, now);
    place.dispatched.try_recv().expect("there is a seat");
}

#[test]
fn queues_are_found_by_number_and_served_in_turn() {
    let mut queues = Queues::default();
    for index in [5, 1, 9, 3] {
        queues.get_or_add(index).executing = index;
    }
    queues.get_or_add(9).executing += 1;
    let order =
        |queues: &Queues, robin| -> Vec<usize> { queues.behind(robin).map(|(index, _)| *index).collect() };
    assert_eq!(order(&queues, 3), [5, 9, 1, 3]);
    assert_eq!(order(&queues, 4), [5, 9, 1, 3]);
    assert_eq!(order(&queues, 9), [1, 3, 5, 9]);
    assert_eq!(queues.get(9).map(|queue| queue.executing), Some(10));
    queues.remove(3);
    queues.remove(4);
    assert!(queues.get(3).is_none());
    assert_eq!(order(&queues, 0), [1, 5, 9]);
}
