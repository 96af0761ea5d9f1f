//! POST of what is no object but something to be done: bindings and evictions.

use super::Context;
use crate::api::decode::Encoded;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;

impl Context<'_> {
    /// Does what a request for a binding or an eviction asks for. Returns whether the request was one.
    pub(super) async fn act(&self, body: &Encoded, options: &WriteOptions) -> Result<bool, Error> {
        let api = &self.app.api;
        if !self.definition.group().is_empty() {
            return Ok(false);
        }
        match (&*self.definition.plural, self.path.subresource.as_deref()) {
            ("bindings", None) | ("pods", Some("binding")) => {
                Box::pin(api.bind(&self.request(options), body)).await?;
            }
            ("pods", Some("eviction")) => Box::pin(api.evict(&self.request(options), body)).await?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a token of a service account is asked for.
    pub(super) fn is_token_request(&self) -> bool {
        &*self.definition.plural == "serviceaccounts" && self.path.subresource.as_deref() == Some("token")
    }
}
