//! Warnings for the client that sent a request.

use std::sync::{Mutex, MutexGuard};

/// Warnings for the client, each text once, in their order. They are sent with errors too.
#[derive(Debug)]
pub struct Warnings(Option<Mutex<Texts>>);

impl Default for Warnings {
    fn default() -> Self {
        Self(Some(Mutex::default()))
    }
}

#[derive(Debug, Default)]
struct Texts {
    list: Vec<String>,
    /// Characters that would be sent of them.
    length: usize,
    /// How many were added, though mostly not for the first time.
    added: usize,
}

/// Characters of all texts after which no more are kept. Upstream sends 4096, and of each text, where there are more, no
/// more than 256.
const FULL: usize = 2 * 4096;
/// After so many nobody looks for more, even if most were told before.
const MOST_ADDED: usize = 10_000;
const MOST_OF_A_TEXT: usize = 256;

impl Warnings {
    /// Warnings that nobody reads.
    pub const UNREAD: Self = Self(None);

    pub fn add(&self, text: impl Into<String>) {
        let Some(mut texts) = self.lock() else { return };
        let text = text.into();
        texts.added += 1;
        if texts.length < FULL && !text.is_empty() && !texts.list.contains(&text) {
            texts.length += text.chars().count().min(MOST_OF_A_TEXT);
            texts.list.push(text);
        }
    }

    /// Whether there are as many as will be sent, or as many as anybody looks for.
    pub fn is_full(&self) -> bool {
        self.lock().is_none_or(|texts| texts.length >= FULL || texts.added >= MOST_ADDED)
    }

    /// All of them, and none is left.
    pub fn take(&self) -> Vec<String> {
        self.lock().map(|mut texts| std::mem::take(&mut *texts).list).unwrap_or_default()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Texts>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_warnings_are_kept_than_are_sent() {
        let warnings = Warnings::default();
        assert!(!warnings.is_full());
        (0..5000).for_each(|n| warnings.add(format!("{n}{}", "x".repeat(300))));
        assert!(warnings.is_full());
        let kept = warnings.take();
        assert_eq!(kept.len(), FULL / MOST_OF_A_TEXT);
        assert!(kept[0].starts_with("0x"));
        assert!(!warnings.is_full());
        (0..MOST_ADDED - 1).for_each(|_| warnings.add("again"));
        assert!(!warnings.is_full());
        warnings.add("again");
        assert!(warnings.is_full());
        assert_eq!(warnings.take(), ["again"]);
    }
}
