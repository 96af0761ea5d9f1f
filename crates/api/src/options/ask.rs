//! Parameters that lists and watches have through the door `/ask/` alone: selectors of any field, filters, order,
//! counts and search (docs/spec/time-and-sql.md, section 5).

mod filter;
mod order;
mod scalar;
mod search;
mod seen;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::filter::Filter;
pub use self::order::{Order, SortKey};
use self::scalar::ScalarPath;
pub use self::search::Search;
pub use self::seen::Seen;
use super::query::Query;
use super::selector::field::{Operator, Term};
use crate::codec::object::Object;
use crate::error::Error;
use crate::long_work;
use crate::schema::kind::Kind;

const FILTER: &str = "rowplane.filter";
const ORDER: &str = "rowplane.orderBy";
const COUNT: &str = "rowplane.count";
const SEARCH: &str = "rowplane.search";

/// The parameters of a request through the door, as the URL has them. Empty strings mean absent parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'q> {
    filter: &'q str,
    order: &'q str,
    search: &'q str,
    counts: bool,
}

/// The parameters of a request through the door, for a kind.
#[derive(Debug, Default)]
pub struct Ask {
    fields: Vec<FieldTerm>,
    pub filter: Option<Filter>,
    search: Option<Search>,
    pub order: Option<Order>,
    /// Whether only the number of objects is wanted.
    pub counts: bool,
}

/// A term of a field selector that the ordinary path does not know.
#[derive(Debug)]
struct FieldTerm {
    path: ScalarPath,
    operator: Operator,
    value: String,
}

/// Two requests are the same if they are one.
impl PartialEq for Ask {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Ask {}

/// Whether a request has a parameter that only lists and watches through the door know.
pub fn is_asked(query: &Query) -> bool {
    [FILTER, ORDER, COUNT, SEARCH].into_iter().any(|name| query.get(name).is_some())
}

impl<'q> Parameters<'q> {
    pub fn of(query: &'q Query) -> Self {
        Self {
            filter: query.text(FILTER),
            order: query.text(ORDER),
            search: query.text(SEARCH),
            counts: query.flag(COUNT).unwrap_or(false),
        }
    }

    /// Refuses what a watch cannot have.
    pub fn check_watch(&self) -> Result<(), Error> {
        let refused = [(!self.order.is_empty(), ORDER), (self.counts, COUNT)];
        match refused.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, name)) => Err(Error::BadRequest(format!("{name} is for lists; a watch cannot have it"))),
            None => Ok(()),
        }
    }

    /// Reads the parameters for a kind; `terms` are those of the field selector that the kind does not know otherwise.
    /// Faults are a 400.
    pub fn read(self, kind: &Kind, terms: Vec<Term>) -> Result<Arc<Ask>, Error> {
        let field = |Term { field, operator, value }| match ScalarPath::of(kind, &field) {
            Some(path) => Ok(FieldTerm { path, operator, value }),
            None => Err(Error::BadRequest(format!("field label not supported: {field}"))),
        };
        let given = |text: &'q str| Some(text).filter(|text| !text.is_empty());
        Ok(Arc::new(Ask {
            fields: terms.into_iter().map(field).collect::<Result<_, _>>()?,
            // The types of a kind may be thousands.
            filter: given(self.filter)
                .map(|text| long_work::run(|| Filter::compile(text, kind)))
                .transpose()
                .map_err(|why| Error::BadRequest(format!("{FILTER}: {why}")))?,
            search: given(self.search).map(Search::new),
            order: given(self.order)
                .map(|text| Order::parse(text, kind))
                .transpose()
                .map_err(|why| Error::BadRequest(format!("{ORDER}: {why}")))?,
            counts: self.counts,
        }))
    }
}

impl Ask {
    /// A search for a text in all objects.
    pub fn search(text: &str) -> Arc<Self> {
        Arc::new(Self { search: Some(Search::new(text)), ..Self::default() })
    }

    /// Whether only some of the objects are selected.
    pub fn selects_some(&self) -> bool {
        !self.fields.is_empty() || self.filter.is_some() || self.search.is_some()
    }

    /// Whether the object, which is seen so, is selected.
    pub fn selects(&self, object: &Object, seen: &Seen<'_>) -> bool {
        self.fields.iter().all(|term| {
            let text = term.path.text(seen);
            (text == term.value) == (term.operator == Operator::Equals)
        }) && self.search.as_ref().is_none_or(|search| object.json().is_ok_and(|json| search.is_in(json)))
            && self.filter.as_ref().is_none_or(|filter| filter.holds(object, seen))
    }
}

/// How long the server works for one list.
const MOST_WORK: Duration = Duration::from_secs(5);

/// The work for one list, which has an end.
#[derive(Debug)]
pub struct Effort {
    left: Duration,
    looked_at: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { left: MOST_WORK, looked_at: 0 }
    }
}

impl Effort {
    /// Does a part of the work, which looks at so many objects.
    pub fn spend<T>(&mut self, objects: usize, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.left.is_zero() {
            let looked_at = self.looked_at;
            return Err(Error::Timeout(format!(
                "the list takes too much work: {looked_at} objects were looked at"
            )));
        }
        let began = Instant::now();
        let done = work();
        self.left = self.left.saturating_sub(began.elapsed());
        self.looked_at += objects as u64;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_for_a_list_has_an_end() {
        let mut effort = Effort { left: Duration::from_nanos(1), looked_at: 0 };
        let spin = || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_nanos(1) {}
            Ok(())
        };
        assert_eq!(effort.spend(7, spin), Ok(()));
        let over = Error::Timeout("the list takes too much work: 7 objects were looked at".to_owned());
        assert_eq!(effort.spend(1, || Ok(())), Err(over));
    }
}
