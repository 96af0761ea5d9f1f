//! How many objects there are of each resource, and how much room they take.

use std::fmt::Write as _;

use super::catalog::head;
use crate::schema::names::GroupResource;

const OBJECTS: &str = "apiserver_resource_objects";
/// The name before v1.34, with one label.
const OLD_OBJECTS: &str = "apiserver_storage_objects";

const SIZE: &str = "apiserver_storage_size_bytes";

/// Adds the size of the database. Its name is that under which ComponentStatuses tell of it.
pub(super) fn render_size(out: &mut String, bytes: u64) {
    head(out, SIZE, "gauge");
    let _ = writeln!(out, "{SIZE}{{storage_cluster_id=\"etcd-0\"}} {bytes}");
}

/// Adds the text of `/metrics`. The names must be those of what is served.
pub(super) fn render(out: &mut String, counts: &[(GroupResource, usize)]) {
    head(out, OBJECTS, "gauge");
    for (name, count) in counts {
        let _ = writeln!(out, "{OBJECTS}{{group=\"{}\",resource=\"{}\"}} {count}", name.group, name.plural);
    }
    head(out, OLD_OBJECTS, "gauge");
    for (name, count) in counts {
        let _ = writeln!(out, "{OLD_OBJECTS}{{resource=\"{name}\"}} {count}");
    }
    out.push('\n');
}
