//! Kubeconfigs of branches: those of their clusters, with another URL.

use std::path::Path;

use crate::codec::yaml;
use crate::tree::{Map, Value, json};

/// The kubeconfig for the branch at a path below the URL of the cluster in the current context. Files are named by their
/// absolute paths, so that it can be put anywhere.
pub fn of_branch(path: &Path, below: &str) -> Result<String, String> {
    let shown = path.display();
    let content = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let config = yaml::parse(&content).map_err(|why| format!("{shown} is no YAML: {why}"))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = std::path::absolute(directory).map_err(|error| format!("{shown}: {error}"))?;
    let current = config.get("current-context").and_then(Value::as_str).unwrap_or_default().to_owned();
    let context = named(&config, "contexts", &current, "context").map_err(|why| format!("{shown}: {why}"))?;
    let of = |field: &str| context.get(field).and_then(Value::as_str).unwrap_or_default();
    let (cluster_name, user_name) = (of("cluster"), of("user"));
    let mut cluster = named(&config, "clusters", cluster_name, "cluster")?;
    let mut user = named(&config, "users", user_name, "user").unwrap_or_default();
    let server = cluster.get("server").and_then(Value::as_str).unwrap_or_default();
    let server = format!("{}{below}", server.trim_end_matches('/'));
    cluster.insert("server", server.into());
    make_absolute(&mut cluster, &["certificate-authority"], &directory);
    make_absolute(&mut user, &["client-certificate", "client-key", "tokenFile"], &directory);
    Ok(yaml::write(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current.clone(),
        "clusters": [{"name": cluster_name, "cluster": Value::Object(cluster)}],
        "contexts": [{"name": current, "context": Value::Object(context.clone())}],
        "users": [{"name": user_name, "user": Value::Object(user)}],
    })))
}

/// Names files by paths that are absolute.
fn make_absolute(map: &mut Map, fields: &[&str], directory: &Path) {
    for field in fields {
        if let Some(value) = map.get_mut(field)
            && let Some(file) = value.as_str()
        {
            *value = directory.join(file).to_string_lossy().into_owned().into();
        }
    }
}

/// The content of the entry with a name.
fn named(config: &Value, list: &str, name: &str, member: &str) -> Result<Map, String> {
    let entries = config.get(list).and_then(Value::as_array).into_iter().flatten();
    let mut found = entries.filter(|entry| entry.get("name").and_then(Value::as_str) == Some(name));
    let content = found.next().and_then(|entry| entry.get(member)?.as_object());
    content.cloned().ok_or_else(|| format!("there is no {member} {name:?}"))
}
