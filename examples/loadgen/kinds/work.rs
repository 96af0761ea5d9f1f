//! The work of clients on typed objects.

use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use http::Method;

use super::customs;
use crate::Result;
use crate::client::{APPLY, Answer, Connection, JSON};

/// Variables of a Pod's container, chosen so that the Pod has about 5 KB.
const VARIABLES: usize = 60;
/// Entries in the list that is applied.
const ENTRIES: usize = 1000;

/// What a client does repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Work {
    CreatePods,
    UpdatePods,
    /// Updates an object whose managedFields were emptied, so that managers are not tracked.
    UpdateUntracked,
    /// Sends the last answer back with one label changed, as controllers do; it includes managedFields.
    UpdateRead,
    UpdateReadUntracked,
    /// Custom objects that look like the Pods.
    CreateCustom,
    UpdateCustom,
    UpdateReadCustom,
    ApplyUnchanged,
    ApplyLongList,
}

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Self::CreatePods => "create Pods of 5 KB",
            Self::UpdatePods => "update Pods of 5 KB",
            Self::UpdateUntracked => "update Pods of 5 KB, untracked",
            Self::UpdateRead => "update Pods of 5 KB as read",
            Self::UpdateReadUntracked => "update Pods of 5 KB as read, untracked",
            Self::CreateCustom => "create custom objects of 5 KB",
            Self::UpdateCustom => "update custom objects of 5 KB",
            Self::UpdateReadCustom => "update custom objects of 5 KB as read",
            Self::ApplyUnchanged => "apply an unchanged Deployment",
            Self::ApplyLongList => "apply a changed list of 1,000 variables",
        }
    }

    pub fn collection(self, namespace: &str) -> String {
        match self {
            Self::ApplyUnchanged | Self::ApplyLongList => {
                format!("/apis/apps/v1/namespaces/{namespace}/deployments")
            }
            custom if custom.is_custom() => customs::collection(namespace),
            _ => format!("/api/v1/namespaces/{namespace}/pods"),
        }
    }

    pub fn is_custom(self) -> bool {
        matches!(self, Self::CreateCustom | Self::UpdateCustom | Self::UpdateReadCustom)
    }
}

/// One client, with an object of its own if it writes the same object repeatedly.
pub struct Worker {
    work: Work,
    id: usize,
    connection: Arc<Connection>,
    path: Arc<str>,
    sent: usize,
    /// The last answer.
    answer: Answer,
}

impl Worker {
    pub fn new(work: Work, id: usize, connection: Arc<Connection>, path: Arc<str>) -> Self {
        Self { work, id, connection, path, sent: 0, answer: Answer::default() }
    }

    pub async fn prepare(&mut self) -> Result<()> {
        match self.work {
            Work::CreatePods | Work::CreateCustom => {}
            Work::UpdatePods | Work::UpdateRead | Work::UpdateCustom | Work::UpdateReadCustom => {
                self.create().await?
            }
            Work::UpdateUntracked | Work::UpdateReadUntracked => {
                self.create().await?;
                let item = self.item();
                let body = self.body(&self.own(), "1", &self.preconditions(r#","managedFields":[]"#)?);
                self.answer = self.send(Method::PUT, &item, JSON, body).await?;
            }
            Work::ApplyUnchanged | Work::ApplyLongList => self.step().await?,
        }
        Ok(())
    }

    async fn create(&mut self) -> Result<()> {
        let body = self.body(&self.own(), "0", "");
        self.answer = self.send(Method::POST, &self.path, JSON, body).await?;
        Ok(())
    }

    pub async fn step(&mut self) -> Result<()> {
        self.sent += 1;
        let mark = self.sent.to_string();
        let item = self.item();
        self.answer = match self.work {
            Work::CreatePods | Work::CreateCustom => {
                let body = self.body(&format!("c{}-{mark}", self.id), &mark, "");
                self.send(Method::POST, &self.path, JSON, body).await?
            }
            Work::UpdatePods | Work::UpdateUntracked | Work::UpdateCustom => {
                let body = self.body(&self.own(), &mark, &self.preconditions("")?);
                self.send(Method::PUT, &item, JSON, body).await?
            }
            Work::UpdateRead | Work::UpdateReadUntracked | Work::UpdateReadCustom => {
                let body = marked(&self.answer.body, &mark).ok_or("an answer without its label")?;
                self.send(Method::PUT, &item, JSON, body).await?
            }
            Work::ApplyUnchanged => self.apply(&item, 1, "0").await?,
            Work::ApplyLongList => self.apply(&item, ENTRIES, &mark).await?,
        };
        Ok(())
    }

    async fn apply(&self, item: &str, variables: usize, mark: &str) -> Result<Answer> {
        let body = deployment(&self.own(), variables, mark);
        self.send(Method::PATCH, &format!("{item}?fieldManager=loadgen&force=true"), APPLY, body).await
    }

    async fn send(&self, method: Method, path: &str, kind: &'static str, body: Bytes) -> Result<Answer> {
        self.connection.call(method, path, Some((kind, body))).await?.success()
    }

    fn body(&self, name: &str, mark: &str, metadata: &str) -> Bytes {
        match self.work.is_custom() {
            true => customs::object(VARIABLES, name, mark, metadata),
            false => pod_of(VARIABLES, name, mark, metadata),
        }
    }

    fn own(&self) -> String {
        format!("own-{}", self.id)
    }

    fn item(&self) -> String {
        format!("{}/{}", self.path, self.own())
    }

    fn preconditions(&self, more: &str) -> Result<String> {
        Ok(format!(r#","resourceVersion":"{}"{more}"#, self.answer.resource_version()?))
    }
}

/// The object with another value of its label `mark`.
fn marked(object: &[u8], mark: &str) -> Option<Bytes> {
    const LABEL: &[u8] = b"\"mark\":\"";
    let start = memchr::memmem::find(object, LABEL)? + LABEL.len();
    let end = start + memchr::memchr(b'"', &object[start..])?;
    Some([&object[..start], mark.as_bytes(), &object[end..]].concat().into())
}

fn variables(count: usize, mark: &str) -> String {
    let one = |n: usize| {
        format!(r#"{{"name":"VARIABLE_{n}","value":"a value of some length, number {n}, {mark}"}}"#)
    };
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

/// Without it admission adds a token's volume at the create, which an update that lacks it may not take away.
const ACCOUNT: &str = r#""serviceAccountName":"default","automountServiceAccountToken":false,"#;

/// A Pod with this many variables.
pub fn pod_of(count: usize, name: &str, mark: &str, metadata: &str) -> Bytes {
    pod_like(r#""kind":"Pod","apiVersion":"v1""#, count, name, mark, metadata, ACCOUNT)
}

/// An object that looks like a Pod, whose labels change, since little else in a Pod may.
pub fn pod_like(kind: &str, count: usize, name: &str, mark: &str, metadata: &str, spec: &str) -> Bytes {
    let variables = variables(count, "the same for all");
    Bytes::from(format!(
        r#"{{{kind},"metadata":{{"name":"{name}","labels":{{"app":"web","mark":"{mark}"}}{metadata}}},"spec":{{{spec}"containers":[{{"name":"web","image":"nginx:1","ports":[{{"containerPort":80}}],"env":[{variables}]}}]}}}}"#
    ))
}

fn deployment(name: &str, count: usize, mark: &str) -> Bytes {
    let variables = variables(count, mark);
    Bytes::from(format!(
        r#"{{"kind":"Deployment","apiVersion":"apps/v1","metadata":{{"name":"{name}"}},"spec":{{"selector":{{"matchLabels":{{"app":"{name}"}}}},"template":{{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[{{"name":"web","image":"nginx:1","env":[{variables}]}}]}}}}}}}}"#
    ))
}
