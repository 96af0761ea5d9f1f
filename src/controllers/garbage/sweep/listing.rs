//! The objects of an extension server, listed in pages of their metadata.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::api::Api;
use crate::api::followers::api_services::Remote;
use crate::controllers::garbage::collect::decision::Owner;
use crate::controllers::garbage::graph::{Facts, OwnerReference};
use crate::controllers::garbage::remote_objects::{RemoteObject, RemoteResource};
use crate::long_work;
use crate::relay::call::Call;
use crate::user::User;

/// Metadata alone, from servers that can.
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// The time of a page.
const TIME: Duration = Duration::from_secs(10);
/// Bytes of a page that are read.
const LIMIT: usize = 8 << 20;
/// Objects that a page is to have.
const PAGE: usize = 500;
/// Objects of an extension server that are looked at.
const OBJECTS: usize = 100_000;
/// Bytes of metadata that are kept of an extension server's objects.
const KEPT: usize = 32 << 20;

/// The objects of an extension server at one time.
#[derive(Default)]
pub struct Listing {
    /// The objects that have owners or are being deleted.
    pub objects: Vec<RemoteObject>,
    pub owners: Listed,
    kept: usize,
}

/// All objects that were listed, as owners: each uid with the namespace, the name and the state.
#[derive(Default)]
pub struct Listed(HashMap<Box<str>, (Box<str>, Owner)>);

impl Listed {
    /// The state of an owner of objects in this namespace; `None` if it was not listed there.
    pub fn state(&self, uid: &str, namespace: &str, name: &str) -> Option<Owner> {
        let (key, state) = self.0.get(uid)?;
        let (own_namespace, own_name) = key.split_once('/')?;
        let is_there = own_namespace.is_empty() || own_namespace == namespace;
        (is_there && own_name == name).then_some(*state)
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    /// Go prints no items as null.
    items: Option<Vec<Item>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    r#continue: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
    #[serde(default)]
    finalizers: Vec<String>,
    deletion_timestamp: Option<String>,
}

impl Listing {
    /// Adds all objects of a resource. Fails if the server does not list them to the end.
    pub async fn add(
        &mut self,
        api: &Api,
        remote: &Remote,
        resource: &Arc<RemoteResource>,
        user: &User,
    ) -> Result<(), String> {
        let mut token = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", resource.path());
            if !token.is_empty() {
                path += &format!("&continue={}", utf8_percent_encode(&token, NON_ALPHANUMERIC));
            }
            let call = Call { accept: LIST, ..Call::get(&path, user, TIME, LIMIT) };
            let answer = api.call_extension(remote, &call).await?;
            if answer.status != 200 {
                return Err(format!(
                    "the server answers a list of {} with {}",
                    resource.plural, answer.status
                ));
            }
            let page = long_work::run(|| serde_json::from_slice::<Page>(&answer.body));
            let page =
                page.map_err(|error| format!("the list of {} cannot be read: {error}", resource.plural))?;
            token = page.metadata.r#continue;
            for item in page.items.into_iter().flatten() {
                self.take(item.metadata, resource)?;
            }
            if token.is_empty() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, object: Metadata, resource: &Arc<RemoteResource>) -> Result<(), String> {
        let Metadata { name, namespace, resource_version, .. } = object;
        let (uid, owner_references, finalizers) = (object.uid, object.owner_references, object.finalizers);
        let facts =
            Facts { uid, owner_references, finalizers, deletion_timestamp: object.deletion_timestamp };
        if facts.uid.is_empty() {
            return Ok(());
        }
        let key = format!("{namespace}/{name}").into();
        self.owners.0.insert(facts.uid.as_str().into(), (key, Owner::of(&facts)));
        if self.owners.0.len() > OBJECTS {
            return Err(format!("there are more than {OBJECTS} objects"));
        }
        if facts.owner_references.is_empty() && !facts.is_deleting() {
            return Ok(());
        }
        self.kept += name.len() + namespace.len() + size(&facts);
        if self.kept > KEPT {
            return Err(format!("there is more than {KEPT} bytes of owners"));
        }
        self.objects.push(RemoteObject {
            resource: resource.clone(),
            namespace,
            name,
            resource_version,
            facts,
        });
        Ok(())
    }
}

/// About as many bytes as these facts take.
fn size(facts: &Facts) -> usize {
    let owner = |owner: &OwnerReference| {
        size_of::<OwnerReference>()
            + [&owner.api_version, &owner.kind, &owner.name, &owner.uid]
                .map(String::len)
                .iter()
                .sum::<usize>()
    };
    let owners: usize = facts.owner_references.iter().map(owner).sum();
    let finalizers: usize = facts.finalizers.iter().map(|one| size_of::<String>() + one.len()).sum();
    size_of::<RemoteObject>() + facts.uid.len() + owners + finalizers
}
