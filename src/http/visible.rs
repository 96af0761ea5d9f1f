//! The part of a resource that a user may see: everything, or what is in some namespaces. Answers that speak of many kinds at
//! once have rows of these parts only.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::auth::authorizer::{Attributes, Authorization, NoSelectors, Refusal, authorize};
use crate::cache::{Range, State};
use crate::schema::names::GroupVersion;
use crate::user::User;

/// The part of a resource that a user may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    Everything,
    /// The namespaces in which the user has all verbs that are needed.
    Namespaces(Arc<[Box<str>]>),
    Nothing,
}

impl Visible {
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Namespaces(namespaces) => {
                namespaces.binary_search_by(|known| (**known).cmp(namespace)).is_ok()
            }
            Self::Nothing => false,
        }
    }
}

/// A user whose rights are asked for.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    pub authorizer: &'a Authorization,
    pub user: &'a User,
}

impl Viewer<'_> {
    /// `None` if the user has all of these verbs; otherwise the refusal of the first that he lacks. Without a namespace they
    /// are asked for everywhere.
    pub async fn may(
        &self,
        resource: &Resource,
        namespace: &str,
        verbs: &[&str],
    ) -> Result<Option<Error>, Error> {
        let definition = &resource.definition;
        for verb in verbs {
            let attributes = Attributes {
                user: self.user,
                verb,
                group: definition.group(),
                version: definition.version(),
                resource: &definition.plural,
                subresource: "",
                namespace,
                name: "",
                path: "",
                selectors: &NoSelectors,
            };
            match authorize(self.authorizer, &attributes).await {
                Ok(_) => {}
                Err(refusal @ Refusal::Forbidden { .. }) => return Ok(Some(refusal.into())),
                Err(refusal @ Refusal::Failed(_)) => return Err(refusal.into()),
            }
        }
        Ok(None)
    }

    /// The part of a resource in which the user has all of these verbs: everything, or some of these namespaces.
    pub async fn visible(
        &self,
        resource: &Resource,
        verbs: &[&str],
        namespaces: &BTreeSet<String>,
    ) -> Result<Visible, Error> {
        if self.may(resource, "", verbs).await?.is_none() {
            return Ok(Visible::Everything);
        }
        let mut allowed: Vec<Box<str>> = Vec::new();
        for namespace in namespaces.iter().filter(|_| resource.definition.namespaced()) {
            if self.may(resource, namespace, verbs).await?.is_none() {
                allowed.push(namespace.as_str().into());
            }
        }
        Ok(if allowed.is_empty() { Visible::Nothing } else { Visible::Namespaces(allowed.into()) })
    }
}

/// The names of all namespaces.
pub fn all_namespaces(served: &Served, state: &State) -> BTreeSet<String> {
    let namespaces = served.get(&GroupVersion::new("", "v1").with_plural("namespaces"));
    let objects = namespaces.map(|resource| state.objects(resource.id)).unwrap_or_default();
    objects.range(&Range::of(None)).map(|namespace| namespace.name().to_owned()).collect()
}
