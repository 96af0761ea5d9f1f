//! The paths of discovery and of the version, each a small document of its own in v3.

use super::names;
use super::operation::{ANSWERS, JSON, Operation, PathItem};
use crate::schema::registry::{Group, GroupVersion, Registry};

/// A path that lists something, by the name under which v3's index has its document.
pub(super) fn all(registry: &Registry) -> Vec<(String, PathItem)> {
    let mut items = Vec::new();
    if registry.group("").is_some() {
        let item = item("/api/", "getCoreAPIVersions", "core", names::API_VERSIONS);
        items.push(("api".to_owned(), item));
    }
    items.push(("apis".to_owned(), item("/apis/", "getAPIVersions", "apis", names::API_GROUP_LIST)));
    items.extend(registry.groups().iter().filter(|group| !group.name.is_empty()).map(group));
    items.push(("version".to_owned(), version()));
    items
}

/// The list of a group version's resources; it stands in the document of the group version.
pub(super) fn resources(version: &GroupVersion) -> PathItem {
    let id = format!("get{}APIResources", names::group_version(&version.group, &version.version));
    let tag = names::tag(&version.group, &version.version);
    item(&format!("/{}/", version.path()), &id, &tag, names::API_RESOURCE_LIST)
}

fn group(group: &Group) -> (String, PathItem) {
    let id = format!("get{}APIGroup", names::group_camel(&group.name));
    let path = format!("apis/{}", group.name);
    let item = item(&format!("/{path}/"), &id, &names::group_tag(&group.name), names::API_GROUP);
    (path, item)
}

fn version() -> PathItem {
    let id = "getCodeVersion".to_owned();
    let get = Operation::discovery(id, "version".to_owned(), names::VERSION_INFO, JSON);
    PathItem::new("/version/".to_owned(), Vec::new(), vec![get])
}

fn item(path: &str, id: &str, tag: &str, returns: &str) -> PathItem {
    let get = Operation::discovery(id.to_owned(), tag.to_owned(), returns, ANSWERS);
    PathItem::new(path.to_owned(), Vec::new(), vec![get])
}
