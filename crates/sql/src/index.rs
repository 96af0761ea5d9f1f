//! Hash indexes of tables that have none.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Cell, Error, Row, Rows};

/// The most rows that the indexes of a statement may hold together.
pub const MOST_ROWS: u64 = 4_000_000;

/// Rows by the values of some columns.
pub struct HashIndex {
    rows: HashMap<Box<[Bucket]>, Vec<Arc<dyn Row>>, foldhash::fast::RandomState>,
}

/// A class of values. Values that SQLite may find equal, whatever the affinities of columns, are in the same class: the
/// text `5` and the numbers 5 and 5.0. SQLite compares the values themselves again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bucket {
    Number(u64),
    Text(Box<str>),
}

impl Bucket {
    /// `None` for NULL, which equals nothing.
    pub fn of(cell: &Cell<'_>) -> Option<Self> {
        let number = |value: f64| Self::Number((value + 0.0).to_bits());
        Some(match cell {
            Cell::Null => return None,
            Cell::Integer(value) => number(*value as f64),
            Cell::Real(value) => number(*value),
            Cell::Text(text) => match text.trim_ascii().parse::<f64>() {
                Ok(value) => number(value),
                Err(_) => Self::Text(text.as_ref().into()),
            },
        })
    }
}

impl HashIndex {
    /// Reads all rows. `grow` is asked before each row is kept.
    pub fn build(
        rows: Rows,
        columns: &[usize],
        mut grow: impl FnMut() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut index: HashMap<Box<[Bucket]>, Vec<Arc<dyn Row>>, _> = HashMap::default();
        for row in rows {
            let row = row?;
            grow()?;
            let mut key = Vec::with_capacity(columns.len());
            for column in columns {
                key.extend(Bucket::of(&row.cell(*column)?));
            }
            if key.len() == columns.len() {
                index.entry(key.into()).or_default().push(row);
            }
        }
        Ok(Self { rows: index })
    }

    pub fn get(&self, key: &[Bucket]) -> &[Arc<dyn Row>] {
        self.rows.get(key).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_sqlite_may_find_equal_are_in_one_bucket() {
        let bucket = |cell: Cell<'_>| Bucket::of(&cell);
        for text in ["5", " 5 ", "5.0", "05", "+5", "5e0"] {
            assert_eq!(bucket(Cell::text(text)), bucket(Cell::Integer(5)), "{text}");
        }
        assert_eq!(bucket(Cell::Real(-0.0)), bucket(Cell::Integer(0)));
        assert_eq!(bucket(Cell::Null), None);
        assert_ne!(bucket(Cell::text("a")), bucket(Cell::text("A")));
    }
}
