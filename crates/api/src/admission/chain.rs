//! The chain of all plugins that are on, which are called one after the other and measured.

use std::time::Instant;

use super::plugins::{PLUGINS, Stock};
use super::settings::Settings;
use super::{Admission, Attempt, Files, Operation, Verdict};
use crate::error::Error;
use crate::metrics::{Metrics, Step, StepTimes};
use crate::options::DryRun;
use crate::quota::JudgedByQuotas;
use crate::request::Hooks;
use crate::schema::resource::Verb;
use crate::user::MASTERS;

/// All plugins that are on, in the order in which they are called.
pub struct Chain {
    members: Vec<Member>,
    times: StepTimes,
}

/// A plugin, and how long it takes.
struct Member {
    name: &'static str,
    plugin: Box<dyn Admission>,
    times: StepTimes,
}

impl Member {
    fn new(name: &'static str, plugin: Box<dyn Admission>, metrics: &Metrics) -> Self {
        plugin.register(metrics);
        Self { name, plugin, times: metrics.admission_times(Some(name)) }
    }
}

impl Chain {
    /// The error ends the start of the server.
    pub fn new(settings: &Settings, metrics: &Metrics) -> Result<Self, String> {
        let mut members = Vec::new();
        for plugin in PLUGINS.iter().filter(|plugin| settings.is_on(plugin)) {
            let Stock::Here(make) = plugin.stock else { continue };
            let made = make(settings.tolerations, settings.configuration(plugin.name));
            let made =
                made.map_err(|why| format!("couldn't init admission plugin {:?}: {why}", plugin.name))?;
            members.push(Member::new(plugin.name, made, metrics));
        }
        Ok(Self { members, times: metrics.admission_times(None) })
    }

    /// Appends a plugin that upstream does not have.
    pub fn with(mut self, name: &'static str, plugin: impl Admission + 'static, metrics: &Metrics) -> Self {
        self.members.push(Member::new(name, Box::new(plugin), metrics));
        self
    }

    /// The plugins that are configured by files, by name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &dyn Files)> {
        self.members.iter().filter_map(|member| Some((member.name, member.plugin.files()?)))
    }

    /// Whether plugins look for what another server may have answered and this one has not heard of, such as a LimitRange.
    /// For most requests, authorization has made sure already that there is nothing; but it decides at once about members of
    /// `system:masters`, and lets most writes of others go ahead by what this server knows.
    fn must_ask(&self, attempt: &Attempt<'_>) -> bool {
        let request = attempt.request;
        let looks =
            |plugin: &dyn Admission| plugin.handles(attempt.operation, request) && plugin.looks(attempt);
        // Only a commit finds out what a write requires.
        let is_committed = attempt.operation != Operation::Connect
            && matches!(request.subresource, "" | "status")
            && request.target.resource.definition.allows(Verb::Get)
            && request.options.dry_run() == DryRun::No;
        request.hooks == Hooks::See
            && (request.user.is_in(MASTERS) || request.is_foreseen())
            && attempt.cluster.store.backend().shared()
            && (!is_committed || self.members.iter().any(|member| looks(&*member.plugin)))
    }

    /// Lets the plugins complete the object, twice if webhooks or policies change it.
    pub(crate) async fn mutate(&self, attempt: &mut Attempt<'_>) -> Result<(), Error> {
        if self.must_ask(attempt) {
            match attempt.request.is_foreseen() {
                true => Box::pin(attempt.request.confirm()).await?,
                false => drop(Box::pin(attempt.cluster.cache.fresh_for_request()).await?),
            }
        }
        self.round(attempt).await?;
        if !attempt.rounds.again {
            return Ok(());
        }
        attempt.rounds.number += 1;
        Box::pin(self.round(attempt)).await
    }

    async fn round(&self, attempt: &mut Attempt<'_>) -> Result<(), Error> {
        let (mut step, mut decided) = (Timed::start(Step::Admit, attempt.operation), Ok(()));
        for Member { plugin, times, .. } in &self.members {
            if decided.is_ok() && plugin.handles(attempt.operation, attempt.request) {
                decided = step.decide(plugin.mutate(attempt), times).await.map(drop);
            }
        }
        step.end(decided, &self.times)
    }

    pub(crate) async fn validate(&self, attempt: &mut Attempt<'_>) -> Result<(), Error> {
        let (mut step, mut decided) = (Timed::start(Step::Validate, attempt.operation), Ok(()));
        for Member { plugin, times, .. } in &self.members {
            if decided.is_ok() && plugin.handles(attempt.operation, attempt.request) {
                let verdict = step.decide(plugin.validate(attempt), times).await;
                decided = verdict.map(|of_quotas| attempt.quotas = of_quotas.or(attempt.quotas.take()));
            }
        }
        step.end(decided, &self.times)
    }
}

/// One pass through the chain, which is measured.
struct Timed {
    step: Step,
    operation: &'static str,
    began: Instant,
    /// When the last plugin was through.
    at: Instant,
}

impl Timed {
    fn start(step: Step, operation: Operation) -> Self {
        let now = Instant::now();
        Self { step, operation: operation.as_str(), began: now, at: now }
    }

    /// A plugin that has nothing to say is not measured.
    async fn decide(
        &mut self,
        verdict: Verdict<'_>,
        times: &StepTimes,
    ) -> Result<Option<JudgedByQuotas>, Error> {
        if matches!(verdict, Verdict::Nothing) {
            return Ok(None);
        }
        let decided = verdict.decided().await;
        let now = Instant::now();
        times.took(self.step, self.operation, decided.is_err(), now - self.at);
        self.at = now;
        decided
    }

    fn end(self, decided: Result<(), Error>, times: &StepTimes) -> Result<(), Error> {
        times.took(self.step, self.operation, decided.is_err(), self.at - self.began);
        decided
    }
}
