//! The paths of discovery and of the version, each a small document of its own in v3. Upstream tells of those of built-in
//! groups alone.

use super::names;
use super::operation::{ANSWERS, JSON, Operation, PathItem};
use crate::schema::registry::{Group, Registry, ServedVersion};
use crate::schema::resource::Origin;

const VERSIONS: &str = "get available API versions";

/// A path that lists something, by the name under which v3's index has its document.
pub(super) fn all(registry: &Registry) -> Vec<(String, PathItem)> {
    let mut items = Vec::new();
    if registry.group("").is_some() {
        let item = item("/api/", "getCoreAPIVersions", VERSIONS, "core", names::API_VERSIONS);
        items.push(("api".to_owned(), item));
    }
    let groups = item("/apis/", "getAPIVersions", VERSIONS, "apis", names::API_GROUP_LIST);
    items.push(("apis".to_owned(), groups));
    let built_in = registry.groups().iter().filter(|group| group.origin == Origin::BuiltIn);
    let named = built_in.filter(|group| !group.name.is_empty());
    items.extend(named.map(|named| group(named)));
    items.push(("version".to_owned(), version()));
    items
}

/// The list of a group version's resources; it stands in the document of the group version.
pub(super) fn resources(version: &ServedVersion) -> PathItem {
    let id = format!("get{}APIResources", names::group_version(&version.name));
    let tag = names::tag(&version.name);
    item(&format!("/{}/", version.path()), &id, "get available resources", &tag, names::API_RESOURCE_LIST)
}

fn group(group: &Group) -> (String, PathItem) {
    let id = format!("get{}APIGroup", names::group_camel(&group.name));
    let path = format!("apis/{}", group.name);
    let tag = names::group_tag(&group.name);
    let item = item(&format!("/{path}/"), &id, "get information of a group", &tag, names::API_GROUP);
    (path, item)
}

fn version() -> PathItem {
    let id = "getCodeVersion".to_owned();
    let description = "get the version information for this server";
    let get = Operation::discovery(id, description, "version".to_owned(), names::VERSION_INFO, JSON);
    PathItem::new("/version/".to_owned(), Vec::new(), vec![get])
}

fn item(path: &str, id: &str, description: &str, tag: &str, returns: &str) -> PathItem {
    let get = Operation::discovery(id.to_owned(), description, tag.to_owned(), returns, ANSWERS);
    PathItem::new(path.to_owned(), Vec::new(), vec![get])
}
