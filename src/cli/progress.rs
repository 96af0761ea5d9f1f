//! Shows the progress of long work: a bar on a terminal, otherwise a line every few seconds. Both go to standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;

use crate::storage::transfer::{Meter, Step};

/// The time between two lines. Shorter work prints nothing.
const LINES: Duration = Duration::from_secs(3);
const FRAMES: Duration = Duration::from_millis(100);
/// The number of steps of a bar, whatever is counted.
const WHOLE: u64 = 1000;

/// Shows a meter until it is dropped.
pub struct Progress {
    meter: Arc<Meter>,
    shower: JoinHandle<()>,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub fn show(what: &'static str) -> Self {
        let meter = Arc::new(Meter::default());
        let bar = io::stderr().is_terminal().then(|| bar(what));
        let shower = match bar.clone() {
            Some(bar) => tokio::spawn(draw(meter.clone(), bar)),
            None => tokio::spawn(print(meter.clone(), what)),
        };
        Self { meter, shower, bar }
    }

    pub fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shower.abort();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix} [{bar:40}] {percent:>3}%  {msg}  {elapsed_precise}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "))
        .with_prefix(what)
}

async fn draw(meter: Arc<Meter>, bar: ProgressBar) {
    loop {
        bar.set_position(permille(&meter).unwrap_or_default());
        bar.set_message(done(&meter));
        bar.tick();
        tokio::time::sleep(FRAMES).await;
    }
}

async fn print(meter: Arc<Meter>, what: &'static str) {
    loop {
        tokio::time::sleep(LINES).await;
        // The standard error may be closed, which is no reason to end.
        let _ = writeln!(io::stderr(), "{}", line(what, &meter));
    }
}

fn line(what: &str, meter: &Meter) -> String {
    match permille(meter) {
        Some(permille) => format!("{what}: {} %, {}", permille / 10, done(meter)),
        None => format!("{what}: {}", done(meter)),
    }
}

fn done(meter: &Meter) -> String {
    let objects = HumanCount(meter.objects());
    match meter.now() {
        Step::Moving => format!("{objects} objects"),
        step => format!("{objects} objects, {step}"),
    }
}

fn permille(meter: &Meter) -> Option<u64> {
    let (done, all) = meter.share()?;
    Some((done.min(all) * WHOLE).checked_div(all).unwrap_or(WHOLE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;
    use crate::schema::names::GroupResource;
    use crate::storage::transfer::{Length, Record, StoredObject};

    #[test]
    fn what_a_line_says() {
        let object = Record::Object(StoredObject {
            resource: GroupResource::new("", "pods"),
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
            revision: Revision(1),
            uid: String::new(),
            stored_version: "v1".to_owned(),
            value: vec![0; 100],
        });
        let meter = Meter::default();
        assert_eq!(line("backup", &meter), "backup: 0 objects");
        meter.expect(Length::Objects(3000));
        (0..1000).for_each(|_| meter.add(&object));
        assert_eq!(line("backup", &meter), "backup: 33 %, 1,000 objects");
        // One tag, eight lengths, and the fields themselves.
        meter.expect(Length::Bytes(2000 * (1 + 8 * 4 + 4 + 2 + 1 + 8 + 2 + 100)));
        meter.step(Step::Indexing);
        assert_eq!(line("restore", &meter), "restore: 50 %, 1,000 objects, building the index");
        for empty in [Length::Objects(0), Length::Bytes(1)] {
            meter.expect(empty);
            assert_eq!(line("migrate", &meter), "migrate: 100 %, 1,000 objects, building the index");
        }
    }
}
