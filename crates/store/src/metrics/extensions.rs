//! Metrics of extension API servers.

use std::fmt::Write as _;

use super::catalog::head;
use super::{Metrics, labels_of};

const UNAVAILABLE: &str = "aggregator_unavailable_apiservice";

impl Metrics {
    /// Counts that an APIService has become unavailable. Names come from stored objects.
    pub fn api_service_unavailable(&self, name: &str, reason: &str) {
        let labels = labels_of(&[("name", name), ("reason", reason)]);
        self.counter("aggregator_unavailable_apiservice_total", labels).increment(1);
    }

    /// Adds which APIServices are unavailable to the text of `/metrics`.
    pub fn render_api_services<'a>(
        &self,
        text: &mut String,
        services: impl Iterator<Item = (&'a str, bool)>,
    ) {
        let mut own = String::new();
        head(&mut own, UNAVAILABLE, "gauge");
        for (name, is_unavailable) in services {
            let _ = writeln!(own, "{UNAVAILABLE}{{name=\"{name}\"}} {}", u8::from(is_unavailable));
        }
        text.push_str(&self.labelled(own));
    }
}
