//! Permission of requests: a decision by every change that any server has answered. A write that this server knows to be
//! allowed goes ahead with the rows that allow it instead, which its commit then requires (`auth/foreseen.rs`).

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;

use super::{Asks, Door, Stage, audited, is_health};
use crate::api::error::Error;
use crate::auth::authorizer::{Attributes, Grant, Reason, Refusal, authorize};
use crate::auth::foreseen::Foreseen;
use crate::auth::service_accounts::Unproven;
use crate::failpoints::{Bug, strikes};
use crate::http::ask;
use crate::http::past::door::Door as PastDoor;
use crate::http::past::{LOOK_BACK, looks_back};
use crate::http::request::info::RequestInfo;
use crate::http::request::{audit_record, user};
use crate::http::response::{self, WordsOfWebhook};
use crate::metrics;
use crate::user::{AUTHENTICATED, User};

impl Door {
    /// Lets a request go on, or refuses it. Returns the permission if that has still to be confirmed.
    pub(super) async fn permit(
        &self,
        Asks { stage, info, may_foresee }: Asks<'_>,
        parts: &Parts,
        user: &User,
        credential: Option<Unproven>,
    ) -> Result<Option<Arc<Foreseen>>, Error> {
        let grant = if may_foresee { self.foresee(parts, info, user) } else { None };
        if let Some(grant) = grant {
            return Ok(Some(Arc::new(Foreseen::new(grant, credential))));
        }
        if let Some(credential) = credential {
            Box::pin(credential.prove()).await?;
        }
        self.authorize(stage, parts, info, user).await.map(|()| None)
    }

    /// The grant that lets a write go ahead by what this server knows, where a decision would wait until the server knows
    /// what others have answered.
    fn foresee(&self, parts: &Parts, info: &RequestInfo, user: &User) -> Option<Grant> {
        let attributes = info.attributes(user);
        let start = Instant::now();
        let grant = self.authorizer.foreseen(&attributes)?;
        self.metrics.attempts.authorized(metrics::Authorization::Allowed, start.elapsed());
        note_permission(parts, &grant.reason, &attributes);
        Some(grant)
    }

    /// The answer to a request that was let in by what this server knew, and that no commit has confirmed: its response if the
    /// permission is proven now, or if the response only tells that the server could not serve; otherwise the refusal.
    pub(super) async fn confirm(
        &self,
        foreseen: &Foreseen,
        response: Response,
        parts: &Parts,
        info: &RequestInfo,
        user: &User,
    ) -> Response {
        // These tell of the server and name no object; and what they say, whether something was written, stays true.
        let is_away = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT]
            .contains(&response.status())
            && response.extensions().get::<WordsOfWebhook>().is_none();
        if is_away || strikes(Bug::RightNotConfirmed) {
            return response;
        }
        let proven = foreseen.prove().await.map_err(Error::from);
        let confirmed = match proven {
            Ok(()) => self.authorize(Stage::Started, parts, info, user).await,
            Err(error) => Err(error),
        };
        match confirmed {
            Ok(()) => response,
            Err(error) => response::failure(&error, parts),
        }
    }

    /// Confirms what let a request in by what this server knew, for a request that no commit confirms.
    pub async fn confirm_now(&self, parts: &Parts, info: &RequestInfo) -> Result<(), Error> {
        let Some(foreseen) = parts.extensions.get::<Arc<Foreseen>>() else { return Ok(()) };
        if foreseen.is_open() {
            foreseen.prove().await?;
            self.authorize(Stage::Started, parts, info, &user(parts)).await?;
            foreseen.confirmed();
        }
        Ok(())
    }

    /// Decides with what any server has answered.
    async fn authorize(
        &self,
        stage: Stage,
        parts: &Parts,
        info: &RequestInfo,
        user: &User,
    ) -> Result<(), Error> {
        if stage == Stage::Starting && !is_health(parts.uri.path()) {
            return Ok(());
        }
        let is_filtered =
            PastDoor::of(parts).is_some_and(PastDoor::is_filtered) || ask::Door::is_search(parts);
        if is_filtered && user.is_in(AUTHENTICATED) {
            return Ok(());
        }
        let attributes = info.attributes(user);
        let start = Instant::now();
        let decision = authorize(&self.authorizer, &attributes).await;
        self.metrics.attempts.authorized(authorization_result(&decision), start.elapsed());
        match decision {
            Ok(reason) => {
                self.authorize_look_back(parts, info, &attributes).await?;
                note_permission(parts, &reason, &attributes);
                Ok(())
            }
            Err(refusal) => {
                match &refusal {
                    Refusal::Forbidden { reason, .. } => audited::note_decision(parts, false, reason),
                    Refusal::Failed(_) => audited::note_failure(parts),
                }
                Err(refusal.into())
            }
        }
    }
}

impl Door {
    /// Whoever reads the past needs the right to look back, too, by what is allowed now.
    async fn authorize_look_back(
        &self,
        parts: &Parts,
        info: &RequestInfo,
        attributes: &Attributes<'_>,
    ) -> Result<(), Error> {
        if PastDoor::of(parts).is_none() || info.resource().is_none() || !looks_back(info.verb()) {
            return Ok(());
        }
        match authorize(&self.authorizer, &Attributes { verb: LOOK_BACK, ..*attributes }).await {
            Ok(_) => Ok(()),
            Err(refusal) => {
                if let Refusal::Forbidden { reason, .. } = &refusal {
                    audited::note_decision(parts, false, reason);
                }
                Err(refusal.into())
            }
        }
    }
}

fn note_permission(parts: &Parts, reason: &Reason, attributes: &Attributes<'_>) {
    if audit_record(parts).is_some() {
        audited::note_decision(parts, true, &reason.text(attributes));
    }
}

fn authorization_result(decision: &Result<Reason, Refusal>) -> metrics::Authorization {
    match decision {
        Ok(_) => metrics::Authorization::Allowed,
        Err(Refusal::Failed(_)) => metrics::Authorization::Error,
        Err(Refusal::Forbidden { is_denied: true, .. }) => metrics::Authorization::Denied,
        Err(Refusal::Forbidden { .. }) => metrics::Authorization::NoOpinion,
    }
}
