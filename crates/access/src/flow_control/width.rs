//! How many seats a request needs, in upstream's numbers.

use std::time::Duration;

use crate::auth::authorizer::Attributes;
use crate::schema::names::{GroupVersion, Gvr};

/// How long a request is taken to need its seats before that is known.
pub(super) const ESTIMATED_SECONDS: f64 = 0.003;

/// How many seats a request needs, and for how long it keeps some after it was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    pub initial: usize,
    /// Needed after the answer, while watchers are served.
    pub last: usize,
    pub lingering: Duration,
}

impl Width {
    pub const ONE: Self = Self { initial: 1, last: 0, lingering: Duration::ZERO };

    pub fn of(seats: usize) -> Self {
        Self { initial: seats, ..Self::ONE }
    }

    pub fn seats(self) -> usize {
        self.initial.max(self.last)
    }

    /// In seat-seconds.
    pub(super) fn work(self) -> f64 {
        self.initial as f64 * ESTIMATED_SECONDS + self.last as f64 * self.lingering.as_secs_f64()
    }

    /// The width with at most `limit` seats after the answer, and the same work.
    pub(super) fn within(self, limit: usize) -> Self {
        if self.last <= limit || limit == 0 {
            return self;
        }
        Self { last: limit, lingering: self.lingering.mul_f64(self.last as f64 / limit as f64), ..self }
    }
}

/// The most seats of a list, and of a write.
pub const LARGEST_LIST: usize = 100;
pub const WIDEST_WRITE: usize = 10;

const BYTES_PER_SEAT: usize = 100_000;
/// Lists come from memory and go out in pieces, so that more is never held at once.
const LARGEST_IN_MEMORY: usize = 1_000_000;
const WATCHES_PER_SEAT: usize = 10;
/// How long a seat is needed to serve its watches.
const SERVING: Duration = Duration::from_millis(5);

/// How many objects a resource has, and their mean size in bytes; `None` if it is not served.
pub type Sizes = dyn Fn(&Gvr) -> Option<(usize, usize)> + Send + Sync;

/// The options of a list or a watch that bear on its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// 0 is no limit.
    pub limit: usize,
    /// Whether a watch begins with the state.
    pub has_state: bool,
}

pub fn list(request: &Attributes<'_>, listing: &Listing, sizes: Option<&Sizes>, most: usize) -> Width {
    if request.verb == "watch" && !listing.has_state {
        return Width::ONE;
    }
    let resource = GroupVersion::new(request.group, request.version).with_plural(request.resource);
    let Some((count, size)) = sizes.and_then(|sizes| sizes(&resource)) else { return Width::ONE };
    let objects = match (request.name, listing.limit) {
        ("", 0) => count,
        ("", limit) => limit.min(count),
        _ => 1,
    };
    let bytes = objects.saturating_mul(size).min(LARGEST_IN_MEMORY);
    Width::of(bytes.div_ceil(BYTES_PER_SEAT).min(most).max(1))
}

/// A write that so many watches see.
pub fn write(request: &Attributes<'_>, watches: usize, most: usize) -> Width {
    let is_stored = (request.resource, request.subresource) != ("serviceaccounts", "token");
    if !is_stored || watches < WATCHES_PER_SEAT {
        return Width::ONE;
    }
    let seats = watches.div_ceil(WATCHES_PER_SEAT);
    let last = seats.min(most.max(1));
    Width { initial: 1, last, lingering: SERVING.mul_f64(seats as f64 / last as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;

    fn request<'a>(user: &'a User, verb: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes { resource: "pods", name, ..Attributes::of_path(user, verb, "") }
    }

    #[test]
    fn lists_are_as_wide_as_what_is_held_at_once() {
        let user = User::default();
        let sizes: &Sizes = &|resource| (resource.plural == "pods").then_some((500, 1000));
        let seats =
            |verb, name, listing| list(&request(&user, verb, name), &listing, Some(sizes), 100).initial;
        let all = Listing::default();
        assert_eq!(seats("list", "", all), 5);
        assert_eq!(seats("list", "p", all), 1);
        assert_eq!(seats("list", "", Listing { limit: 250, ..all }), 3);
        assert_eq!(seats("list", "", Listing { limit: 5000, ..all }), 5);
        assert_eq!(seats("watch", "", all), 1);
        assert_eq!(seats("watch", "", Listing { has_state: true, ..all }), 5);
        let large: &Sizes = &|_| Some((1_000_000, 10_000));
        let list_of = |most| list(&request(&user, "list", ""), &all, Some(large), most).initial;
        assert_eq!((list_of(100), list_of(3)), (10, 3));
        let unknown: &Sizes = &|_| None;
        assert_eq!(list(&request(&user, "list", ""), &all, Some(unknown), 100), Width::ONE);
    }

    #[test]
    fn writes_keep_seats_for_their_watches() {
        let user = User::default();
        let width = |watches, most| write(&request(&user, "create", ""), watches, most);
        let of =
            |last, milliseconds| Width { initial: 1, last, lingering: Duration::from_millis(milliseconds) };
        assert_eq!(width(9, 10), Width::ONE);
        assert_eq!(width(10, 10), of(1, 5));
        assert_eq!(width(95, 10), of(10, 5));
        assert_eq!(width(200, 10), of(10, 10));
        assert_eq!(width(200, 4), of(4, 25));
        let token =
            Attributes { resource: "serviceaccounts", subresource: "token", ..request(&user, "create", "a") };
        assert_eq!(write(&token, 1000, 10), Width::ONE);
    }
}
