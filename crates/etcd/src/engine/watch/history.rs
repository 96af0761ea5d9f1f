//! Events that are not in memory any more, read from the store.

use std::sync::Arc;

use rowplane_store::storage::{self, ChangeRow};

use crate::engine::events::{Event, Page, PageSize};
use crate::engine::keys::Kv;
use crate::engine::lags::Sequence;
use crate::engine::state::{State, key_of};
use crate::engine::{Error, Etcd};

/// The most that is sent in one answer, if no revision is larger.
const PAGE: PageSize = PageSize { events: 1000, bytes: 1 << 20 };
/// Changes read from the table at a time.
const ROWS: u32 = 1000;

impl Etcd {
    /// The next events after a place and up to another one, at which no revision is cut.
    pub(in crate::engine) async fn events(&self, after: Sequence, to: Sequence) -> Result<Page, Error> {
        if let Some(page) = self.shared.events.page(after, to, PAGE) {
            return Ok(page);
        }
        let state = self.state();
        let changes = self.backend().changes(after, Some(self.shared.tables.keys), ROWS).await?;
        let mut page = Page { events: Vec::new(), through: changes.through.min(to) };
        for row in changes.rows.into_iter().take_while(|row| row.revision <= to) {
            page.events.push(Arc::new(self.event(&state, row).await?));
        }
        Ok(page)
    }

    async fn event(&self, state: &State, row: ChangeRow) -> Result<Event, storage::Error> {
        let tables = &self.shared.tables;
        let ChangeRow { revision: sequence, key, value, previous, .. } = row;
        let key = key_of(&key.name)?;
        let kv = |sequence, value| {
            let (revision, stored) = tables.decode(tables.keys, &value)?;
            Ok::<_, storage::Error>(Arc::new(Kv::new(key.clone(), sequence, revision, stored)?))
        };
        let prev = previous.map(|(sequence, value)| kv(sequence, value)).transpose()?;
        let put = value.map(|value| kv(sequence, value)).transpose()?;
        let revision = match &put {
            Some(put) => put.mod_revision,
            None => self.revision_of(state, sequence).await?,
        };
        Ok(Event { sequence, revision, key: key.clone(), kv: put, prev })
    }

    /// The revision of the event at a place.
    async fn revision_of(&self, state: &State, sequence: Sequence) -> Result<i64, storage::Error> {
        let before = Sequence(sequence.0.saturating_sub(1));
        match state.lags.revision(before) {
            Some(revision) => Ok(revision + 1),
            None => Ok(before.0 as i64 - self.backend().lag_at(before).await? + 1),
        }
    }
}
