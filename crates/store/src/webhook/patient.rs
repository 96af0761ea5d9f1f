//! Calls that are made again while what has gone wrong may pass.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::link::Response;
use super::{CallError, FindRoute, Webhook, words};

/// How often a call is made.
const TRIES: u32 = 5;

/// How long it takes until a call is made again.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// The first pause between two calls; the next ones are half as long again, and up to a fifth longer.
    pub pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { pause: Duration::from_millis(500) }
    }
}

/// How a call has ended, in the words of upstream's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Success,
    Timeout,
    Error,
}

impl Ended {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

impl Webhook {
    /// Like [`Webhook::post`] to the endpoint's own address, at most five times. `ended` is told of each call.
    #[expect(clippy::disallowed_methods, reason = "servers with one seed would call together")]
    pub async fn post_patiently(
        &self,
        body: Bytes,
        retries: Retries,
        mut ended: impl FnMut(Ended, Duration),
    ) -> Result<Bytes, CallError> {
        let route = || Ok(self.own_route());
        let mut pause = retries.pause;
        for _ in 1..TRIES {
            let (answer, passes) = self.post_once(&route, body.clone(), &mut ended).await;
            match answer {
                Err(error) if passes => tracing::debug!(%error, "a webhook is called again"),
                answer => return answer,
            }
            tokio::time::sleep(pause.mul_f64(1.0 + 0.2 * rand::random::<f64>())).await;
            pause = pause.mul_f64(1.5);
        }
        self.post_once(&route, body, &mut ended).await.0
    }

    /// The answer, and whether a failure may pass.
    async fn post_once(
        &self,
        route: FindRoute<'_>,
        body: Bytes,
        ended: &mut impl FnMut(Ended, Duration),
    ) -> (Result<Bytes, CallError>, bool) {
        let start = Instant::now();
        let (answer, passes, gateway_timeout) = match self.answer(route, body).await {
            Ok(response) => {
                let (passes, is_late) = (may_pass(&response), response.status == 504);
                (words::judge(response), passes, is_late)
            }
            Err(error) => {
                let passes = error.0.contains("connection reset");
                (Err(error), passes, false)
            }
        };
        let how = match &answer {
            Ok(_) => Ended::Success,
            Err(error) if gateway_timeout || error.0.contains("deadline exceeded") => Ended::Timeout,
            Err(_) => Ended::Error,
        };
        ended(how, start.elapsed());
        (answer, passes)
    }
}

/// Whether the hook is overloaded or broken for now.
fn may_pass(response: &Response) -> bool {
    match response.status {
        429 | 500..=502 | 504.. => true,
        _ => response.retry_after.is_some(),
    }
}
