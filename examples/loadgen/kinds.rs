//! Writes of typed objects: the cost of defaults, validation, ownership and stored protobuf, compared with ConfigMaps.
//!
//! All kinds of work take turns in short rounds, since a shared machine may be twice as fast in one minute as in the
//! next; rates are medians over the rounds, and ratios compare work of the same round.

use std::time::Duration;

use clap::ValueEnum;

use self::crew::Crew;
use crate::report::{self, Table};
use crate::scratch::Scratch;
use crate::stats::median;
use crate::{Context, Result};

mod crew;
pub mod customs;
mod work;

pub use work::{Work, pod_of};

const ROUND: Duration = Duration::from_millis(500);
/// Pairs of the same work with and without tracked ownership.
const OWNERSHIP: [(Work, Work); 2] =
    [(Work::UpdatePods, Work::UpdateUntracked), (Work::UpdateRead, Work::UpdateReadUntracked)];

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let columns = [
        "request",
        "clients",
        "per second",
        "of all rounds",
        "p50 ms",
        "p99 ms",
        "max ms",
        "server CPU us each",
    ];
    let mut table = Table::new("Typed objects".to_owned(), &columns);
    let columns = ["what is tracked", "clients", "of the rate untracked", "lowest", "highest", "CPU us more"];
    let mut ownership = Table::new("Ownership".to_owned(), &columns);
    let wanted = |work: &&Work| context.args.work.is_empty() || context.args.work.contains(work);
    for &clients in &context.args.clients {
        let mut crews = Vec::new();
        for work in Work::value_variants().iter().filter(wanted) {
            // Measured with one client only; more would just queue.
            if *work != Work::ApplyLongList || clients == 1 {
                if work.is_custom() {
                    customs::define(context, scratch).await?;
                }
                crews.push(Crew::new(context, scratch, *work, clients).await?);
            }
        }
        eprintln!("typed objects with {clients} clients");
        for _ in 0..context.seconds().as_millis() / ROUND.as_millis() {
            for crew in &mut crews {
                crew.round(context, ROUND).await?;
            }
        }
        for crew in &mut crews {
            table.row(crew.row());
        }
        for (tracked, untracked) in OWNERSHIP {
            let find = |work| crews.iter().find(|crew| crew.work == work);
            if let (Some(tracked), Some(untracked)) = (find(tracked), find(untracked)) {
                ownership.row(cost(clients, tracked, untracked));
            }
        }
        for crew in crews {
            crew.leave(context).await?;
        }
    }
    Ok([table, ownership].into_iter().filter(|table| !table.is_empty()).collect())
}

fn cost(clients: usize, tracked: &Crew, untracked: &Crew) -> Vec<String> {
    let rounds = tracked.per_second.iter().zip(&untracked.per_second);
    let mut ratios: Vec<f64> = rounds.map(|(tracked, untracked)| tracked / untracked).collect();
    ratios.sort_by(f64::total_cmp);
    let micros = tracked.micros.iter().zip(&untracked.micros);
    let micros: Vec<f64> = micros.map(|(tracked, untracked)| tracked - untracked).collect();
    let mut row = vec![tracked.work.name().to_owned(), clients.to_string()];
    row.extend(
        [median(&ratios), ratios.first().copied(), ratios.last().copied(), median(&micros)]
            .map(report::option),
    );
    row
}
