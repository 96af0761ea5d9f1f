//! The one way of every write: decode, default, mutate, prepare, validate, admit, claim, put.
//!
//! A verb provides a [`Write`], which says how to write, and a function that makes a [`Proposal`] from the current
//! object: for a PUT, the body, decoded and with its defaults. [`Api::attempt`] does everything up to admission,
//! [`Api::put`] the rest, and [`Api::modify`] repeats both when another write came in between.

mod attempt;
pub mod modify;
pub mod outcome;
mod put;
pub(super) mod rescale;
pub mod together;
pub mod touch;
pub(super) mod update;

use std::sync::Arc;
use std::time::Instant;

use crate::admission::{Attempt, Operation};
use crate::causes::Cause;
use crate::codec::object::Object;
use crate::conversion::managers::Conversions;
use crate::effects::Effects;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;
use crate::ownership::{self, Tracking};
use crate::request::Request;
use crate::storage::Requirement;
use crate::tree::{Text, Value};
use crate::{Api, Cluster, ObjectMap, gotext, meta, metadata, metadata_mut};

use crate::mutation::new_object::{self, Naming};
use rescale::{Rescale, Scaled};

/// How a verb writes.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    pub request: &'a Request<'a>,
    pub part: Part,
    pub uid: UidRule,
    /// The manager that becomes the owner of changed fields; `None` if the proposal has its managers already.
    pub manager: Option<&'a str>,
    pub existing: Existing,
    pub reads: Reads,
    pub admission: Admitted,
    /// The requirements of the action's admission, if the write is a part of an action; else empty.
    pub relies_on: &'a [Requirement],
    /// The requirement of the action's admission that webhooks and policies are still configured as it saw them.
    pub configured: Option<&'a Arc<Requirement>>,
}

/// The meaning of a uid in the written object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UidRule {
    /// A PUT names the object that it replaces: another uid is a conflict.
    Precondition,
    /// A patch changes the object that exists: another uid is a change of an immutable field.
    Immutable,
}

/// The effect of a write if the object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Change,
    /// 409, unless another name can be generated. A POST does not read the object before it writes.
    Refuse,
}

/// The version in which a write finds an object that only a webhook can convert. All other objects are found as they are
/// served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    AsServed,
    /// The version that the object is stored in, in which it is also answered: deletions and changes of metadata call no
    /// webhook.
    AsStored,
}

/// Whether admission plugins have seen the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    NotYet,
    /// They have seen the action of which the write is a part.
    AsAction,
}

/// The current object, in the request's version and [closed](crate::codec::managed).
pub(super) struct Current {
    pub object: ObjectMap,
    pub stored: Arc<Object>,
    /// The conversions through which managers in other versions see the object, where a webhook converts.
    pub conversions: Option<Box<Conversions>>,
}

/// The change that a verb wants to make to the current object.
pub(super) enum Proposal {
    /// Replace it by this object, in the request's version, decoded and with its defaults.
    Object(ObjectMap),
    /// Give it the replicas of a Scale.
    Scale(Rescale),
    /// A change that the kind's rules do not apply to: a deletion, or a binding.
    Decided(Next),
    /// Answer with the object as it is, without asking anybody.
    Nothing,
}

/// Makes a proposal. May be called several times.
pub(super) type Propose<'a> = dyn FnMut(Option<&Current>) -> Result<Proposal, Error> + Send + 'a;

/// The effect of a write on the object.
pub(super) enum Next {
    /// Nothing changes.
    Unchanged,
    /// Replace it by this object, in the request's version.
    Put(ObjectMap),
    /// Remove it. The answer is this object, or if `None` the object as it was last stored.
    Delete(Option<ObjectMap>),
}

/// A write that has passed everything up to the store.
pub(super) struct Ready {
    pub next: Next,
    pub effects: Effects,
    /// The name of a new object; `None` for an existing one.
    pub naming: Option<Naming>,
    /// Whether the kind may have warnings about the object.
    pub advised: bool,
}

impl<'a> Write<'a> {
    /// A write of a part of an existing object.
    pub fn change(request: &'a Request<'a>, part: Part, manager: Option<&'a str>) -> Self {
        Self {
            request,
            part,
            uid: UidRule::Immutable,
            manager,
            existing: Existing::Change,
            reads: Reads::AsServed,
            admission: Admitted::NotYet,
            relies_on: &[],
            configured: None,
        }
    }

    /// A write of the object of an action, after plugins have seen the action.
    pub fn part_of_action(request: &'a Request<'a>) -> Self {
        Self { admission: Admitted::AsAction, ..Self::change(request, Part::Main, None) }
    }

    /// Gives the proposed object its managers.
    fn begin(&self, mut object: ObjectMap, found: Option<&Current>, now: &str) -> Result<ObjectMap, Error> {
        let resource = self.request.target.resource;
        match (self.manager, found) {
            (Some(manager), Some(found)) => {
                let tracking = Tracking { manager, part: self.part, now };
                let seen = found.conversions.as_deref();
                ownership::track_update(resource, seen, &found.object, &mut object, tracking);
            }
            (Some(manager), None) => ownership::track_create(resource, &mut object, manager, now),
            (None, _) => {}
        }
        self.check_uid(&mut object, found)?;
        Ok(object)
    }

    fn check_uid(&self, object: &mut ObjectMap, found: Option<&Current>) -> Result<(), Error> {
        if self.uid == UidRule::Immutable {
            return Ok(());
        }
        let (empty, target) = (ObjectMap::new(), self.request.target);
        let stored = found.and_then(|found| metadata(&found.object)).unwrap_or(&empty);
        let resource = target.resource.group_resource();
        meta::update::check_uid(metadata_mut(object), stored, &resource, target.name)
    }

    /// Lets plugins complete the object, unless they have seen the action of which the write is a part.
    async fn mutate(&self, api: &Api, attempt: &mut Attempt<'_>) -> Result<(), Error> {
        match self.admission {
            Admitted::NotYet => api.admission.mutate(attempt).await,
            Admitted::AsAction => Ok(()),
        }
    }

    /// Asks plugins about the object, which is complete and valid.
    async fn admit(&self, api: &Api, attempt: &mut Attempt<'_>) -> Result<(), Error> {
        if self.admission == Admitted::NotYet {
            api.admission.validate(attempt).await?;
        }
        attempt.settle_requirements();
        Ok(())
    }

    /// The variant of [`Write::admit`] in which a new object has the name that the client has sent, as it has in reviews if a
    /// webhook renames the object.
    async fn admit_as<'b>(
        &self,
        api: &Api,
        attempt: &mut Attempt<'b>,
        given: Option<&'b Text>,
    ) -> Result<(), Error> {
        let placed = attempt.target;
        if let Some(given) = given.filter(|given| !given.is_empty()) {
            attempt.target.name = given;
        }
        self.admit(api, attempt).await?;
        attempt.target = placed;
        Ok(())
    }

    /// The object as plugins see it, with the name that a new one was given by the client.
    fn attempted<'b>(
        &self,
        api: &'b Api,
        object: ObjectMap,
        (found, scaled): (Option<&'b Current>, Option<&'b Scaled>),
        given: Option<&'b Text>,
    ) -> Attempt<'b>
    where
        'a: 'b,
    {
        let operation = if found.is_some() { Operation::Update } else { Operation::Create };
        let old = scaled.map(|scaled| &scaled.shown).or(found.map(|found| &found.object));
        let mut attempt = Attempt::new(api, self.request, operation, old).with(object);
        if let Some(given) = given {
            attempt.target.name = given;
        }
        attempt
    }

    /// The effects of what plugins have relied on.
    fn effects_of(&self, attempt: Attempt<'_>) -> Effects {
        let configured = self.configured.cloned().or(attempt.configured);
        let mut effects = Effects::of_admission(attempt.requires, configured);
        effects.require(self.relies_on.iter().cloned());
        effects
    }

    /// Lets the kind make its own changes to the object.
    fn prepare(&self, object: &mut ObjectMap, found: Option<&Current>, now: &str) -> Result<(), Error> {
        let Request { user, warnings, target, .. } = *self.request;
        let writer = Writer { user, now, warnings };
        match found {
            Some(found) => update::prepare(target, self.part, object, found, &writer),
            None => {
                new_object::prepare(target.resource, object, &writer);
                Ok(())
            }
        }
    }

    /// 422 if plugins have given a new object another name than the path has. Upstream stores such an object at the path, and
    /// refuses all its updates so; here each attempt would make the other object anew, and find the path empty again.
    fn refuse_another_name(&self, object: &ObjectMap, found: Option<&Current>) -> Result<(), Error> {
        let (target, name) = (self.request.target, given_name(object));
        if found.is_some() || self.existing == Existing::Refuse || name == *target.name {
            return Ok(());
        }
        let cause = Cause::invalid("metadata.name", gotext::quote(&name), "field is immutable");
        Err(target.invalid([cause]))
    }

    /// 422 if the object violates the kind's rules.
    async fn validate(
        &self,
        cluster: &Cluster,
        name: &str,
        object: &ObjectMap,
        found: Option<&Current>,
    ) -> Result<(), Error> {
        let (resource, now) = (self.request.target.resource, cluster.runtime.clock.timestamp());
        let mut causes = match found {
            Some(found) => update::causes(resource, self.part, object, &found.object, now)?,
            None => new_object::causes(resource, object)?,
        };
        if let Some(custom) = &resource.custom
            && let metrics = &cluster.runtime.metrics.objects
            && let Some(rules) = custom.version.version().rules(|took| metrics.rules_compiled(took)).await
        {
            let old = found.map(|found| &found.object);
            let began = Instant::now();
            let (more, remarks) = rules.causes(&causes, object, old);
            metrics.rules_evaluated(began.elapsed());
            causes.append(more);
            remarks.into_iter().for_each(|remark| self.request.warnings.add(remark));
        }
        if causes.is_empty() {
            return Ok(());
        }
        Err(Error::Invalid { kind: resource.group_kind(), name: name.to_owned(), causes: causes.into_vec() })
    }
}

/// The name in a body.
fn given_name(object: &ObjectMap) -> Text {
    match metadata(object).and_then(|own| own.get("name")) {
        Some(Value::String(name)) => name.clone(),
        _ => Text::default(),
    }
}
