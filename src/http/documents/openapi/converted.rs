//! The document of v3 about the group version of an extension server that has documents of v2 alone.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::packed::Packed;
use super::{Form, Kept, Made, gnostic};
use crate::api::followers::api_services::converted::v3_of;
use crate::api::followers::api_services::openapi::V2Part;
use crate::wall_clock::WallClock;

#[derive(Debug)]
pub(super) struct Converted {
    pub part: Arc<V2Part>,
    made: OnceLock<(Made, SystemTime)>,
}

impl Converted {
    pub fn new(part: &Arc<V2Part>) -> Self {
        Self { part: part.clone(), made: OnceLock::new() }
    }

    pub fn hash(&self, clock: &WallClock) -> &str {
        &self.made(clock).0.hash
    }

    pub fn kept(&self, form: Form, clock: &WallClock) -> Kept<'_> {
        let (made, modified) = self.made(clock);
        made.kept(form, *modified, gnostic::encode_v3)
    }

    fn made(&self, clock: &WallClock) -> &(Made, SystemTime) {
        self.made.get_or_init(|| {
            let (json, hash) = Packed::json(&v3_of(&self.part));
            (Made::new(json, hash), clock.now())
        })
    }
}
