//! The content of the queues at one moment, as the texts of `/debug/api_priority_and_fairness/*`.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::queue_set::{QueueState, Running, SetState};
use super::waiter::Waiter;
use super::width::Width;
use super::{FlowControl, LevelState};
use crate::gotext;

const LEVELS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
const QUEUES: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];
const REQUESTS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAILS: [&str; 8] =
    ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];
/// How Go prints a time that is not set.
const NEVER: &str = "0001-01-01T00:00:00Z";
/// The place in a queue, or the queue, of a request that has none.
const NOWHERE: &str = "-1";
/// The narrowest cell.
const CELL: usize = 8;

impl FlowControl {
    /// A line for each level.
    pub fn dump_levels(&self) -> String {
        let mut rows = vec![row(LEVELS)];
        for state in self.levels().values() {
            let set = state.level.state();
            let active = set.queues.iter().filter(|queue| !queue.waiting.is_empty()).count();
            rows.push(vec![
                state.name(),
                active.to_string(),
                set.is_idle.to_string(),
                state.quiescing.to_string(),
                set.waiting.to_string(),
                set.executing.to_string(),
                set.totals.dispatched.to_string(),
                set.totals.rejected.to_string(),
                // No request is counted here: one whose time is over counts as cancelled.
                0.to_string(),
                set.totals.cancelled.to_string(),
            ]);
        }
        tabulated(&rows)
    }

    /// A line for each queue of each level.
    pub fn dump_queues(&self) -> String {
        let mut rows = vec![row(QUEUES)];
        self.each_queue(|level, index, queue| {
            let sum = |of: fn(&super::Width) -> usize| queue.waiting.iter().map(|(width, _)| of(width)).sum();
            let (initial, most): (usize, usize) = (sum(|width| width.initial), sum(|width| width.seats()));
            rows.push(vec![
                level.name(),
                index.to_string(),
                queue.waiting.len().to_string(),
                queue.executing.to_string(),
                queue.seats_in_use.to_string(),
                seat_seconds(queue.next_r),
                initial.to_string(),
                most.to_string(),
                seat_seconds(queue.work),
            ]);
        });
        tabulated(&rows)
    }

    /// A line for each request that waits or runs. Requests whose description has not arrived yet, since they have only just
    /// been queued or started, are left out.
    pub fn dump_requests(&self, with_details: bool) -> String {
        let mut rows = vec![row(REQUESTS)];
        if with_details {
            rows[0].extend(row(DETAILS));
        }
        let add = |rows: &mut Vec<_>, level: &LevelState, queue: &str, place: &str, told: Told<'_>| {
            let Told { width, waiter, started } = told;
            let mut row = vec![
                level.name(),
                waiter.flow.to_string(),
                queue.to_owned(),
                place.to_owned(),
                waiter.distinguisher.to_string(),
                waiter.arrived.to_string(),
                width.initial.to_string(),
                width.last.to_string(),
                gotext::duration(width.lingering),
                started.map_or(NEVER.to_owned(), |started| started.to_string()),
            ];
            if with_details {
                row.extend(waiter.details.iter().map(|text| text.to_string()));
            }
            rows.push(row);
        };
        for level in self.levels().values() {
            let SetState { queues, queueless, .. } = level.level.state();
            for (index, queue) in queues.iter().enumerate() {
                let index = index.to_string();
                for (place, (width, waiter)) in queue.waiting.iter().enumerate() {
                    let Some(waiter) = waiter else { continue };
                    let told = Told { width, waiter, started: None };
                    add(&mut rows, level, &index, &place.to_string(), told);
                }
                for running in &queue.running {
                    add(&mut rows, level, &index, NOWHERE, level.running(running));
                }
            }
            for running in &queueless {
                add(&mut rows, level, NOWHERE, NOWHERE, level.running(running));
            }
        }
        tabulated(&rows)
    }

    fn each_queue(&self, mut tell: impl FnMut(&LevelState, usize, QueueState)) {
        for state in self.levels().values() {
            let SetState { queues, .. } = state.level.state();
            for (index, queue) in queues.into_iter().enumerate() {
                tell(state, index, queue);
            }
        }
    }
}

/// The description of a request in a dump.
struct Told<'a> {
    width: &'a Width,
    waiter: &'a Waiter,
    started: Option<Timestamp>,
}

impl LevelState {
    fn running<'a>(&self, running: &'a Running) -> Told<'a> {
        let started = self.level.clock.timestamp() - running.started.elapsed();
        Told { width: &running.width, waiter: &running.waiter, started: Some(started) }
    }

    fn name(&self) -> String {
        self.spec.name.to_string()
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

/// Seconds of seats, as upstream prints them.
fn seat_seconds(seconds: f64) -> String {
    format!("{seconds:.8}ss")
}

/// Lines of cells with commas between them, in columns, as Go's tabwriter aligns them.
fn tabulated(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let longest = rows.iter().map(|row| row[column].chars().count() + 1).max().unwrap_or_default();
        (longest + 1).max(CELL)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == columns {
                text.push_str(cell);
            } else {
                let _ = write!(text, "{:<width$}", format!("{cell},"), width = widths[column]);
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_a_blank() {
        let rows = [row(["Name", "LongerThanEight", "c"]), row(["exempt", "1", "true"])];
        let want = "Name,   LongerThanEight, c\nexempt, 1,               true\n";
        assert_eq!(tabulated(&rows), want);
    }

    #[test]
    fn seconds_of_seats() {
        assert_eq!((seat_seconds(0.0), seat_seconds(1.5)), ("0.00000000ss".into(), "1.50000000ss".into()));
    }
}
