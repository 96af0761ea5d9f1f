//! Upgrades that pass through to an extension server, on a connection of their own.

use axum::http::StatusCode;
use axum::response::Response;
use futures_util::TryFutureExt as _;
use hyper_util::rt::TokioIo;

use super::target::Target;
use super::{Passed, Refusal};
use crate::api::error::Error;
use crate::http::resource::stream_end::StreamEnd;
use crate::http::resource::upgrade::{client, refused, take_over};
use crate::relay::exchange::exchange;

impl Passed<'_> {
    pub(super) async fn upgrade(&self, target: &Target<'_>) -> Result<Response, Refusal> {
        let failed = |what: &'static str| move |why: String| Refusal::Unreachable(format!("{what}: {why}"));
        let client = client(self.parts).map_err(|error| Refusal::Unreachable(error.to_string()))?;
        let request = target.upgrade().map_err(failed("error sending request"))?;
        let stream = target.route.pool.dial(&target.route.to).await;
        let stream = stream.map_err(failed("error dialing backend"))?;
        let answer = exchange(stream, request).await.map_err(failed("error sending request"))?;
        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                let (headers, limit) = (answer.headers().clone(), self.app.api.kubelets.config().most_bytes);
                let end = StreamEnd::of(&self.app.door, self.parts);
                Ok(take_over(client.map_ok(TokioIo::new), answer, headers, (end, ()), limit)?)
            }
            status if status.is_client_error() || status.is_server_error() => Ok(refused(answer).await?),
            status => {
                let why = format!("invalid upgrade response: status code {}", status.as_u16());
                Err(Error::Unclassified(why).into())
            }
        }
    }
}
