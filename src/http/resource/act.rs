//! POST of what is no object but something to be done: bindings and evictions.

use super::Context;
use crate::api::Target;
use crate::api::decode::Encoded;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::{Hooks, Options, Request};
use crate::schema::names::Gvr;

impl Context<'_> {
    /// Does what a request of that sort asks for. Whether it was one.
    pub(super) async fn act(&self, body: &Encoded, options: &WriteOptions) -> Result<bool, Error> {
        let api = &self.app.api;
        match (&*self.definition.plural, self.path.subresource.as_deref()) {
            ("bindings", None) if self.definition.group().is_empty() => {
                Box::pin(api.bind(&self.binding(options)?, body)).await?;
            }
            ("pods", Some("binding")) => Box::pin(api.bind(&self.request(options)?, body)).await?,
            ("pods", Some("eviction")) => Box::pin(api.evict(&self.request(options)?, body)).await?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a token of a service account is asked for.
    pub(super) fn is_token_request(&self) -> bool {
        &*self.definition.plural == "serviceaccounts" && self.path.subresource.as_deref() == Some("token")
    }

    /// A POST of `bindings`, which has no table, as what it does to a pod that only the body names.
    fn binding<'a>(&'a self, options: &'a WriteOptions) -> Result<Request<'a>, Error> {
        let pods = self.app.api.resources.get(&Gvr::fixed("v1", "pods")).ok_or(Error::UnknownResource)?;
        Ok(Request {
            user: &self.user,
            verb: self.action.as_verb(),
            target: Target { resource: pods, namespace: self.path.namespace_text(), name: "" },
            subresource: "binding",
            options: Options::Write(options),
            warnings: self.warnings,
            authorizer: &self.app.door.authorizer,
            audit: self.record(),
            deadline: self.deadline.get().copied(),
            hooks: Hooks::See,
        })
    }
}
