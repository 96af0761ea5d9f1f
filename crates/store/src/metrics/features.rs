//! Upstream's features: their stages, and whether they are on here.

use std::fmt::Write as _;

use super::Metrics;
use super::catalog::head;

const NAME: &str = "kubernetes_feature_enabled";
/// The features that kube-apiserver 1.37.2 knows, one per line: the name, `on` or `off` as they are here, and the stage unless
/// that is GA.
const FEATURES: &str = include_str!("features.txt");

/// A feature that kube-apiserver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    pub is_on: bool,
    /// Upstream's label: `ALPHA`, `BETA`, `DEPRECATED`, or empty for GA.
    pub stage: &'static str,
}

/// All features that kube-apiserver knows, by name.
pub fn features() -> impl Iterator<Item = Feature> {
    FEATURES.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, is_on) = (words.next()?, words.next()? == "on");
        Some(Feature { name, is_on, stage: words.next().unwrap_or_default() })
    })
}

impl Metrics {
    /// Notes features that somebody has switched, with what they are now. Called once.
    pub fn know_features(&self, switched: Vec<(&'static str, bool)>) {
        let _ = self.features.set(switched);
    }

    /// Adds all features to the text of `/metrics`.
    pub(super) fn render_features(&self, out: &mut String) {
        head(out, NAME, "gauge");
        let switched = self.features.get().map(Vec::as_slice).unwrap_or_default();
        for Feature { name, is_on, stage } in features() {
            let own = switched.iter().find(|(switched, _)| *switched == name);
            let is_on = own.map_or(is_on, |(_, is_on)| *is_on);
            let _ = writeln!(out, "{NAME}{{name=\"{name}\",stage=\"{stage}\"}} {}", u8::from(is_on));
        }
        out.push('\n');
    }
}
