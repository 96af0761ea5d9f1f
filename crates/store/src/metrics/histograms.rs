//! Histograms as counters of their buckets, so that recording is a few additions. Those of the exporter keep every sample
//! until they are condensed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{HistogramFn, Label};

/// All histograms of a server, by name and labels.
#[derive(Debug, Default)]
pub struct Histograms {
    families: Mutex<BTreeMap<&'static str, BTreeMap<String, Arc<Buckets>>>>,
}

impl Histograms {
    /// The histogram of this name with these labels, which all callers share. Their order counts.
    pub fn register(&self, name: &'static str, labels: &[Label], limits: &'static [f64]) -> Arc<Buckets> {
        let mut families = self.families();
        let family = families.entry(name).or_default();
        family.entry(text_of(labels)).or_insert_with(|| Arc::new(Buckets::new(limits))).clone()
    }

    /// Adds the text of `/metrics`.
    pub fn render(&self, out: &mut String, head: impl Fn(&mut String, &str, &str)) {
        for (name, family) in self.families().iter() {
            head(out, name, "histogram");
            for (labels, buckets) in family {
                buckets.render(out, name, labels);
            }
            out.push('\n');
        }
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<&'static str, BTreeMap<String, Arc<Buckets>>>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One histogram.
#[derive(Debug)]
pub struct Buckets {
    /// Ascending.
    limits: &'static [f64],
    /// One for each limit, not cumulative, and one for what is larger.
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl Buckets {
    pub fn new(limits: &'static [f64]) -> Self {
        let counts = (0..=limits.len()).map(|_| AtomicU64::new(0)).collect();
        Self { limits, counts, sum: AtomicU64::new(0f64.to_bits()) }
    }

    pub fn record(&self, value: f64) {
        let bucket = self.limits.iter().position(|limit| value <= *limit);
        self.counts[bucket.unwrap_or(self.limits.len())].fetch_add(1, Ordering::Relaxed);
        if value != 0.0 {
            let added = |sum: u64| Some((f64::from_bits(sum) + value).to_bits());
            let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Adds the lines of the histogram. `labels` is the text between the braces, without `le`.
    pub fn render(&self, out: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut count = 0;
        for (own, limit) in self.counts.iter().zip(self.limits) {
            count += own.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{limit}\"}} {count}");
        }
        count += self.counts[self.limits.len()].load(Ordering::Relaxed);
        let sum = f64::from_bits(self.sum.load(Ordering::Relaxed));
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{open}{labels}{close} {sum}");
        let _ = writeln!(out, "{name}_count{open}{labels}{close} {count}");
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        self.record(value);
    }
}

/// The labels as they stand between the braces.
fn text_of(labels: &[Label]) -> String {
    let mut text = String::new();
    for label in labels {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{}=\"", label.key());
        for character in label.value().chars() {
            match character {
                '\\' | '"' => text.extend(['\\', character]),
                '\n' => text.push_str("\\n"),
                _ => text.push(character),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_in_their_buckets() {
        let histograms = Histograms::default();
        let labels = [Label::new("verb", "GET"), Label::new("text", "a\"\\\n")];
        let one = histograms.register("seconds", &labels, &[0.5, 2.0]);
        for value in [0.25, 0.5, 2.0, 3.0] {
            one.record(value);
        }
        histograms.register("seconds", &labels, &[0.5, 2.0]).record(0.25);
        histograms.register("sizes", &[], &[1.0]).record(1.0);
        let mut text = String::new();
        histograms.render(&mut text, |out, name, kind| out.push_str(&format!("# TYPE {name} {kind}\n")));
        let labels = r#"verb="GET",text="a\"\\\n""#;
        let want = format!(
            "# TYPE seconds histogram\n\
             seconds_bucket{{{labels},le=\"0.5\"}} 3\nseconds_bucket{{{labels},le=\"2\"}} 4\n\
             seconds_bucket{{{labels},le=\"+Inf\"}} 5\nseconds_sum{{{labels}}} 6\nseconds_count{{{labels}}} 5\n\n\
             # TYPE sizes histogram\n\
             sizes_bucket{{le=\"1\"}} 1\nsizes_bucket{{le=\"+Inf\"}} 1\nsizes_sum 1\nsizes_count 1\n\n"
        );
        assert_eq!(text, want);
    }

    #[test]
    fn threads_lose_nothing() {
        let buckets = Buckets::new(&[1.0]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| buckets.record(0.5)));
            }
        });
        assert_eq!((buckets.count(), f64::from_bits(buckets.sum.into_inner())), (40_000, 20_000.0));
    }
}
