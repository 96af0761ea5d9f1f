//! Which old value a new one is compared with (`apiserver/pkg/cel/common/equality.go`).

use rowplane_values::tree::Value;
use smol_str::SmolStr;

/// A value, and what it was before.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    new: &'a Value,
    old: &'a Value,
}

/// Whether what is wrong with a value was so before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Correlation<'a> {
    current: Option<Pair<'a>>,
    /// The nearest value around that has a former one.
    around: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub fn of(new: &'a Value, old: Option<&'a Value>) -> Self {
        Self { current: old.map(|old| Pair { new, old }), around: None }
    }

    /// What is left of it within `allOf`.
    pub fn of_parts(self) -> Self {
        Self { current: None, around: self.around }
    }

    pub fn is_unchanged(self) -> bool {
        self.current.or(self.around).is_some_and(|pair| pair.new == pair.old)
    }

    pub fn member(self, name: &str) -> Self {
        let Some(pair) = self.current else { return self };
        if self.around.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        let inner = pair.new.get(name).zip(pair.old.get(name)).map(|(new, old)| Pair { new, old });
        Self { current: inner, around: Some(pair) }
    }

    pub fn element(self, new: &'a Value, old: Option<&'a Value>) -> Self {
        let Some(pair) = self.current else { return self };
        Self { current: old.map(|old| Pair { new, old }), around: Some(pair) }
    }
}

/// Old elements of a list by the members that tell them apart.
pub struct OldItems<'a> {
    items: std::collections::HashMap<String, &'a Value>,
    keys: &'a [SmolStr],
}

impl<'a> OldItems<'a> {
    pub fn new(items: &'a [Value], keys: Option<&'a Vec<SmolStr>>) -> Self {
        let keys = keys.map_or(&[][..], Vec::as_slice);
        let mut known = std::collections::HashMap::new();
        if !keys.is_empty() {
            for item in items.iter().filter(|item| item.is_object()) {
                known.entry(key_of(item, keys)).or_insert(item);
            }
        }
        Self { items: known, keys }
    }

    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() || !item.is_object() {
            return None;
        }
        self.items.get(&key_of(item, self.keys)).copied()
    }
}

fn key_of(item: &Value, keys: &[SmolStr]) -> String {
    let parts = keys.iter().map(|key| item.get(key.as_str()).map_or("-".to_owned(), Value::to_string));
    parts.collect::<Vec<_>>().join("\n")
}
