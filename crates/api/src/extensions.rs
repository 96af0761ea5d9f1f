//! The way to extension servers.

use crate::cluster::Cluster;
use crate::followers::api_services::Remote;
use crate::relay::call::{Answered, Call, Route};

/// Why there is no way to an extension server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// The bundle of authorities or the certificate of this server cannot be used.
    Unusable(String),
    /// The Service cannot be resolved.
    Unresolved(String),
}

impl NoRoute {
    pub fn why(&self) -> &str {
        match self {
            Self::Unusable(why) | Self::Unresolved(why) => why,
        }
    }
}

impl Cluster {
    /// The way to an extension server at this time.
    pub fn extension_route(&self, remote: &Remote) -> Result<Route, NoRoute> {
        let pool = remote.pool(&self.extensions.identity).map_err(NoRoute::Unusable)?;
        let to = self.service_routes.route(remote.service()).map_err(NoRoute::Unresolved)?;
        Ok(Route { pool, to })
    }

    /// Makes a request, and reads the answer. Redirects are answers.
    pub async fn call_extension(&self, remote: &Remote, call: &Call<'_>) -> Result<Answered, String> {
        let route = self.extension_route(remote).map_err(|error| error.why().to_owned())?;
        route.call(call).await
    }
}
