//! Metrics by etcd's names, so that what watches an etcd can watch this.

use std::fmt::Write as _;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rowplane_etcd::wire::Server;

/// The metrics. Of a store that nobody has needed yet there are none.
pub async fn text(server: &Server) -> Response {
    let mut text = String::new();
    let options = server.options();
    let quota = options.quota.unwrap_or_default() as f64;
    let version = format!("{{server_version=\"{}\"}}", options.version);
    append(&mut text, ("etcd_server_version", "The version that clients are told.", &version), 1.0);
    append(&mut text, ("etcd_server_quota_backend_bytes", "The size above which nothing is put.", ""), quota);
    if let Some(etcd) = server.opened() {
        let Ok(numbers) = etcd.status_numbers().await else {
            return (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response();
        };
        let size = numbers.db_size.unwrap_or_default() as f64;
        for (name, help, value) in [
            ("etcd_server_has_leader", "Whether the store answers.", 1.0),
            ("etcd_server_is_leader", "Whether this server writes, as all do.", 1.0),
            ("etcd_mvcc_db_total_size_in_bytes", "The size of the store.", size),
            ("etcd_mvcc_db_total_size_in_use_in_bytes", "The same.", size),
            ("etcd_debugging_mvcc_keys_total", "Keys.", numbers.keys as f64),
            ("etcd_debugging_mvcc_current_revision", "The newest revision.", numbers.revision as f64),
            (
                "etcd_debugging_mvcc_compact_revision",
                "The compacted revision.",
                numbers.compact_revision as f64,
            ),
        ] {
            append(&mut text, (name, help, ""), value);
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

fn append(text: &mut String, (name, help, labels): (&str, &str, &str), value: f64) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{labels} {value}");
}
