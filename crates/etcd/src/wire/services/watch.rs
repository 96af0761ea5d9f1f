//! The service Watch.

use futures_util::future::ready;
use futures_util::stream::StreamExt as _;
use tonic::Status;

use super::access::Access;
use crate::wire::exchange::{Answers, Caller, Requests};
use crate::wire::messages::{WatchRequest, WatchRequestKind, WatchResponse};
use crate::wire::server::Server;

impl Server {
    pub(in crate::wire) async fn watch(
        &self,
        caller: Caller,
        requests: Requests<WatchRequest>,
    ) -> Result<Answers<WatchResponse>, Status> {
        // A stream that breaks has ended.
        let requests = requests.take_while(|request| ready(request.is_ok()));
        let requests = requests.filter_map(|request| ready(request.ok()));
        let server = self.clone();
        let permitted = requests.then(move |request| {
            let (server, caller) = (server.clone(), caller.clone());
            async move {
                match server.permit_watch(&caller, &request).await {
                    Ok(()) => Ok(request),
                    Err(status) => Err(go_text(&status)),
                }
            }
        });
        let answers = self.etcd().await?.watch(permitted.boxed());
        Ok(answers.map(|answer| answer.map_err(Status::from)).boxed())
    }

    async fn permit_watch(&self, caller: &Caller, request: &WatchRequest) -> Result<(), Status> {
        let Some(WatchRequestKind::Create(create)) = &request.request else { return Ok(()) };
        self.permit(self.etcd().await?, caller, Access::read(&create.key, &create.range_end)).await
    }
}

/// A status as Go prints it, which is the reason of a watch that is refused.
fn go_text(status: &Status) -> String {
    format!("rpc error: code = {:?} desc = {}", status.code(), status.message())
}
