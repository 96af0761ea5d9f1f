//! The document of v3 about a group version of custom resources. Its hash is known before it is made, since clients ask for
//! the index of all documents, and then for one.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::packed::Packed;
use super::schemas::Library;
use super::{Form, Kept, Made, gnostic, v3};
use crate::http::documents::document;
use crate::schema::registry::ServedVersion;
use crate::schema::resource::ResourceDefinition;
use crate::wall_clock::WallClock;

#[derive(Debug)]
pub(super) struct CustomVersion {
    version: ServedVersion,
    /// The hash of the declarations and of the program, from which the document follows.
    pub hash: String,
    made: OnceLock<(Made, SystemTime)>,
}

impl CustomVersion {
    pub fn new(version: &ServedVersion) -> Self {
        Self { version: version.clone(), hash: hash(version), made: OnceLock::new() }
    }

    /// Whether the document says what is to be said of a version.
    pub fn is_of(&self, version: &ServedVersion) -> bool {
        let (own, other) = (&self.version.resources, &version.resources);
        let same =
            |(own, other): (&Arc<ResourceDefinition>, &Arc<ResourceDefinition>)| Arc::ptr_eq(own, other);
        own.len() == other.len() && own.iter().zip(other).all(same)
    }

    pub fn kept(&self, form: Form, clock: &WallClock) -> Kept<'_> {
        let (made, modified) = self.made.get_or_init(|| {
            let library = Library::load();
            let (json, _) = Packed::json(&v3::Document::of_version(&library, &self.version));
            (Made::new(json, self.hash.clone()), clock.now())
        });
        made.kept(form, *modified, gnostic::encode_v3)
    }
}

fn hash(version: &ServedVersion) -> String {
    let mut text = format!("{} {}\n", env!("CARGO_PKG_VERSION"), version.path());
    for definition in &version.resources {
        let digest = definition.declaration.as_ref().map(|declaration| declaration.digest());
        let ResourceDefinition { plural, list_kind, scope, verbs, .. } = &**definition;
        // Writing into a text does not fail.
        let _ = writeln!(text, "{plural} {list_kind} {scope:?} {verbs:?} {} {digest:?}", definition.gvk());
    }
    document::hash(&text)
}
