//! The user of a request: the one whose credential it shows, and the one in whose name it is made. Connections without a
//! credential are counted, and limited.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::Version;
use axum::http::request::Parts;

use super::Door;
use super::reauthorization::Who;
use crate::api::error::Error;
use crate::auth::authn::{Authenticated, By, Credential, Notes, Shown, Unauthenticated, forget_credentials};
use crate::auth::impersonation;
use crate::http::in_process::Caller;
use crate::http::request::audit_record;
use crate::http::request::info::RequestInfo;
use crate::http::server::ConnectionInfo;
use crate::metrics::{self, Filter};
use crate::user::User;

/// The user who acts in the name of another one; in the extensions of requests that impersonate.
#[derive(Clone, Debug)]
pub struct ActingUser(pub Arc<User>);

impl Door {
    /// The user of the credentials. A connection on which no credential was ever shown has lower limits, and if it
    /// speaks HTTP/2, which can be abused for floods, is closed after its first request (upstream's
    /// `UnauthenticatedHTTP2DOSMitigation`).
    pub(super) async fn authenticate(
        &self,
        parts: &mut Parts,
        by: By,
        notes: &mut Notes,
    ) -> Result<Authenticated, Error> {
        if let Some(Caller(user)) = parts.extensions.get() {
            return Ok(Authenticated::by(Credential::Internal, user.clone()));
        }
        let connection = parts.extensions.get::<Arc<ConnectionInfo>>().cloned();
        let trusting = connection.as_ref().zip(self.client_trust.as_ref());
        let certified = trusting.and_then(|(connection, trust)| connection.certified_by(trust));
        let shown = Shown { certified, headers: &mut parts.headers, path: parts.uri.path(), by };
        let start = Instant::now();
        let answer = self.authenticator.authenticate(shown).await;
        let (result, name) = authentication_result(&answer);
        self.metrics.attempts.authenticated(result, name, start.elapsed());
        if let Some(connection) = &connection {
            let is_known = matches!(&answer, Ok(found) if !found.is_anonymous());
            self.account(connection, is_known, parts.version)?;
        }
        // Upstream counts what its authenticator of certificates looks at, which a front proxy's user does not reach.
        let is_proxied = matches!(&answer, Ok(found) if matches!(found.credential, Credential::FrontProxy));
        if let Some(left) = connection.filter(|_| !is_proxied).and_then(|one| one.certificate_left()) {
            self.metrics.certificate_shown(left);
        }
        let mut found = answer?;
        notes.extend(std::mem::take(&mut found.notes));
        forget_credentials(&mut parts.headers);
        Ok(found)
    }

    /// The user in whose name the request is to be made, if it names one.
    pub(super) async fn impersonate(
        &self,
        user: Arc<User>,
        info: &RequestInfo,
        parts: &mut Parts,
    ) -> Result<Who, Error> {
        let Some(wanted) = impersonation::requested(&mut parts.headers)? else {
            self.metrics.attempts.passed(Filter::Impersonation, Duration::ZERO);
            return Ok(Who { user: user.clone(), requester: user, wanted: None });
        };
        let attributes = info.attributes(&user);
        let found = self.impersonator.impersonate(&wanted, &attributes, &self.authorizer);
        let began = Instant::now();
        let found = Box::pin(found).await;
        let (mode, decision) = match &found {
            Ok(found) => (found.mode, "allowed"),
            Err(_) => ("", "denied"),
        };
        let took = began.elapsed();
        self.metrics.impersonated(mode, decision, took);
        let found = found?;
        self.metrics.attempts.passed(Filter::Impersonation, took);
        tracing::debug!(
            user = user.name,
            impersonated = found.user.name,
            "a request in somebody else's name"
        );
        if let Some(record) = audit_record(parts) {
            record.impersonated(found.user.clone(), found.constraint.unwrap_or_default());
        }
        parts.extensions.insert(ActingUser(user.clone()));
        let wanted = Some(Box::new(wanted));
        let requester = user.clone();
        Ok(Who { user: found.user, requester, wanted })
    }

    /// Counts a request that is answered before anybody looks for its credential. Where one was shown before, it is the
    /// client's of that.
    pub(super) fn account_unknown(&self, parts: &Parts) -> Result<(), Error> {
        match parts.extensions.get::<Arc<ConnectionInfo>>() {
            Some(connection) if !connection.is_authenticated() => {
                self.account(connection, false, parts.version)
            }
            _ => Ok(()),
        }
    }

    fn account(&self, connection: &ConnectionInfo, is_known: bool, version: Version) -> Result<(), Error> {
        if is_known {
            if !connection.authenticate(self.cluster.as_ref()) {
                connection.go_away();
                return Err(Error::too_many("connections"));
            }
            let chance = self.goaway_chance;
            if chance > 0.0 && version == Version::HTTP_2 && self.random.share() < chance {
                connection.go_away();
            }
            return Ok(());
        }
        if version == Version::HTTP_2 {
            connection.go_away();
        }
        if connection.is_crowded() { Err(Error::too_many("requests without a credential")) } else { Ok(()) }
    }
}

/// How metrics show what came of authenticating, with the user's name.
fn authentication_result(
    answer: &Result<Authenticated, Unauthenticated>,
) -> (metrics::Authentication, Option<&str>) {
    match answer {
        Ok(found) => (metrics::Authentication::Success, Some(&found.user.name)),
        Err(Unauthenticated::Missing) => (metrics::Authentication::Failure, None),
        Err(_) => (metrics::Authentication::Error, None),
    }
}
