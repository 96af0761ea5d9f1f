//! A client that sends each request once, and distinguishes an answer from a broken connection.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

#[derive(Clone)]
pub struct Client {
    kube: kube::Client,
    /// For requests that kube does not send.
    config: Arc<Config>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    /// `Null` if the body is not JSON.
    pub body: Value,
}

/// There was no complete response: it is unknown whether the request was carried out.
#[derive(Debug)]
pub struct Broken(pub String);

impl Client {
    pub async fn of(kubeconfig: &Path) -> Self {
        Self::new(Kubeconfig::read_from(kubeconfig).expect("read the kubeconfig")).await
    }

    /// A client that reaches its server at another address than the kubeconfig's.
    pub async fn at(kubeconfig: &Path, server: &str) -> Self {
        let mut kubeconfig = Kubeconfig::read_from(kubeconfig).expect("read the kubeconfig");
        kubeconfig.clusters[0].cluster.as_mut().expect("a cluster").server = Some(server.to_owned());
        Self::new(kubeconfig).await
    }

    async fn new(kubeconfig: Kubeconfig) -> Self {
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.expect("understand the kubeconfig");
        config.default_retry = false;
        let kube = kube::Client::try_from(config.clone()).expect("a client");
        Self { kube, config: Arc::new(config) }
    }

    pub async fn get(&self, path: &str) -> Result<Answer, Broken> {
        self.call(Method::GET, path, None).await
    }

    /// In another user's name. A PATCH is a merge patch.
    pub async fn call_as(
        &self,
        user: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Broken> {
        let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("impersonate-user", user);
        let body = body.map(|value| serde_json::to_vec(value).expect("JSON")).unwrap_or_default();
        self.exchange(request.header("content-type", media).body(Body::from(body)).expect("a request")).await
    }

    /// The status and the body as it comes, with this header in the request.
    pub async fn get_bytes(
        &self,
        path: &str,
        (name, value): (&str, &str),
    ) -> Result<(StatusCode, Bytes), Broken> {
        let request = Request::get(path).header(name, value).body(Body::empty()).expect("a request");
        let response = self.kube.send(request).await.map_err(|error| Broken(error.to_string()))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| Broken(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, Broken> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// A POST whose body is sent byte by byte, with a pause before each. `whole` is true once all have been given away.
    pub async fn post_in_bytes(
        &self,
        path: &str,
        body: &Value,
        pause: Duration,
        whole: Arc<AtomicBool>,
    ) -> Result<Answer, Broken> {
        let bytes = Bytes::from(serde_json::to_vec(body).expect("JSON"));
        let body = StreamBody::new(stream::unfold(bytes, move |mut bytes| {
            let whole = whole.clone();
            async move {
                tokio::time::sleep(pause).await;
                let byte = (!bytes.is_empty()).then(|| bytes.split_to(1))?;
                whole.store(bytes.is_empty(), Ordering::SeqCst);
                Some((Ok::<_, Infallible>(Frame::data(byte)), bytes))
            }
        }));
        let uri = format!("{}{path}", self.config.cluster_url.to_string().trim_end_matches('/'));
        let request = Request::post(uri).header("content-type", "application/json");
        let request = request.body(body.boxed_unsync()).expect("a request");
        // A connection of its own, which ends with it.
        let connector = self.config.rustls_https_connector().expect("the kubeconfig's certificates");
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        let response = http.request(request).await.map_err(|error| Broken(error.to_string()))?;
        Answer::read(response).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Answer, Broken> {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str, options: Option<&Value>) -> Result<Answer, Broken> {
        self.call(Method::DELETE, path, options).await
    }

    /// A merge patch.
    pub async fn merge(&self, path: &str, body: &Value) -> Result<Answer, Broken> {
        self.send(Method::PATCH, path, "application/merge-patch+json", Some(body)).await
    }

    /// A patch of this media type.
    pub async fn patch(&self, path: &str, media_type: &str, body: &Value) -> Result<Answer, Broken> {
        self.send(Method::PATCH, path, media_type, Some(body)).await
    }

    /// Server-side apply. `path` includes the options.
    pub async fn apply(&self, path: &str, body: &Value) -> Result<Answer, Broken> {
        self.send(Method::PATCH, path, "application/apply-patch+yaml", Some(body)).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Broken> {
        self.send(method, path, "application/json", body).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Broken> {
        let body = body.map(|value| serde_json::to_vec(value).expect("JSON")).unwrap_or_default();
        self.send_bytes(method, path, content_type, body).await
    }

    /// A request with a body of this media type, whose answer is in JSON.
    pub async fn send_bytes(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Answer, Broken> {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        self.exchange(request.body(Body::from(body)).expect("a request")).await
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Answer, Broken> {
        Answer::read(self.kube.send(request).await.map_err(|error| Broken(error.to_string()))?).await
    }

    /// Starts a watch in JSON. Returns once its headers have arrived.
    pub async fn watch(&self, path: &str) -> Result<Watch, Broken> {
        self.watch_in("application/json", path).await
    }

    /// Starts a watch in this media type.
    pub async fn watch_in(&self, media_type: &str, path: &str) -> Result<Watch, Broken> {
        let request = Request::get(path).header("accept", media_type).body(Body::empty()).expect("a request");
        let response = self.kube.send(request).await.map_err(|error| Broken(error.to_string()))?;
        match response.status() {
            StatusCode::OK => Ok(Watch { body: response.into_body(), buffer: BytesMut::new() }),
            status => Err(Broken(format!("a watch was answered with {status}"))),
        }
    }
}

impl Answer {
    async fn read<B>(response: http::Response<B>) -> Result<Self, Broken>
    where
        B: hyper::body::Body<Error: std::fmt::Display>,
    {
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| Broken(error.to_string()))?;
        Ok(Self { status, body: serde_json::from_slice(&body.to_bytes()).unwrap_or_default() })
    }

    /// The body of a successful answer.
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.body);
        self.body
    }
}

/// The events of a watch: lines, or messages with their length before them.
pub struct Watch {
    body: Body,
    buffer: BytesMut,
}

impl Watch {
    /// The next event; `None` at a proper end. A watch that is cut within an event is [`Broken`].
    pub async fn next(&mut self) -> Result<Option<Value>, Broken> {
        let line = self.until(|buffer| {
            let end = buffer.iter().position(|&byte| byte == b'\n')?;
            Some(buffer.split_to(end + 1))
        });
        Ok(line.await?.map(|line| serde_json::from_slice(&line).expect("an event is JSON")))
    }

    /// The next message of a watch in protobuf.
    pub async fn next_message(&mut self) -> Result<Option<Bytes>, Broken> {
        let message = self.until(|buffer| {
            let length = u32::from_be_bytes(*buffer.first_chunk()?) as usize;
            (buffer.len() - 4 >= length).then(|| buffer.advance(4)).map(|()| buffer.split_to(length))
        });
        Ok(message.await?.map(BytesMut::freeze))
    }

    /// Reads until a part can be taken off the buffer.
    async fn until(
        &mut self,
        take: impl Fn(&mut BytesMut) -> Option<BytesMut>,
    ) -> Result<Option<BytesMut>, Broken> {
        loop {
            if let Some(part) = take(&mut self.buffer) {
                return Ok(Some(part));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend(frame.into_data().ok()),
                Some(Err(error)) => return Err(Broken(error.to_string())),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Broken("the watch ended within an event".to_owned())),
            }
        }
    }

    /// The next event; the watch must not end.
    pub async fn event(&mut self) -> Value {
        self.next().await.expect("a watch that goes on").expect("a watch without an end")
    }
}

/// `metadata.resourceVersion` of an object or a list.
pub fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no resourceVersion: {object}"))
}
