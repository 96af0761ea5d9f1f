//! Objects that are visited one by one while they move, and those that cannot be moved.

use futures_util::StreamExt as _;

use super::Summary;
use crate::cli::error::Error;
use crate::storage::transfer::{Counts, Export, Meter, Record, StoredObject};

/// etcd's default of `--max-request-bytes`: no longer object can be changed there.
pub const LONGEST_IN_ETCD: usize = 1_572_864;
/// How many objects are named.
const MOST_NAMED: usize = 20;

/// Lines about objects, of which the first are kept and all are counted.
#[derive(Clone, Debug, Default)]
pub struct Named {
    lines: Vec<String>,
    count: u64,
}

impl Named {
    pub fn add(&mut self, line: String) {
        self.count += 1;
        if self.lines.len() < MOST_NAMED {
            self.lines.push(line);
        }
    }

    pub fn named(&self) -> &[String] {
        &self.lines
    }

    /// The lines that are kept, each with its end.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Fails if there are any.
    pub fn result(&self, verb: &str) -> Result<(), Error> {
        match self.count {
            0 => Ok(()),
            1 => Err(Error::Refused(format!("1 object cannot be {verb}"))),
            count => Err(Error::Refused(format!("{count} objects cannot be {verb}"))),
        }
    }
}

/// Visits all objects, and counts those that the visit returns.
pub async fn each(
    mut export: Export,
    meter: &Meter,
    mut visit: impl AsyncFnMut(StoredObject) -> Result<Option<StoredObject>, Error>,
) -> Result<Summary, Error> {
    meter.expect(export.length);
    let mut objects = Counts::new();
    while let Some(batch) = export.batches.next().await {
        for record in batch? {
            meter.add(&record);
            if let Record::Object(object) = record
                && let Some(object) = visit(object).await?
            {
                *objects.entry(object.resource).or_default() += 1;
            }
        }
    }
    Ok(Summary { revision: export.revision, objects })
}
