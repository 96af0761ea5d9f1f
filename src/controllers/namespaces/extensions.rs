//! The content that extension servers have in a namespace that is being deleted.

use std::time::Duration;

use hyper::Method;

use super::remains::Remains;
use crate::api::followers::api_services::{ApiService, Remote};
use crate::api::{Api, fields};
use crate::relay::call::{Answered, Call, segment};
use crate::tree::Value;
use crate::user::User;

/// The time of a request.
const TIME: Duration = Duration::from_secs(5);
/// Bytes of a list that are read.
const LIMIT: usize = 8 << 20;

/// Deletes the content of a namespace at all extension servers, and notes what is left. A group whose resources are not
/// known holds the namespace, as upstream's controller does.
pub async fn delete_contents(api: &Api, namespace: &str, remains: &mut Remains) {
    let services = api.extensions.newest(&api.cache);
    let discovered = api.extensions.discovered.load_full();
    for service in services.remote() {
        let Some(remote) = &service.remote else { continue };
        let found = discovered.versions.get(&service.version);
        let Some(found) = found.filter(|found| found.is_current && service.condition.is_true()) else {
            remains.undiscovered(service.version.api_version());
            continue;
        };
        for resource in
            found.listed().filter(|resource| resource.is_namespaced && has(&resource.verbs, "list"))
        {
            let of_namespace = Collection { api, service, remote, namespace, plural: resource.plural };
            if let Err(why) = of_namespace.empty(&resource.verbs, remains).await {
                remains.failed_with(format!("{}.{}: {why}", resource.plural, service.version.group()));
            }
        }
    }
}

fn has(verbs: &[&str], verb: &str) -> bool {
    verbs.contains(&verb)
}

/// A resource of an extension server in a namespace.
struct Collection<'a> {
    api: &'a Api,
    service: &'a ApiService,
    remote: &'a Remote,
    namespace: &'a str,
    plural: &'a str,
}

impl Collection<'_> {
    async fn empty(&self, verbs: &[&str], remains: &mut Remains) -> Result<(), String> {
        if has(verbs, "deletecollection") {
            self.call(Method::DELETE, "").await?;
        } else if has(verbs, "delete") {
            for object in self.list().await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if let Some(name) = segment(name) {
                    self.call(Method::DELETE, &format!("/{name}")).await?;
                }
            }
        } else {
            return Ok(());
        }
        let what = format!("{}.{}", self.plural, self.service.version.group());
        for object in self.list().await? {
            let finalizers =
                object.as_object().map(|object| fields::items(object, &["metadata", "finalizers"]));
            remains.add_remote(&what, finalizers.unwrap_or_default());
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Value>, String> {
        let answer = self.call(Method::GET, "").await?;
        let list: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The answer to a request for the collection, or for something below it. Another status than 2xx and 404 is an error.
    async fn call(&self, method: Method, below: &str) -> Result<Answered, String> {
        let (version, namespace) = (self.service.version.api_version(), self.namespace);
        let path = format!("/apis/{version}/namespaces/{namespace}/{}{below}", self.plural);
        let user = User::apiserver();
        let call = Call { method, ..Call::get(&path, &user, TIME, LIMIT) };
        let answer = self.api.call_extension(self.remote, &call).await?;
        match answer.status {
            200..300 | 404 => Ok(answer),
            status => Err(format!("the server answers with {status}")),
        }
    }
}
