//! Correlation: the old value that a new one is compared with (`apiserver/pkg/cel/common/equality.go`).

use rowplane_values::tree::Value;
use smol_str::SmolStr;

use super::seen::Seen;
use crate::decl::{Decl, Kind, ListKind};

/// A value, its old version, and its declaration; `None` for the root, whose metadata no schema declares.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    new: Seen<'a>,
    old: Seen<'a>,
    decl: Option<&'a Decl>,
}

/// Whether what is wrong with a value was so before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Correlation<'a> {
    current: Option<Pair<'a>>,
    /// The nearest value around that has a former one.
    around: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub fn of(new: Seen<'a>, old: Option<Seen<'a>>) -> Self {
        Self { current: old.map(|old| Pair { new, old, decl: None }), around: None }
    }

    /// The correlation within a schema of `allOf`, by the nearest value around alone.
    pub fn of_parts(self) -> Self {
        Self { current: None, around: self.around }
    }

    pub fn is_unchanged(self) -> bool {
        self.current.or(self.around).is_some_and(|pair| is_unchanged(pair.new, pair.old, pair.decl))
    }

    pub fn member(self, name: &str, decl: &'a Decl) -> Self {
        let Some(pair) = self.current else { return self };
        if self.around.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        let both = pair.new.member(name).zip(pair.old.member(name));
        let current = both.map(|(new, old)| Pair { new: new.into(), old: old.into(), decl: Some(decl) });
        Self { current, around: Some(pair) }
    }

    pub fn element(self, new: &'a Value, old: Option<&'a Value>, decl: &'a Decl) -> Self {
        let Some(pair) = self.current else { return self };
        let current = old.map(|old| Pair { new: new.into(), old: old.into(), decl: Some(decl) });
        Self { current, around: Some(pair) }
    }
}

/// Whether a value is what it was; members that are not declared are taken for changed.
fn is_unchanged(new: Seen<'_>, old: Seen<'_>, decl: Option<&Decl>) -> bool {
    match (new, old) {
        (Seen::Other(Value::Array(new)), Seen::Other(Value::Array(old))) => match decl.map(|decl| &decl.kind)
        {
            Some(Kind::List(list)) if list.kind != ListKind::Atomic && list.kind != ListKind::Set => {
                let ListKind::Map(keys) = &list.kind else { return false };
                let keys: Vec<SmolStr> = keys.iter().map(|key| name_of(&list.items, key)).collect();
                let known = OldItems::new(old, Some(&keys));
                let same = |item: &Value| {
                    known
                        .get(item)
                        .is_some_and(|old| is_unchanged(item.into(), old.into(), Some(&list.items)))
                };
                new.len() == old.len() && new.iter().all(same)
            }
            _ => new == old,
        },
        (Seen::Object(new), Seen::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| {
                    let inner = decl.and_then(|decl| member_of(decl, name));
                    let both = old.get(name).zip(inner);
                    both.is_some_and(|(old, inner)| is_unchanged(value.into(), old.into(), Some(inner)))
                })
        }
        (Seen::Other(new), Seen::Other(old)) => new == old,
        _ => false,
    }
}

fn member_of<'d>(decl: &'d Decl, name: &str) -> Option<&'d Decl> {
    match &decl.kind {
        Kind::Object(object) => object.named(name).map(|field| &field.decl),
        Kind::Map(values) => Some(values),
        _ => None,
    }
}

/// The name in objects of a field that expressions call so.
fn name_of(items: &Decl, escaped: &str) -> SmolStr {
    let field = match &items.kind {
        Kind::Object(object) => object.field(escaped, 0),
        _ => None,
    };
    field.map_or_else(|| escaped.into(), |field| field.name.clone())
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
