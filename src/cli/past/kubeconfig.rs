//! The kubeconfig of commands that are clients: the files that kubectl would read, reduced to one context.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::codec::yaml;
use crate::tree::{Map, Value, json};

/// A kubeconfig with one context. Its files are named by absolute paths.
pub struct Kubeconfig {
    value: Value,
}

impl Kubeconfig {
    /// Reads the file that is named, or else those of `KUBECONFIG`, or else `~/.kube/config`.
    pub fn load(file: Option<&Path>, context: Option<&str>) -> Result<Self, String> {
        let mut all =
            json!({"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []});
        let mut found = false;
        for path in paths(file) {
            if file.is_none() && !path.exists() {
                continue;
            }
            let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let one = yaml::parse(&text).map_err(|why| format!("{} is no YAML: {why}", path.display()))?;
            let path = std::path::absolute(&path).unwrap_or(path);
            merge(&mut all, one, path.parent().unwrap_or(Path::new("/")));
            found = true;
        }
        if !found {
            return Err("there is no kubeconfig: give one by --kubeconfig or KUBECONFIG".to_owned());
        }
        let context = context.unwrap_or(all["current-context"].as_str().unwrap_or_default()).to_owned();
        reduce(&all, &context).map(|value| Self { value })
    }

    /// The namespace of the context.
    pub fn namespace(&self) -> &str {
        match self.value["contexts"][0]["context"]["namespace"].as_str() {
            Some(name) if !name.is_empty() => name,
            _ => "default",
        }
    }

    /// The same server behind a path, as YAML.
    pub fn behind(&self, path: &str) -> String {
        let mut value = self.value.clone();
        let server = value["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default();
        let server = format!("{}{path}", server.trim_end_matches('/'));
        value["clusters"][0]["cluster"]["server"] = server.into();
        yaml::write(&value)
    }

    /// The file for this program's own client, in which the credentials of a plugin stand instead of the plugin.
    pub fn with_credentials(&self) -> Result<Value, String> {
        let mut value = self.value.clone();
        let user = &mut value["users"][0]["user"];
        if user["exec"].is_object() {
            let credentials = credentials(&user["exec"])?;
            *user = credentials;
        }
        Ok(value)
    }
}

fn paths(file: Option<&Path>) -> Vec<PathBuf> {
    if let Some(file) = file {
        return vec![file.to_owned()];
    }
    let listed = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    match listed {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    }
}

/// Adds a file's entries behind those of the files before; the first of a name counts.
fn merge(all: &mut Value, mut one: Value, directory: &Path) {
    for (list, member, fields) in [
        ("clusters", "cluster", &["certificate-authority"][..]),
        ("users", "user", &["client-certificate", "client-key", "tokenFile"][..]),
        ("contexts", "context", &[][..]),
    ] {
        let Some(Value::Array(entries)) = one.get_mut(list).map(Value::take) else { continue };
        for mut entry in entries {
            for field in fields {
                make_absolute(&mut entry[member], field, directory);
            }
            if entry[member]["exec"]["command"].as_str().is_some_and(|command| command.contains('/')) {
                make_absolute(&mut entry[member]["exec"], "command", directory);
            }
            if let Some(list) = all[list].as_array_mut() {
                list.push(entry);
            }
        }
    }
    if all["current-context"].as_str().unwrap_or_default().is_empty() {
        all["current-context"] = one["current-context"].take();
    }
}

fn make_absolute(parent: &mut Value, field: &str, directory: &Path) {
    let path = parent.get(field).and_then(Value::as_str).filter(|path| !path.is_empty());
    if let Some(path) = path.map(|path| directory.join(path).to_string_lossy().into_owned()) {
        parent[field] = path.into();
    }
}

fn reduce(all: &Value, context: &str) -> Result<Value, String> {
    let named = |list: &str, name: &str| {
        let entries = all[list].as_array().into_iter().flatten();
        let found = entries.into_iter().find(|entry| entry["name"] == name).cloned();
        found.ok_or_else(|| format!("the kubeconfig has none of its {list} called {name:?}"))
    };
    let entry = named("contexts", context)?;
    let of = |member: &str| entry["context"][member].as_str().unwrap_or_default().to_owned();
    let cluster = named("clusters", &of("cluster"))?;
    let user = match of("user").as_str() {
        "" => json!({"name": "", "user": Map::new()}),
        name => named("users", name)?,
    };
    Ok(json!({"apiVersion": "v1", "kind": "Config", "current-context": context, "contexts": [entry],
        "clusters": [cluster], "users": [user]}))
}

/// The user that a plugin of `client.authentication.k8s.io` gives credentials for.
fn credentials(exec: &Value) -> Result<Value, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let program = text(&exec["command"]);
    let version = text(&exec["apiVersion"]);
    let info = json!({"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": false}});
    let mut command = Command::new(&program);
    command.args(exec["args"].as_array().into_iter().flatten().map(text));
    command.env("KUBERNETES_EXEC_INFO", serde_json::to_string(&info).unwrap_or_default());
    for variable in exec["env"].as_array().into_iter().flatten() {
        command.env(text(&variable["name"]), text(&variable["value"]));
    }
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run the credential plugin {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("the credential plugin {program} has failed: {}", output.status));
    }
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the credential plugin {program} answers no JSON: {error}"))?;
    let mut user = json!({});
    for (from, to) in
        [("clientCertificateData", "client-certificate-data"), ("clientKeyData", "client-key-data")]
    {
        if let Some(pem) = answer["status"][from].as_str() {
            user[to] = crate::gotext::encode_base64(pem.as_bytes()).into();
        }
    }
    if let Some(token) = answer["status"]["token"].as_str() {
        user["token"] = token.into();
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u, namespace: shop}}]\n\
        clusters: [{name: c, cluster: {server: 'https://h:1/', certificate-authority: ca.pem}}]\n";
    const TWO: &str = "current-context: b\nusers: [{name: u, user: {token: t}}]\n";

    #[test]
    fn files_are_merged_and_reduced_to_a_context() {
        let mut all = json!({"clusters": [], "users": [], "contexts": []});
        for text in [ONE, TWO] {
            merge(&mut all, yaml::parse(text.as_bytes()).expect("YAML"), Path::new("/d"));
        }
        let config = Kubeconfig { value: reduce(&all, "a").expect("a context") };
        assert_eq!(config.namespace(), "shop");
        let text = config.behind("/asof/rv-1");
        assert!(text.contains("server: https://h:1/asof/rv-1\n") && text.contains("/d/ca.pem"), "{text}");
        assert!(text.contains("token: t"), "{text}");
        assert!(reduce(&all, "b").is_err());
    }

    #[test]
    fn a_plugin_gives_credentials() {
        let answer = r#"{"status":{"token":"t","clientKeyData":"k"}}"#;
        let exec =
            json!({"command": "echo", "args": [answer], "apiVersion": "client.authentication.k8s.io/v1"});
        let user = credentials(&exec).expect("credentials");
        assert_eq!(user, json!({"client-key-data": "aw==", "token": "t"}));
        assert!(credentials(&json!({"command": "false"})).is_err());
    }
}
