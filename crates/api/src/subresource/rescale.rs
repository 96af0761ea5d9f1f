//! PUT and PATCH of the subresource `scale`: they change the replicas of the parent object.

use crate::decode::patch::Patch;
use crate::decode::{Body, check_place, configuration};
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::ownership::{self, Tracking, conflict_error};
use crate::patch::PatchKind;
use crate::patch::apply::ownership::Refusal;
use crate::request::Request;
use crate::write::outcome::Modified;
use crate::write::rescale::{Owners, Rescale};
use crate::write::{Current, Proposal, Propose, UidRule, Write};
use crate::{Answer, Api, ObjectMap, scale};

impl Api {
    pub(crate) async fn update_scale(
        &self,
        request: &Request<'_>,
        body: Body<'_>,
    ) -> Result<Modified, Error> {
        let mut sent = body.decode_scale(request)?;
        check_place(request.target, &mut sent)?;
        self.rescale(request, &mut |_| Ok(updated(request, sent.clone()))).await
    }

    pub(crate) async fn patch_scale(
        &self,
        request: &Request<'_>,
        kind: PatchKind,
        body: &[u8],
    ) -> Result<Modified, Error> {
        let (target, strictness) = (request.target, request.strictness());
        let patch = Patch::parse(kind, body, strictness)?;
        let propose = &mut |found: Option<&Current>| {
            let current = found.ok_or_else(|| target.not_found())?;
            let scale = scale::to_change(target.resource, &current.object)?;
            let mut patched = patch.decode(&scale, scale::kind(target.resource)?, strictness)?;
            check_place(target, &mut patched)?;
            scale::check_changed(target.resource, &patched)?;
            Ok(updated(request, patched))
        };
        self.rescale(request, propose).await
    }

    pub(crate) async fn apply_scale(&self, request: &Request<'_>, body: &[u8]) -> Result<Modified, Error> {
        let (target, options) = (request.target, request.options.write());
        let configuration::Config { object: config, problem } = configuration::parse(body)?;
        let now = self.now();
        let propose = &mut |found: Option<&Current>| {
            let parent = &found.ok_or_else(|| target.not_found())?.object;
            configuration::check(&config, &scale::GVK)?;
            let live = scale::to_change(target.resource, parent)?;
            let scales = (&live, &config);
            let tracking = Tracking { manager: options.manager(), part: Part::Scale, now: &now };
            let conflicts = options.conflicts;
            let applied = ownership::scale::apply(target.resource, parent, scales, tracking, conflicts)
                .map_err(|refusal| match refusal {
                    Refusal::Unfit(why) => ownership::scale::unfit(&config, &why),
                    Refusal::Conflicts(found) => conflict_error(&found),
                })?;
            configuration::judge(problem.as_deref(), request.strictness())?;
            let mut scale = applied.object;
            check_place(target, &mut scale)?;
            scale::check_changed(target.resource, &scale)?;
            Ok(Proposal::Scale(Rescale { scale, owners: Owners::Applied(applied.managers.encode()) }))
        };
        self.rescale(request, propose).await
    }

    /// Writes the parent, and answers with its Scale.
    async fn rescale(&self, request: &Request<'_>, propose: &mut Propose<'_>) -> Result<Modified, Error> {
        let write = Write { uid: UidRule::Precondition, ..Write::change(request, Part::Scale, None) };
        let Modified { answer, outcome } = self.modify(write, propose).await?;
        let resource = request.target.resource;
        let scale = match answer {
            Answer::Stored(parent) => scale::of(resource, &resource.decode(&parent)?)?,
            Answer::Unstored(parent) => scale::of(resource, &parent)?,
        };
        Ok(Modified { answer: Answer::Unstored(scale), outcome })
    }
}

fn updated(request: &Request<'_>, scale: ObjectMap) -> Proposal {
    let manager = request.options.write().manager().to_owned();
    Proposal::Scale(Rescale { scale, owners: Owners::Update { manager } })
}
