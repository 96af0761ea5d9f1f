//! Metrics of what is stored: objects of each resource, and bytes.

use std::fmt::Write as _;

use crate::schema::names::GroupResource;

const OBJECTS: &str = "apiserver_resource_objects";
/// The name before v1.34, with one label.
const OLD_OBJECTS: &str = "apiserver_storage_objects";

const SIZE: &str = "apiserver_storage_size_bytes";

/// Adds the size of the database, which goes by the name that it has among ComponentStatuses.
pub(super) fn render_size(out: &mut String, bytes: u64) {
    let _ = writeln!(
        out,
        "# HELP {SIZE} Size of the store's tables in the database, in bytes.\n# TYPE {SIZE} gauge"
    );
    let _ = writeln!(out, "{SIZE}{{storage_cluster_id=\"etcd-0\"}} {bytes}\n");
}

/// Adds the text of `/metrics`. The names must be those of what is served.
pub(super) fn render(out: &mut String, counts: &[(GroupResource, usize)]) {
    let _ = writeln!(out, "# HELP {OBJECTS} Number of stored objects, by resource.\n# TYPE {OBJECTS} gauge");
    for (name, count) in counts {
        let _ = writeln!(out, "{OBJECTS}{{group=\"{}\",resource=\"{}\"}} {count}", name.group, name.plural);
    }
    let help = "[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects, by resource.";
    let _ = writeln!(out, "\n# HELP {OLD_OBJECTS} {help}\n# TYPE {OLD_OBJECTS} gauge");
    for (name, count) in counts {
        let _ = writeln!(out, "{OLD_OBJECTS}{{resource=\"{name}\"}} {count}");
    }
    out.push('\n');
}
