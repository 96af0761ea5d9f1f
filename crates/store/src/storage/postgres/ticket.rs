//! Numbers of batches. A batch is recorded under its number in the transaction that commits it, so that the database can
//! be asked what became of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The places in flight of one writer. There are as many as batches were ever under way at once, and one more for each whose
/// fate could not be learned. Each has one row in the database.
pub struct Tickets {
    /// Identifies the process that opened this store.
    writer: Arc<str>,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    /// Free places, with the number of the last batch in each.
    free: Vec<(i32, i64)>,
    made: i32,
}

/// The number of one batch. No other batch has its place until it is settled what became of this one: its call may hold
/// the place's row in the database.
pub struct Ticket<'a> {
    tickets: &'a Tickets,
    pub place: i32,
    pub number: i64,
}

impl Tickets {
    pub fn new(writer: &str) -> Self {
        Self { writer: writer.into(), places: Mutex::default() }
    }

    pub fn draw(&self) -> Ticket<'_> {
        let mut places = self.places();
        let (place, last) = match places.free.pop() {
            Some(free) => free,
            None => {
                places.made += 1;
                (places.made, 0)
            }
        };
        Ticket { tickets: self, place, number: last + 1 }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    pub fn writer(&self) -> &str {
        &self.tickets.writer
    }

    /// It is known what became of the batch: another one may have the place.
    pub fn settled(self) {
        self.tickets.places().free.push((self.place, self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_out_twice_and_places_are_used_again_once_that_is_safe() {
        let tickets = Tickets::new("w");
        let (one, two) = (tickets.draw(), tickets.draw());
        assert_eq!(((one.place, one.number), (two.place, two.number)), ((1, 1), (2, 1)));
        one.settled();
        // The second one's fate stays unknown, so its place is lost.
        let (three, four) = (tickets.draw(), tickets.draw());
        assert_eq!(((three.place, three.number), (four.place, four.number)), ((1, 2), (3, 1)));
    }
}
