//! The choice of how a table is read, from the constraints that SQLite offers (`xBestIndex`).

use crate::Table;

/// An equality that a statement demands of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equality {
    /// The place among the constraints that SQLite has offered.
    pub at: usize,
    pub column: usize,
    /// Whether the other side is known before the other tables of the statement are read.
    pub is_usable: bool,
    /// Whether the other side is the same for all rows of other tables.
    pub is_constant: bool,
    /// Whether the other side is a list (`IN`).
    pub is_list: bool,
}

/// How the rows of a table are found. Arguments of a scan are in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The constraint that names the time.
    pub time: Option<Equality>,
    /// Equalities on the first columns of the key.
    pub key: Vec<Equality>,
    /// Equalities that a hash index answers.
    pub hashed: Vec<Equality>,
}

/// The time of the rows is known later than the rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnknown;

impl Plan {
    /// The whole key is the best way; then a hash index, if rows are probed one after the other; a part of the key; and
    /// otherwise a scan, whose rows SQLite filters.
    pub fn of(table: &dyn Table, equalities: &[Equality]) -> Result<Self, TimeUnknown> {
        let is_time = |equality: &&Equality| table.has_times() && equality.column == 0;
        let time = equalities.iter().find(is_time).copied();
        if time.is_some_and(|time| !time.is_usable || time.is_list) {
            return Err(TimeUnknown);
        }
        let usable: Vec<Equality> =
            equalities.iter().filter(|one| one.is_usable && !is_time(one)).copied().collect();
        let on = |column: &usize| usable.iter().find(|one| one.column == *column).copied();
        let key: Vec<Equality> = table.key().iter().map_while(on).collect();
        let mut hashed = Vec::new();
        if key.len() < table.key().len() || key.is_empty() {
            hashed.extend(usable.iter().filter(|one| !one.is_constant && !one.is_list).copied());
            if hashed.is_empty() && key.is_empty() {
                hashed.extend(usable.iter().find(|one| one.is_list && !one.is_constant).copied());
            }
        }
        let key = if hashed.is_empty() { key } else { Vec::new() };
        Ok(Self { time, key, hashed })
    }

    /// All equalities in the order of a scan's arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &Equality> {
        self.time.iter().chain(&self.key).chain(&self.hashed)
    }

    /// Cost and rows of one scan, for a table of so many rows.
    pub fn estimate(&self, table: &dyn Table) -> (f64, i64) {
        let size = table.size().max(1) as f64;
        let (cost, rows) = if !self.hashed.is_empty() {
            (20.0, (size / 10.0).clamp(1.0, 10.0))
        } else if self.key.is_empty() {
            (size * 2.0, size)
        } else if self.key.len() == table.key().len() {
            (5.0, 1.0)
        } else {
            (size / 5.0 + 5.0, size / 10.0)
        };
        (cost, rows.clamp(1.0, 1e12) as i64)
    }

    /// The text in which SQLite keeps the plan until the scan.
    pub fn encode(&self) -> String {
        let equality = |letter: char, one: &Equality| {
            format!("{letter}{}{} ", one.column, if one.is_list { "*" } else { "" })
        };
        let mut text = String::new();
        self.time.iter().for_each(|one| text += &equality('t', one));
        self.key.iter().for_each(|one| text += &equality('k', one));
        self.hashed.iter().for_each(|one| text += &equality('h', one));
        text
    }

    /// Reads what [`Plan::encode`] has written; only columns and lists are known then.
    pub fn decode(text: &str) -> Self {
        let mut plan = Self::default();
        for (at, word) in text.split_ascii_whitespace().enumerate() {
            let is_list = word.ends_with('*');
            let column = word[1..].trim_end_matches('*').parse().unwrap_or_default();
            let equality = Equality { at, column, is_usable: true, is_constant: false, is_list };
            match word.as_bytes()[0] {
                b't' => plan.time = Some(equality),
                b'k' => plan.key.push(equality),
                _ => plan.hashed.push(equality),
            }
        }
        plan
    }
}
