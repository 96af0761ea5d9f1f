//! Carries out a plan, one request for each step. A failure does not stop the rest.

use std::collections::HashSet;
use std::time::Duration;

use axum::http::{Method, StatusCode};

use super::UndoArgs;
use super::plan::{Planned, Step};
use crate::cli::client::Answer;
use crate::cli::error::Error;
use crate::cli::past::session::{Session, refused};
use crate::tree::{Value, json};

/// The field manager of all writes.
const MANAGER: &str = "fieldManager=rowplane-undo";
/// How long a definition may take until its objects can be made, and how often that is looked at.
const ATTEMPTS: u32 = 150;
const PAUSE: Duration = Duration::from_millis(200);

/// Sends steps.
pub struct Sender<'a> {
    session: &'a Session,
    arguments: &'a UndoArgs,
    /// Namespaces and resources that a dry run cannot see yet.
    to_come: HashSet<String>,
}

/// Notes on a step that was carried out, or why it was not.
pub type Outcome = Result<Vec<String>, String>;

impl<'a> Sender<'a> {
    pub fn new(session: &'a Session, arguments: &'a UndoArgs) -> Self {
        Self { session, arguments, to_come: HashSet::new() }
    }

    /// Sends a step, as a dry run unless it is to be written. An error ends the whole plan: the server does not answer.
    pub async fn send(&mut self, planned: &Planned) -> Result<Outcome, Error> {
        let object = &planned.object;
        let is_real = self.arguments.yes;
        let kind = object.kind.resource();
        if !is_real && (self.to_come.contains(&object.namespace) || self.to_come.contains(&kind)) {
            return Ok(Ok(Vec::new()));
        }
        let query = if is_real { format!("?{MANAGER}") } else { format!("?{MANAGER}&dryRun=All") };
        let answer = match &planned.step {
            Step::Nothing | Step::Refused(_) => return Ok(Ok(Vec::new())),
            Step::Create(new) => {
                let path = format!("{}{query}", object.kind.path(&object.namespace));
                let answer = self.session.send(Method::POST, &path, text(new)).await?;
                if !is_real && (kind == "namespaces" || kind.starts_with("customresourcedefinitions.")) {
                    self.to_come.insert(object.name.clone());
                }
                answer
            }
            Step::Update(new) => {
                let answer =
                    self.session.send(Method::PUT, &format!("{}{query}", object.path()), text(new)).await?;
                match answer.status {
                    StatusCode::UNPROCESSABLE_ENTITY if self.arguments.recreate => {
                        return self.recreate(planned, new, &query).await;
                    }
                    _ => answer,
                }
            }
            Step::Delete { uid, version } => self.delete(planned, uid, version, &query).await?,
        };
        if let Some(why) = failure(&answer) {
            return Ok(Err(why));
        }
        if is_real {
            self.wait_until_served(planned).await?;
            if self.arguments.with_status {
                return self.write_status(planned).await;
            }
        }
        Ok(Ok(Vec::new()))
    }

    async fn delete(
        &self,
        planned: &Planned,
        uid: &str,
        version: &str,
        query: &str,
    ) -> Result<Answer, Error> {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": version}});
        self.session.send(Method::DELETE, &format!("{}{query}", planned.object.path()), text(&options)).await
    }

    /// Deletes an object whose fields cannot be changed, and creates it as it was.
    async fn recreate(&self, planned: &Planned, new: &Value, query: &str) -> Result<Outcome, Error> {
        let of = |name: &str| new["metadata"][name].as_str().unwrap_or_default().to_owned();
        let answer = self.delete(planned, &of("uid"), &of("resourceVersion"), query).await?;
        if let Some(why) = failure(&answer) {
            return Ok(Err(why));
        }
        if !self.arguments.yes {
            return Ok(Ok(vec!["deleted and created again".to_owned()]));
        }
        let path = planned.object.path();
        for _ in 0..ATTEMPTS {
            if self.session.find(&path).await?.is_none() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let mut again = new.clone();
        if let Some(members) = again["metadata"].as_object_mut() {
            members.retain(|name, _| !matches!(name.as_str(), "uid" | "resourceVersion" | "managedFields"));
        }
        let path = format!("{}{query}", planned.object.kind.path(&planned.object.namespace));
        let answer = self.session.send(Method::POST, &path, text(&again)).await?;
        Ok(match failure(&answer) {
            Some(why) => Err(why),
            None => Ok(vec!["deleted and created again".to_owned()]),
        })
    }

    /// Objects of a definition that has come back can be made only once the server serves them.
    async fn wait_until_served(&self, planned: &Planned) -> Result<(), Error> {
        let is_definition = planned.object.kind.plural == "customresourcedefinitions";
        let (Step::Create(new), true) = (&planned.step, is_definition) else { return Ok(()) };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&new["spec"]["group"]), text(&new["spec"]["names"]["plural"]));
        let versions = new["spec"]["versions"].as_array();
        let Some(version) = versions.into_iter().flatten().find(|version| version["served"] == true) else {
            return Ok(());
        };
        let path = format!("/apis/{group}/{}/{plural}?limit=1", text(&version["name"]));
        for _ in 0..ATTEMPTS {
            if self.session.find(&path).await?.is_some() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Writes the status of a custom resource that had one.
    async fn write_status(&self, planned: &Planned) -> Result<Outcome, Error> {
        let object = &planned.object;
        let is_custom = object.kind.has_status && object.kind.group.contains('.');
        let is_built_in = object.kind.group.ends_with(".k8s.io");
        let status = planned.then.as_ref().map(|then| &then["status"]).filter(|status| status.is_object());
        let (Some(status), true) = (status, is_custom && !is_built_in) else { return Ok(Ok(Vec::new())) };
        let Some(mut now) = self.session.find(&object.path()).await? else { return Ok(Ok(Vec::new())) };
        now["status"] = status.clone();
        let path = format!("{}/status?{MANAGER}", object.path());
        let answer = self.session.send(Method::PUT, &path, text(&now)).await?;
        Ok(match failure(&answer) {
            Some(why) => Err(format!("its status: {why}")),
            None => Ok(vec!["with its status".to_owned()]),
        })
    }
}

fn text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn failure(answer: &Answer) -> Option<String> {
    (!answer.status.is_success()).then(|| refused(answer).to_string())
}
