//! The changes of a stream: pages of the table, with the rights that their reader has when they are read.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::line::Line;
use super::request::{ChangesRequest, Include};
use super::snapshot::Snapshot;
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::verbs::past::time;
use crate::cache::State;
use crate::gotext;
use crate::http::app::App;
use crate::http::past::LOOK_BACK;
use crate::http::visible::{Viewer, Visible, all_namespaces};
use crate::revision::Revision;
use crate::storage::{ChangeFilter, ChangeOfPast, ResourceId};
use crate::user::User;

/// The revisions of a page: few enough to hold, and to be asked for in one go.
const PAGE: u32 = 256;
/// The verbs that a reader needs.
const VERBS: [&str; 3] = ["list", "watch", LOOK_BACK];

/// The selected changes after a revision, and how far they have been read.
pub struct Feed {
    app: Arc<App>,
    user: Arc<User>,
    resources: BTreeSet<String>,
    excluded: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    include: Include,
    position: Revision,
    /// The watch horizon when the stream began: who reads what is older looks back.
    horizon: Revision,
    served: Arc<Served>,
    by_id: HashMap<ResourceId, Arc<Resource>>,
}

impl Feed {
    pub async fn open(
        app: &Arc<App>,
        user: Arc<User>,
        request: &ChangesRequest,
        position: Revision,
    ) -> Result<Self, Error> {
        let served = app.api.served_everywhere().await?;
        let by_id = by_id(&served);
        // Who leaves out what is not served leaves out nothing.
        for wanted in &request.resources {
            if !by_id.values().any(|resource| resource.group_resource().to_string() == *wanted) {
                let wanted = gotext::quote(wanted);
                let why = "it has to be PLURAL or PLURAL.GROUP, as deployments.apps";
                return Err(Error::BadRequest(format!("resources: {wanted} is not served; {why}")));
            }
        }
        let feed = Self {
            app: app.clone(),
            user,
            resources: request.resources.clone(),
            excluded: request.excluded.clone(),
            namespaces: request.namespaces.clone(),
            include: request.form,
            position,
            horizon: app.api.cache.clock().await?.compacted,
            served,
            by_id,
        };
        feed.check_floors(position).await?;
        Ok(feed)
    }

    /// All changes up to this revision have been read.
    pub fn position(&self) -> Revision {
        self.position
    }

    pub fn is_at_the_end(&self) -> bool {
        self.position >= self.app.api.cache.revision()
    }

    /// Returns when there are more.
    pub async fn advanced(&self) {
        self.app.api.cache.advanced(self.position).await;
    }

    /// When the last change was committed up to which all have been read.
    pub async fn time(&self) -> Result<String, Error> {
        Ok(time(self.app.api.moment_of(self.position).await?.committed_ms))
    }

    /// The objects that are there at the position, of all that the user may see.
    pub async fn snapshot(&self, state: &Arc<State>) -> Result<Snapshot, Error> {
        let namespaces = match self.namespaces.is_empty() {
            true => all_namespaces(&self.served, state),
            false => self.namespaces.clone(),
        };
        let viewer = Viewer { authorizer: &self.app.door.authorizer, user: &self.user };
        let mut resources: Vec<&Arc<Resource>> =
            self.by_id.values().filter(|resource| self.wants(resource)).collect();
        resources.sort_by_cached_key(|resource| resource.group_resource().to_string());
        let mut places = Vec::new();
        for resource in resources {
            let visible = viewer.visible(resource, &VERBS[..2], &namespaces).await?;
            let chosen = self.namespaces.iter().cloned().map(Some);
            match visible {
                Visible::Everything if self.namespaces.is_empty() => places.push((resource.clone(), None)),
                Visible::Everything => places.extend(chosen.map(|one| (resource.clone(), one))),
                Visible::Namespaces(names) => {
                    places.extend(names.iter().map(|name| (resource.clone(), Some(name.as_ref().to_owned()))))
                }
                Visible::Nothing => {}
            }
        }
        Ok(Snapshot::new(self.app.clone(), self.position, places))
    }

    /// The lines of the next page, which may be none.
    pub async fn next(&mut self) -> Result<Vec<Line>, Error> {
        let newest = self.app.api.cache.revision();
        if self.position >= newest {
            return Ok(Vec::new());
        }
        let through = Revision(newest.0.min(self.position.0 + u64::from(PAGE)));
        let before = Some(Revision(through.0 + 1));
        let filter = ChangeFilter::default();
        let changes = self.app.api.changes_between(&filter, before, self.position, PAGE).await?;
        let mut rights = HashMap::new();
        let mut lines = Vec::new();
        for change in changes.iter().rev() {
            if let Some(line) = self.line(change, &mut rights).await? {
                lines.push(line);
            }
        }
        // A floor is raised before its rows go.
        self.check_floors(self.position).await?;
        self.position = through;
        Ok(lines)
    }

    async fn line(
        &mut self,
        change: &ChangeOfPast,
        rights: &mut HashMap<(ResourceId, Box<str>), bool>,
    ) -> Result<Option<Line>, Error> {
        if !self.namespaces.is_empty() && !self.namespaces.contains(&*change.namespace) {
            return Ok(None);
        }
        let Some(resource) = self.resource(change.resource).await? else { return Ok(None) };
        if !self.wants(&resource) {
            return Ok(None);
        }
        let key = (change.resource, change.namespace.clone());
        let may_see = match rights.get(&key) {
            Some(known) => *known,
            None => {
                let verbs = if change.revision <= self.horizon { &VERBS[..] } else { &VERBS[..2] };
                let viewer = Viewer { authorizer: &self.app.door.authorizer, user: &self.user };
                let may_see = viewer.may(&resource, &change.namespace, verbs).await?.is_none();
                rights.insert(key, may_see);
                may_see
            }
        };
        if !may_see {
            return Ok(None);
        }
        let changed = self.app.api.changed(&resource, change, self.include.needs_values()).await?;
        let (namespace, name) = (change.namespace.clone(), change.name.clone());
        Ok(Some(Line { resource, namespace, name, change: changed }))
    }

    /// The resource with a number of the store's. One that this server does not know may be new.
    async fn resource(&mut self, id: ResourceId) -> Result<Option<Arc<Resource>>, Error> {
        if !self.by_id.contains_key(&id) {
            let newest = self.app.api.newest_served().await?;
            if !Arc::ptr_eq(&newest, &self.served) {
                self.by_id = by_id(&newest);
                self.served = newest;
            }
        }
        Ok(self.by_id.get(&id).cloned())
    }

    fn wants(&self, resource: &Resource) -> bool {
        let name = resource.group_resource().to_string();
        (self.resources.is_empty() || self.resources.contains(&name)) && !self.excluded.contains(&name)
    }

    /// Fails if changes after a revision may be gone.
    async fn check_floors(&self, after: Revision) -> Result<(), Error> {
        // No floor is above the watch horizon.
        if after >= self.app.api.cache.clock().await?.compacted {
            return Ok(());
        }
        for resource in self.by_id.values().filter(|resource| self.wants(resource)) {
            self.app.api.check_floor(resource, after).await?;
        }
        Ok(())
    }
}

/// Everything that is stored, by the numbers of the store.
fn by_id(served: &Served) -> HashMap<ResourceId, Arc<Resource>> {
    served.stored().map(|resource| (resource.id, resource.clone())).collect()
}
