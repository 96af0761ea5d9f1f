//! May he still? A long-running request is asked again what it was asked at the door, from its method and URL.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Method, Uri};
use futures_util::future::BoxFuture;

use super::Door;
use crate::auth::authn::{Authenticator, Certified, Credential, Unauthenticated};
use crate::auth::authorizer::{AsKnown, Attributes, Authorization, Refusal, authorize};
use crate::auth::impersonation::Impersonator;
use crate::auth::revocation::{Concern, Permit, Reauthorize, Revoked};
use crate::http::past::LOOK_BACK;
use crate::http::past::door::Door as PastDoor;
use crate::http::request::info::RequestInfo;
use crate::http::request::long_query;
use crate::http::server::ConnectionInfo;
use crate::http::tls::ClientTrust;
use crate::user::User;

/// The user who makes a request, and the one in whose name it is made.
pub(super) struct Who {
    /// The user in whose name the request is made.
    pub user: Arc<User>,
    /// The user of the credential.
    pub requester: Arc<User>,
    /// The user that the headers of impersonation name, if there are any.
    pub wanted: Option<Box<User>>,
}

/// A long-running request as it came to the door.
struct Request {
    authenticator: Authenticator,
    authorizer: Authorization,
    impersonator: Arc<Impersonator>,
    who: Who,
    credential: Credential,
    connection: Option<Arc<ConnectionInfo>>,
    client_trust: Option<ClientTrust>,
    method: Method,
    uri: Uri,
    /// The query, if it is too long for the URI.
    long_query: Option<Arc<str>>,
    /// Whether the past is read.
    looks_back: bool,
}

impl Door {
    /// The permit of a long-running request that was let in.
    pub(super) fn long_running(&self, parts: &Parts, who: Who, credential: Credential) -> Permit {
        let rows = match &credential {
            Credential::Token(token) => self.authenticator.rows(token),
            _ => Vec::new(),
        };
        let users = Concern::of(&who.user).chain(Concern::of(&who.requester));
        let concerns: Vec<Concern> = users.chain(rows.into_iter().map(Concern::Row)).collect();
        let request = Request {
            authenticator: self.authenticator.clone(),
            authorizer: self.authorizer.clone(),
            impersonator: self.impersonator.clone(),
            who,
            credential,
            connection: parts.extensions.get::<Arc<ConnectionInfo>>().cloned(),
            client_trust: self.client_trust.clone(),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            long_query: long_query(parts).cloned(),
            looks_back: PastDoor::of(parts).is_some(),
        };
        self.revocations.permit(concerns, Box::new(request))
    }
}

impl Reauthorize for Request {
    fn ask(&self) -> BoxFuture<'_, Result<(), Revoked>> {
        Box::pin(async {
            self.check_credential().await?;
            match self.check_right().await {
                // An authorizer that cannot say ends nothing.
                Ok(()) | Err(Refusal::Failed(_)) => Ok(()),
                Err(refusal) => Err(refusal.into()),
            }
        })
    }
}

impl Request {
    async fn check_credential(&self) -> Result<(), Unauthenticated> {
        match &self.credential {
            Credential::Internal | Credential::Anonymous => Ok(()),
            Credential::Token(token) => self.authenticator.recheck(token, &self.who.requester).await,
            Credential::Certificate => self.certificate(|shown| match shown.user {
                Ok(user) => Ok(user.is_some_and(|user| *user == *self.who.requester)),
                Err(why) => Err(why),
            }),
            Credential::FrontProxy => {
                self.certificate(|shown| shown.proxy.transpose().map(|proxy| proxy.is_some()))
            }
        }
    }

    fn certificate(
        &self,
        holds: impl FnOnce(Certified) -> Result<bool, Arc<str>>,
    ) -> Result<(), Unauthenticated> {
        let trusting = self.connection.as_ref().zip(self.client_trust.as_ref());
        let shown = trusting.and_then(|(connection, trust)| connection.certified_by(trust));
        match shown.map(holds) {
            Some(Ok(true)) => Ok(()),
            Some(Err(why)) => Err(Unauthenticated::Refused(why.to_string())),
            _ => Err(Unauthenticated::Missing),
        }
    }

    async fn check_right(&self) -> Result<(), Refusal> {
        // It was readable at the door.
        let query = self.long_query.as_deref().or(self.uri.query());
        let Ok(info) = RequestInfo::of_query(&self.method, &self.uri, query) else { return Ok(()) };
        let authorizer = AsKnown(&self.authorizer);
        let Who { user, requester, wanted } = &self.who;
        if let Some(wanted) = wanted {
            let attributes = info.attributes(requester);
            self.impersonator.impersonate(wanted, &attributes, &authorizer).await?;
        }
        let attributes = info.attributes(user);
        authorize(&authorizer, &attributes).await?;
        if self.looks_back {
            authorize(&authorizer, &Attributes { verb: LOOK_BACK, ..attributes }).await?;
        }
        // As `Api::authorize_stream` asks: a WebSocket begins with GET, and runs commands.
        if self.method == Method::GET && matches!(attributes.subresource, "attach" | "exec" | "portforward") {
            authorize(&authorizer, &Attributes { verb: "create", ..attributes }).await?;
        }
        Ok(())
    }
}
