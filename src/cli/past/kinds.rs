//! The kinds that a server has or had, by its aggregated discovery, and what people call them.

use axum::http::Method;

use super::session::{Session, parse};
use crate::cli::error::Error;
use crate::tree::Value;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A kind in the version that its group prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub short_names: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub has_status: bool,
}

/// An object as a command line names it.
#[derive(Clone, Debug)]
pub struct Object {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
}

impl Kind {
    fn of(group: &str, version: &str, resource: &Value) -> Self {
        let text = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let subresources = resource["subresources"].as_array();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: text("resource"),
            singular: text("singularResource"),
            kind: resource["responseKind"]["kind"].as_str().unwrap_or_default().to_owned(),
            short_names: texts(&resource["shortNames"]),
            namespaced: resource["scope"] == "Namespaced",
            verbs: texts(&resource["verbs"]),
            has_status: subresources.into_iter().flatten().any(|sub| sub["subresource"] == "status"),
        }
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub fn resource(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of its objects in a namespace, or of all that have none.
    pub fn path(&self, namespace: &str) -> String {
        let base = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match self.namespaced && !namespace.is_empty() {
            true => format!("{base}/namespaces/{namespace}/{}", self.plural),
            false => format!("{base}/{}", self.plural),
        }
    }

    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    fn is_called(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let (name, group) = name.split_once('.').map_or((&*name, None), |(name, group)| (name, Some(group)));
        let is_named = name == self.plural
            || name == self.singular
            || name == self.kind.to_lowercase()
            || self.short_names.iter().any(|short| short == name);
        is_named && group.is_none_or(|group| group == self.group)
    }
}

impl Object {
    pub fn path(&self) -> String {
        format!("{}/{}", self.kind.path(&self.namespace), self.name)
    }

    /// `deployment.apps/web`, as `kubectl -o name` prints.
    pub fn shown(&self) -> String {
        let group = if self.kind.group.is_empty() { String::new() } else { format!(".{}", self.kind.group) };
        format!("{}{group}/{}", self.kind.singular, self.name)
    }
}

/// The kinds behind a door, those of the core group first; empty `door` for the present.
pub async fn load(session: &Session, door: &str) -> Result<Vec<Kind>, Error> {
    let mut kinds = Vec::new();
    for root in ["/api", "/apis"] {
        let answer =
            session.send_accepting(Method::GET, &format!("{door}{root}"), AGGREGATED, String::new()).await?;
        for group in parse(&answer)?["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in group["versions"].as_array().into_iter().flatten() {
                let of_version = version["version"].as_str().unwrap_or_default();
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let kind = Kind::of(name, of_version, resource);
                    let is_known = |other: &Kind| other.group == kind.group && other.plural == kind.plural;
                    // The first version is the preferred one.
                    if !kinds.iter().any(is_known) {
                        kinds.push(kind);
                    }
                }
            }
        }
    }
    Ok(kinds)
}

/// The kind that people call so.
pub fn find<'a>(kinds: &'a [Kind], name: &str) -> Result<&'a Kind, Error> {
    let found = kinds.iter().find(|kind| kind.is_called(name));
    found.ok_or_else(|| Error::Usage(format!("the server has no kind {name:?}")))
}

/// The object that `deploy/web` or `deploy web` names.
pub fn object(kinds: &[Kind], words: &[String], namespace: &str) -> Result<Object, Error> {
    let (kind, name) = match words {
        [one] => one.split_once('/'),
        [kind, name] => Some((kind.as_str(), name.as_str())),
        _ => None,
    }
    .ok_or_else(|| Error::Usage("an object is named as KIND/NAME or KIND NAME".to_owned()))?;
    let kind = find(kinds, kind)?.clone();
    let namespace = if kind.namespaced { namespace.to_owned() } else { String::new() };
    Ok(Object { kind, namespace, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn kinds_have_many_names() {
        let resource = json!({"resource": "deployments", "singularResource": "deployment", "scope": "Namespaced",
            "responseKind": {"kind": "Deployment"}, "shortNames": ["deploy"], "verbs": ["get"]});
        let kinds = [Kind::of("apps", "v1", &resource)];
        for name in ["deploy", "deployments", "Deployment", "deployments.apps", "deploy.apps"] {
            assert!(find(&kinds, name).is_ok(), "{name}");
        }
        assert!(find(&kinds, "deployments.other").is_err());
        let web = object(&kinds, &["deploy/web".to_owned()], "shop").expect("an object");
        assert_eq!(web.path(), "/apis/apps/v1/namespaces/shop/deployments/web");
        assert_eq!(web.shown(), "deployment.apps/web");
    }
}
