//! Second calls of webhooks and policies whose `reinvocationPolicy` asks for them, once others have changed the object.

use crate::ObjectMap;

/// The webhooks or policies that were called for an object in the first round, and those that are called again in the second.
#[derive(Default)]
pub struct Calls {
    /// Keys of calls that are repeated if the object changes afterwards.
    made: Vec<String>,
    /// Keys of calls that are repeated in the second round.
    due: Vec<String>,
    /// The object as the last call left it.
    left: Option<ObjectMap>,
}

impl Calls {
    /// Begins a round with the object as it is now.
    pub fn begin(&mut self, round: u8, object: Option<&ObjectMap>) {
        if round > 0 && self.left.as_ref() != object {
            self.object_has_changed();
        }
    }

    /// Whether a call that matches is left out: one that was not called in the first round is not called in the second.
    pub fn leaves_out(&self, round: u8, key: &str) -> bool {
        round > 0 && !self.due.iter().any(|due| due == key)
    }

    pub fn object_has_changed(&mut self) {
        self.due.append(&mut self.made);
    }

    /// Notes a call that is to be repeated if the object changes.
    pub fn repeat(&mut self, key: String) {
        self.made.push(key);
    }

    pub fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Ends a round with the object as it is now.
    pub fn end(&mut self, object: Option<&ObjectMap>) {
        if !self.made.is_empty() || !self.due.is_empty() {
            self.left = object.cloned();
        }
    }
}
