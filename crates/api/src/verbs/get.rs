//! GET one object.

use std::sync::Arc;

use crate::cache::State;
use crate::codec::object::Object;
use crate::error::Error;
use crate::options::{GetOptions, ReadAt};
use crate::{Api, Target};

impl Api {
    /// The object, in the version that its resource is served in where only a webhook can make that of it; 404 if there is
    /// none.
    pub async fn get(&self, target: Target<'_>, options: GetOptions) -> Result<Arc<Object>, Error> {
        self.get_of(&*self.state(options.at).await?, target).await
    }

    /// The variant of [`Api::get`] that reads the newest state, for requests that are tried again.
    pub(crate) async fn get_newest(&self, target: Target<'_>) -> Result<Arc<Object>, Error> {
        self.get_of(&*self.cache.fresh().await?, target).await
    }

    async fn get_of(&self, state: &State, target: Target<'_>) -> Result<Arc<Object>, Error> {
        let found = state.get(target.resource.id, target.namespace, target.name);
        self.converter.object(target.resource, found.ok_or_else(|| target.not_found())?).await
    }

    /// A state that is as fresh as the request demands.
    pub(crate) async fn state(&self, at: ReadAt) -> Result<Arc<State>, Error> {
        Ok(match at {
            ReadAt::Latest => self.cache.fresh_for_request().await?,
            ReadAt::Any => self.cache.any(),
            ReadAt::AtLeast(revision) => self.cache.at_least(revision).await?,
        })
    }
}
