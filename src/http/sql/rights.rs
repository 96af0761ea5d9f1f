//! The rows that a user may see: those of resources that he may list, everywhere or in some namespaces.

use std::collections::BTreeSet;

use super::session::Session;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::http::visible::Viewer;
pub use crate::http::visible::Visible;

impl Session {
    /// The part of a resource in which the user has all of these verbs. Where the statement is strict, anything less than
    /// what it asks for is an error.
    pub async fn visible(&self, resource: &Resource, verbs: &[&str]) -> Result<Visible, Error> {
        let chosen = self.namespaces.as_ref().filter(|_| resource.definition.namespaced());
        let refusal = match self.may(resource, "", verbs).await? {
            None => {
                let namespaces = chosen.map(|chosen| chosen.iter().map(|one| one.as_str().into()).collect());
                return Ok(namespaces.map_or(Visible::Everything, Visible::Namespaces));
            }
            Some(refusal) => refusal,
        };
        if !resource.definition.namespaced() {
            return if self.is_strict { Err(refusal) } else { Ok(Visible::Nothing) };
        }
        if self.is_strict && chosen.is_none() {
            return Err(refusal);
        }
        let candidates: BTreeSet<String> = match chosen {
            Some(chosen) => chosen.clone(),
            None => self.all_namespaces(),
        };
        let mut allowed: Vec<Box<str>> = Vec::new();
        for namespace in candidates {
            match self.may(resource, &namespace, verbs).await? {
                None => allowed.push(namespace.into()),
                Some(refusal) if self.is_strict => return Err(refusal),
                Some(_) => {}
            }
            self.check_time()?;
        }
        Ok(if allowed.is_empty() { Visible::Nothing } else { Visible::Namespaces(allowed.into()) })
    }

    /// `None` if the user has all of these verbs; otherwise the refusal of the first that he lacks.
    async fn may(
        &self,
        resource: &Resource,
        namespace: &str,
        verbs: &[&str],
    ) -> Result<Option<Error>, Error> {
        let viewer = Viewer { authorizer: &self.app.door.authorizer, user: &self.user };
        viewer.may(resource, namespace, verbs).await
    }

    /// Notes for the client that a table has not all rows.
    pub fn warn_of(&self, table: &str, visible: &Visible) {
        let user = &self.user.name;
        match visible {
            Visible::Everything => {}
            Visible::Namespaces(_) if self.namespaces.is_some() => {}
            Visible::Namespaces(namespaces) => {
                let count = namespaces.len();
                let noun = if count == 1 { "namespace" } else { "namespaces" };
                self.warn(format!("{table}: only rows of {count} {noun}, which \"{user}\" may list"));
            }
            Visible::Nothing => self.warn(format!("{table}: no rows, since \"{user}\" may list none")),
        }
    }
}
