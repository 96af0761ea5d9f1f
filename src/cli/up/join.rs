//! The objects by which nodes join with `kubeadm join`, and its command line.

use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{Timestamp, Unit};
use rand::RngExt as _;

use super::cluster::Cluster;
use crate::auth::pki;
use crate::cli::client::Client;
use crate::codec::yaml;
use crate::fields;
use crate::tree::{Map, Value};
use crate::webhook::CurrentCluster;

const OBJECTS: &str = include_str!("join.yaml");
/// The field manager. What others have changed since stays as they want it.
const MANAGER: &str = "rowplane-up";
/// The validity of a bootstrap token, as of kubeadm's.
const VALIDITY: Duration = Duration::from_secs(24 * 60 * 60);
const TIMEOUT: Duration = Duration::from_secs(60);

/// A bootstrap token.
pub struct Token {
    id: String,
    secret: String,
    pub until: Timestamp,
}

impl Token {
    pub fn new() -> Self {
        let until = Timestamp::now() + VALIDITY;
        Self { id: random(6), secret: random(16), until: until.round(Unit::Second).unwrap_or(until) }
    }
}

fn random(length: usize) -> String {
    let mut random = rand::rng();
    let characters = b"abcdefghijklmnopqrstuvwxyz0123456789";
    (0..length).map(|_| char::from(characters[random.random_range(0..characters.len())])).collect()
}

/// Creates the objects that are missing, and returns the line by which a node joins.
pub async fn prepare(cluster: &Cluster, token: &Token, admin: &Path) -> Result<String, String> {
    let authorities = CurrentCluster::read(admin).map_err(|error| error.to_string())?.authorities;
    let pin = pki::public_key_pin(admin, &authorities).map_err(|error| error.to_string())?;
    let endpoint = cluster.endpoint();
    let values = [
        ("token-id", token.id.clone()),
        ("token-secret", token.secret.clone()),
        ("expiration", token.until.to_string()),
        ("ca", STANDARD.encode(&authorities)),
        ("endpoint", endpoint.clone()),
        ("version", cluster.version.clone()),
        ("service-subnet", cluster.service_subnet()),
        ("pod-subnet", cluster.pod_subnet()),
        ("dns", cluster.dns_address()),
    ];
    let fill = |text: String, (name, value): (&str, String)| text.replace(&format!("{{{name}}}"), &value);
    let text = values.into_iter().fold(OBJECTS.to_owned(), fill);
    let client = Client::of_kubeconfig(admin)?;
    for document in yaml::documents(text.as_bytes())? {
        if let Value::Object(object) = yaml::parse(&document)? {
            apply(&client, &object).await?;
        }
    }
    let Token { id, secret, .. } = token;
    Ok(format!("kubeadm join {endpoint} --token {id}.{secret} --discovery-token-ca-cert-hash {pin}"))
}

/// Applies an object; a conflict leaves it as others want it.
async fn apply(client: &Client, object: &Map) -> Result<(), String> {
    let path = path(object);
    let body = Value::Object(object.clone()).to_string();
    let answer = client.apply(&format!("{path}?fieldManager={MANAGER}"), body, TIMEOUT).await?;
    match answer.status {
        StatusCode::CONFLICT => {
            tracing::info!(path, "others have changed this object, which stays so");
            Ok(())
        }
        status if status.is_success() => Ok(()),
        status => Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&answer.body))),
    }
}

/// The path of an object of [`OBJECTS`].
fn path(object: &Map) -> String {
    let [version, kind] = ["apiVersion", "kind"].map(|name| fields::text(object, &[name]));
    let [namespace, name] = ["namespace", "name"].map(|name| fields::text(object, &["metadata", name]));
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let plural = format!("{}s", kind.to_lowercase());
    match namespace {
        "" => format!("{root}/{version}/{plural}/{name}"),
        namespace => format!("{root}/{version}/namespaces/{namespace}/{plural}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_a_path_and_tokens_are_as_kubeadm_s() {
        let documents = yaml::documents(OBJECTS.as_bytes()).unwrap();
        let parse = |document: &Vec<u8>| match yaml::parse(document).unwrap() {
            Value::Object(object) => path(&object),
            other => panic!("{other}"),
        };
        let paths: Vec<String> = documents.iter().map(parse).collect();
        assert_eq!(paths.len(), 16, "{paths:?}");
        assert_eq!(paths[1], "/api/v1/namespaces/kube-public/configmaps/cluster-info");
        let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:get-nodes";
        assert!(paths.iter().any(|path| path == binding), "{paths:?}");
        let Token { id, secret, .. } = Token::new();
        assert_eq!((id.len(), secret.len()), (6, 16));
    }
}
