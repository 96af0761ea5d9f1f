//! Warnings for the client that sent a request.

use std::sync::{Mutex, MutexGuard};

/// Warnings for the client, without duplicates, in order. They are also sent with errors.
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
    /// The number of characters that would be sent.
    length: usize,
    /// How many warnings were added, including duplicates.
    added: usize,
}

/// After this many characters no more warnings are kept. Upstream sends 4096; if there are more, it cuts each text to
/// 256.
const FULL: usize = 2 * 4096;
/// After this many additions no more warnings are looked for, even if most were duplicates.
const MOST_ADDED: usize = 10_000;
const MOST_OF_A_TEXT: usize = 256;

impl Warnings {
    /// Warnings that are dropped.
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

    /// Whether no more warnings will be sent or looked for.
    pub fn is_full(&self) -> bool {
        self.lock().is_none_or(|texts| texts.length >= FULL || texts.added >= MOST_ADDED)
    }

    /// Takes all warnings out.
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
