//! `rowplane.orderBy`: the order of a list by scalars of its objects.

use std::borrow::Cow;
use std::cmp::Ordering;

use jiff::Timestamp;

use super::scalar::{ScalarKind, ScalarPath};
use super::seen::Seen;
use crate::quantity;
use crate::schema::kind::Kind;

/// The most fields by which a list is ordered.
const MOST_FIELDS: usize = 8;

/// The fields by which a list is ordered, the first one before the others. Objects that are equal in all have the order
/// of their keys.
#[derive(Debug)]
pub struct Order {
    /// The parameter as the request has it.
    pub text: String,
    fields: Vec<(ScalarPath, Direction)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

/// The place of an object in an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey(Vec<Place>);

/// The place of a value: missing ones are the last, in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Ascending(Sorted),
    Descending(Sorted),
    Missing,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sorted {
    /// A number in billionths.
    Number(i128),
    Text(Box<str>),
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Ascending(one), Self::Ascending(other)) => one.cmp(other),
            (Self::Descending(one), Self::Descending(other)) => other.cmp(one),
            _ => (*self == Self::Missing).cmp(&(*other == Self::Missing)),
        }
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Order {
    /// Reads `-metadata.creationTimestamp,spec.priority`; the error says what is wrong.
    pub fn parse(text: &str, kind: &Kind) -> Result<Self, String> {
        let fields = text.split(',').map(|field| {
            let (path, direction) = match field.strip_prefix('-') {
                Some(path) => (path, Direction::Descending),
                None => (field, Direction::Ascending),
            };
            let scalar = ScalarPath::of(kind, path);
            Ok((scalar.ok_or_else(|| format!("field label not supported: {path}"))?, direction))
        });
        let fields: Vec<_> = fields.take(MOST_FIELDS + 1).collect::<Result<_, String>>()?;
        match fields.len() > MOST_FIELDS {
            true => Err(format!("a list is ordered by {MOST_FIELDS} fields at most")),
            false => Ok(Self { text: text.to_owned(), fields }),
        }
    }

    pub fn key(&self, seen: &Seen<'_>) -> SortKey {
        let place = |(path, direction): &(ScalarPath, Direction)| {
            let value = path.found(seen).filter(|text| !text.is_empty()).map(|text| sorted(text, path.kind));
            match (value, direction) {
                (None, _) => Place::Missing,
                (Some(value), Direction::Ascending) => Place::Ascending(value),
                (Some(value), Direction::Descending) => Place::Descending(value),
            }
        };
        SortKey(self.fields.iter().map(place).collect())
    }
}

fn sorted(text: Cow<'_, str>, kind: ScalarKind) -> Sorted {
    let number = match kind {
        ScalarKind::Text => None,
        ScalarKind::Time => text.parse::<Timestamp>().ok().map(Timestamp::as_nanosecond),
        // Numbers of JSON that are no quantities have long fractions or exponents.
        #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
        ScalarKind::Number => {
            quantity::nanos(&text).or_else(|| Some((text.parse::<f64>().ok()? * 1e9) as i128))
        }
    };
    number.map_or_else(|| Sorted::Text(text.into()), Sorted::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_ordered_by_what_they_mean() {
        let sorted = |text: &str, kind| sorted(text.into(), kind);
        let ascending = |kind, texts: &[&str]| {
            for pair in texts.windows(2) {
                assert!(sorted(pair[0], kind) < sorted(pair[1], kind), "{pair:?}");
            }
        };
        ascending(ScalarKind::Text, &["10", "9", "a"]);
        ascending(ScalarKind::Number, &["-1", "1n", "900m", "1", "1.5", "9", "10", "1Ki", "1e21", "http"]);
        ascending(ScalarKind::Time, &["2026-01-01T01:30:00+02:00", "2026-01-01T00:00:00Z"]);
        let place = |text: &str| Place::Descending(sorted(text, ScalarKind::Number));
        assert!(place("2") < place("1") && place("1") < Place::Missing);
    }
}
