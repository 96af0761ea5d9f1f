//! A client that sends each request once, and distinguishes an answer from a broken connection.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Config;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

#[derive(Clone)]
pub struct Client(kube::Client);

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
        Self(kube::Client::try_from(config).expect("a client"))
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
        let response = self.0.send(request).await.map_err(|error| Broken(error.to_string()))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| Broken(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, Broken> {
        self.call(Method::POST, path, Some(body)).await
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
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        self.exchange(request.body(Body::from(body)).expect("a request")).await
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Answer, Broken> {
        let response = self.0.send(request).await.map_err(|error| Broken(error.to_string()))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| Broken(error.to_string()))?;
        Ok(Answer { status, body: serde_json::from_slice(&body.to_bytes()).unwrap_or_default() })
    }

    /// Starts a watch. Returns once its headers have arrived.
    pub async fn watch(&self, path: &str) -> Result<Watch, Broken> {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let response = self.0.send(request).await.map_err(|error| Broken(error.to_string()))?;
        match response.status() {
            StatusCode::OK => Ok(Watch { body: response.into_body(), buffer: BytesMut::new() }),
            status => Err(Broken(format!("a watch was answered with {status}"))),
        }
    }
}

impl Answer {
    /// The body of a successful answer.
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.body);
        self.body
    }
}

/// The events of a watch, read line by line.
pub struct Watch {
    body: Body,
    buffer: BytesMut,
}

impl Watch {
    /// The next event; `None` at a proper end. A watch that is cut within an event is [`Broken`].
    pub async fn next(&mut self) -> Result<Option<Value>, Broken> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Ok(Some(serde_json::from_slice(&line).expect("an event is JSON")));
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
