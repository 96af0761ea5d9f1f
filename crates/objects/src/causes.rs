//! The problems of an object, limited to what an answer can contain.

use std::collections::HashSet;
use std::fmt;

/// How many causes are kept, and after how many bytes of text no more are. Upstream reports all; an object of 3 MiB may
/// have hundreds of thousands.
pub const KEPT_MAX: usize = 256;

const BYTES_MAX: usize = 256 * 1024;

/// Longer texts of a cause are cut; most of the length is the wrong value.
const TEXT_MAX: usize = 64 * 1024;

/// Causes in the order in which they were found. Only the first ones are kept, but all are counted.
#[derive(Debug, Default)]
pub struct Causes {
    kept: Vec<Cause>,
    bytes: usize,
    untold: usize,
}

impl Causes {
    /// The causes that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.kept.iter()
    }

    pub fn push(&mut self, cause: Cause) {
        self.add(|| cause);
    }

    /// Like [`Causes::push`], but makes the cause only if it is kept.
    pub fn add(&mut self, cause: impl FnOnce() -> Cause) {
        if self.is_full() {
            self.untold += 1;
            return;
        }
        let mut cause = cause();
        cut(&mut cause.field);
        cut(&mut cause.message);
        self.bytes += cause.field.len() + cause.message.len();
        self.kept.push(cause);
    }

    /// Adds the same cause several times.
    pub fn add_times(&mut self, times: usize, cause: impl Fn() -> Cause) {
        for kept in 0..times {
            if self.is_full() {
                self.untold += times - kept;
                return;
            }
            self.add(&cause);
        }
    }

    /// Whether no more causes are kept.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= KEPT_MAX || self.bytes >= BYTES_MAX
    }

    /// Counts causes that nobody has made.
    pub fn add_untold(&mut self, number: usize) {
        self.untold += number;
    }

    pub fn append(&mut self, others: Self) {
        others.kept.into_iter().for_each(|cause| self.push(cause));
        self.untold += others.untold;
    }

    /// Like [`Causes::append`], for causes of an object at this path in the whole object.
    pub fn append_within(&mut self, mut others: Self, path: &str) {
        if !path.is_empty() {
            others.kept.iter_mut().for_each(|cause| cause.field.insert_str(0, &format!("{path}.")));
        }
        self.append(others);
    }

    /// Sorts the kept causes.
    pub fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&Cause) -> K) {
        self.kept.sort_by_cached_key(key);
    }

    /// The number of causes, kept or not.
    pub fn len(&self) -> usize {
        self.kept.len() + self.untold
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The kept causes, followed by one that tells how many more there were.
    pub fn into_vec(mut self) -> Vec<Cause> {
        if self.untold > 0 {
            self.kept.push(Cause::new(CauseReason::TooMany, "", format!("and {} more errors", self.untold)));
        }
        self.kept
    }
}

impl Extend<Cause> for Causes {
    fn extend<I: IntoIterator<Item = Cause>>(&mut self, causes: I) {
        causes.into_iter().for_each(|cause| self.push(cause));
    }
}

fn cut(text: &mut String) {
    if text.len() > TEXT_MAX {
        let left = text.len() - text.floor_char_boundary(TEXT_MAX);
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        text.push_str(&format!("... ({left} more bytes)"));
    }
}

/// One entry of `details.causes`. The message includes the text of its class (`Required value: …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: CauseReason,
    pub field: String,
    pub message: String,
}

/// The machine-readable class of a [`Cause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseReason {
    Required,
    Invalid,
    NotSupported,
    Forbidden,
    Duplicate,
    TooLong,
    NotFound,
    TypeInvalid,
    TooMany,
    NamespaceTerminating,
    FieldManagerConflict,
    ResourceVersionTooLarge,
    DisruptionBudget,
    UnsupportedPlatform,
    NodeCapacity,
    Internal,
}

impl CauseReason {
    pub fn as_str(self) -> &'static str {
        match self {
            CauseReason::Required => "FieldValueRequired",
            CauseReason::Invalid => "FieldValueInvalid",
            CauseReason::NotSupported => "FieldValueNotSupported",
            CauseReason::Forbidden => "FieldValueForbidden",
            CauseReason::Duplicate => "FieldValueDuplicate",
            CauseReason::TooLong => "FieldValueTooLong",
            CauseReason::NotFound => "FieldValueNotFound",
            CauseReason::TypeInvalid => "FieldValueTypeInvalid",
            CauseReason::TooMany => "FieldValueTooMany",
            CauseReason::NamespaceTerminating => "NamespaceTerminating",
            CauseReason::FieldManagerConflict => "FieldManagerConflict",
            CauseReason::ResourceVersionTooLarge => "ResourceVersionTooLarge",
            CauseReason::DisruptionBudget => "DisruptionBudget",
            CauseReason::UnsupportedPlatform => "UnsupportedPlatform",
            CauseReason::NodeCapacity => "NodeCapacity",
            CauseReason::Internal => "InternalError",
        }
    }
}

impl Cause {
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(CauseReason::Required, field, with_detail("Required value", detail))
    }

    /// `value` is printed unchanged: callers must quote strings and spell other values as JSON.
    pub fn invalid(field: impl Into<String>, value: impl fmt::Display, detail: &str) -> Self {
        Self::new(CauseReason::Invalid, field, with_detail(&format!("Invalid value: {value}"), detail))
    }

    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(CauseReason::Forbidden, field, with_detail("Forbidden", detail))
    }

    /// `supported` must be in the order in which upstream lists the values.
    pub fn not_supported(field: impl Into<String>, value: impl fmt::Display, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|v| format!("\"{v}\"")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        Self::new(
            CauseReason::NotSupported,
            field,
            with_detail(&format!("Unsupported value: {value}"), &detail),
        )
    }

    /// `limit` is in bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self::new(CauseReason::TooLong, field, with_detail("Too long", &detail))
    }

    /// `value` is printed unchanged, like in [`Cause::invalid`].
    pub fn duplicate(field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new(CauseReason::Duplicate, field, format!("Duplicate value: {value}"))
    }

    /// A cause with a complete message.
    pub fn new(reason: CauseReason, field: impl Into<String>, message: String) -> Self {
        Self { reason, field: field.into(), message }
    }
}

fn with_detail(class: &str, detail: &str) -> String {
    if detail.is_empty() { class.to_owned() } else { format!("{class}: {detail}") }
}

/// Upstream's aggregate error: one cause alone, several as `[a, b]`, without duplicate texts.
pub fn aggregate(causes: &[Cause]) -> String {
    let mut seen = HashSet::with_capacity(causes.len());
    let texts = causes.iter().map(|cause| match (cause.reason, &*cause.field) {
        // This cause concerns no field: it tells how many more errors there are.
        (CauseReason::TooMany, "") => cause.message.clone(),
        (_, field) => format!("{field}: {}", cause.message),
    });
    let texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use self::aggregate;
    use super::*;

    #[test]
    fn the_first_are_told_and_all_are_counted() {
        let mut causes = Causes::default();
        let mut made = 0;
        for n in 0..250_000 {
            causes.add(|| {
                made += 1;
                Cause::invalid(format!("data[{n}]"), n, "no")
            });
        }
        assert_eq!((made, causes.len()), (KEPT_MAX, 250_000));
        let causes = causes.into_vec();
        assert_eq!(causes.len(), KEPT_MAX + 1);
        assert_eq!(causes[KEPT_MAX].message, "and 249744 more errors");
        let text = aggregate(&causes);
        assert!(text.starts_with("[data[0]: Invalid value: 0: no, data[1]: "), "{text}");
        assert!(text.ends_with("data[255]: Invalid value: 255: no, and 249744 more errors]"), "{text}");
    }

    #[test]
    fn long_texts_are_cut_and_fill_the_answer() {
        let mut causes = Causes::default();
        (0..100).for_each(|_| causes.push(Cause::invalid("é".repeat(1 << 20), "x".repeat(1 << 20), "")));
        assert_eq!(causes.len(), 100);
        let causes = causes.into_vec();
        let bytes: usize = causes.iter().map(|cause| cause.field.len() + cause.message.len()).sum();
        assert!(bytes < 2 * BYTES_MAX, "{bytes}");
        assert!(causes[0].field.ends_with("é... (2031616 more bytes)"), "{}", causes[0].field.len());
    }

    #[test]
    fn those_of_two_sources_are_one_list() {
        let cause = |n: usize| Cause::required(format!("f{n}"), "");
        let (mut one, mut other) = (Causes::default(), Causes::default());
        one.extend((0..200).map(cause));
        other.extend((200..600).map(cause));
        one.append(other);
        assert_eq!(one.len(), 600);
        let causes = one.into_vec();
        assert_eq!(causes[..KEPT_MAX], (0..KEPT_MAX).map(cause).collect::<Vec<_>>());
        assert_eq!(causes[KEPT_MAX].message, "and 344 more errors");
    }
}
