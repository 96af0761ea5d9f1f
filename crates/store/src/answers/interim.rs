//! Answers before an answer (1xx), of which a server may send any number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hyper::Request;

/// How many of them are read, as Go did before it counted their bytes.
const MOST: u32 = 5;

/// The error of too many interim answers.
pub const TOO_MANY: &str = "net/http: too many 1xx informational responses";

/// A count of the answers before the answer to one request.
#[derive(Clone, Debug)]
pub struct Interim(Arc<AtomicU32>);

impl Interim {
    /// Counts those to this request.
    pub fn of<B>(request: &mut Request<B>) -> Self {
        let count = Arc::<AtomicU32>::default();
        let counted = count.clone();
        hyper::ext::on_informational(request, move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        Self(count)
    }

    pub fn are_too_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MOST
    }
}
