//! A client of etcd's API that reads a range of keys.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use rowplane_store::grpc::{CallError, Channel, connect};
use rowplane_store::relay::Address;
use rowplane_store::relay::dial::dial;
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::Error;
use crate::wire::messages::{
    RangeRequest, RangeResponse, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchRequestKind,
    WatchResponse,
};

const RANGE: (&str, &str) = ("etcdserverpb.KV", "Range");
const WATCH: (&str, &str) = ("etcdserverpb.Watch", "Watch");
/// How long an answer may take.
const CALL: Duration = Duration::from_secs(60);
/// How long a server that has answered before is asked again, and the pause in between.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);
/// Requests of a watch that its server has not taken yet.
const REQUESTS: usize = 4;

/// A server of etcd's API.
#[derive(Clone, Debug)]
pub enum Endpoint {
    Tcp(Address),
    /// The path of a Unix socket, such as that of the kine in k3s.
    Unix(String),
}

impl Endpoint {
    async fn open(&self) -> Result<Channel, String> {
        let opened = match self {
            Self::Tcp(address) => Channel::over(dial(address).await?).await,
            Self::Unix(path) => {
                let stream = connect(path).await.map_err(|error| format!("{path}: {error}"))?;
                Channel::over(stream).await
            }
        };
        opened.map_err(|error| error.to_string())
    }
}

/// A client of the first of some servers that answers.
pub struct Client {
    endpoints: Vec<Endpoint>,
    channel: Option<Channel>,
    /// How long servers that do not answer are asked again: not at all until one has answered.
    patience: Duration,
    /// The keys from the first one to before the second one.
    range: (Bytes, Bytes),
}

impl Client {
    pub fn new(endpoints: Vec<Endpoint>, (first, end): (Vec<u8>, Vec<u8>)) -> Self {
        let range = (first.into(), end.into());
        Self { endpoints, channel: None, patience: Duration::ZERO, range }
    }

    fn range(&self) -> (Bytes, Bytes) {
        self.range.clone()
    }

    /// The newest revision, and the number of keys.
    pub async fn extent(&mut self) -> Result<(u64, u64), Error> {
        let (key, range_end) = self.range();
        let response =
            self.call(RangeRequest { key, range_end, count_only: true, ..Default::default() }).await?;
        Ok((response.header.unwrap_or_default().revision.unsigned_abs(), response.count.unsigned_abs()))
    }

    /// The first keys of the range behind `after`, as they were at a revision.
    pub async fn page(
        &mut self,
        after: Option<&[u8]>,
        limit: usize,
        revision: u64,
    ) -> Result<RangeResponse, Error> {
        let (first, range_end) = self.range();
        // The next key in order is this one with a zero behind it.
        let key = after.map_or(first, |after| [after, b"\0"].concat().into());
        let (limit, revision) = (limit as i64, revision as i64);
        self.call(RangeRequest { key, range_end, limit, revision, ..Default::default() }).await
    }

    /// Begins to watch the range from a revision.
    pub async fn watch(&mut self, revision: u64) -> Result<Watch, Error> {
        let began = Instant::now();
        let ((key, range_end), start_revision) = (self.range(), revision as i64);
        let (progress_notify, fragment) = (true, true);
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision,
            progress_notify,
            fragment,
            ..Default::default()
        };
        let create = WatchRequest { request: Some(WatchRequestKind::Create(create)) };
        loop {
            let failed = match self.channel().await {
                Ok(channel) => {
                    let (requests, receiver) = mpsc::channel(REQUESTS);
                    // Queued before the call: a server answers when the first request has come.
                    let _ = requests.try_send(create.clone());
                    let next =
                        async |mut receiver: mpsc::Receiver<_>| Some((receiver.recv().await?, receiver));
                    let queue = stream::unfold(receiver, next);
                    match channel.exchange(WATCH, queue).await {
                        Ok(responses) => return Ok(Watch { requests, responses }),
                        Err(error) => error.to_string(),
                    }
                }
                Err(why) => why,
            };
            self.wait(began, failed).await?;
        }
    }

    async fn call(&mut self, request: RangeRequest) -> Result<RangeResponse, Error> {
        let began = Instant::now();
        loop {
            let failed = match self.channel().await {
                Ok(channel) => match channel.call(RANGE, request.clone(), CALL).await {
                    Ok(response) => {
                        self.patience = PATIENCE;
                        return Ok(response);
                    }
                    Err(error) if error.is_absence() => error.to_string(),
                    Err(error) => return Err(refused(error)),
                },
                Err(why) => why,
            };
            self.wait(began, failed).await?;
        }
    }

    /// Waits before the next try. Fails if there have been tries for too long.
    async fn wait(&mut self, began: Instant, failed: String) -> Result<(), Error> {
        self.channel = None;
        if began.elapsed() >= self.patience {
            return Err(Error::Call(failed));
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    async fn channel(&mut self) -> Result<&Channel, String> {
        if self.channel.is_none() {
            let mut failed = String::new();
            for endpoint in &self.endpoints {
                match endpoint.open().await {
                    Ok(channel) => {
                        self.channel = Some(channel);
                        break;
                    }
                    Err(why) => failed = why,
                }
            }
            return self.channel.as_ref().ok_or(failed);
        }
        self.channel.as_ref().ok_or_else(String::new)
    }
}

fn refused(error: CallError) -> Error {
    if error.message().contains("has been compacted") {
        Error::Compacted
    } else {
        Error::Call(error.to_string())
    }
}

/// A watch of the range. It ends when it is dropped.
pub struct Watch {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
}

impl Watch {
    /// The next response; `None` if the connection has ended, so that the watch has to begin anew.
    pub async fn next(&mut self) -> Result<Option<WatchResponse>, Error> {
        match self.responses.next().await {
            Some(Ok(response)) if response.canceled && response.compact_revision > 0 => Err(Error::Compacted),
            Some(Ok(response)) if response.canceled => Err(Error::Call(response.cancel_reason)),
            Some(Ok(response)) => Ok(Some(response)),
            Some(Err(_)) | None => Ok(None),
        }
    }

    /// Asks how far the watch is. The server answers if everything before has been sent.
    pub fn ask_progress(&self) {
        // Questions that have not been taken yet will be answered.
        let progress = WatchRequestKind::Progress(WatchProgressRequest {});
        let _ = self.requests.try_send(WatchRequest { request: Some(progress) });
    }
}
