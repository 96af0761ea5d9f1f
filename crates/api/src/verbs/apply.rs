//! Server-side apply: a manager sends the complete configuration that it wants of an object.

use crate::decode::{breadth, check_place, configuration};
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::options::strictness::Strictness;
use crate::ownership::apply::{finished, refused, taken_managers};
use crate::ownership::{Kind, Tracking, acting, conflict_error};
use crate::patch::apply::managers::{Managers, Operation};
use crate::patch::apply::ownership::{Conflicts, Refusal, apply};
use crate::request::Request;
use crate::write::outcome::Modified;
use crate::write::{Current, Proposal, Write};
use crate::{Api, ObjectMap, meta, metadata_mut};

mod last_applied;

impl Api {
    /// Applies a configuration. Creates the object if it does not exist.
    pub async fn apply(&self, request: &Request<'_>, part: Part, body: &[u8]) -> Result<Modified, Error> {
        let (config, now) = (configuration::parse(body)?, self.now());
        breadth::check_all(&config.object)?;
        let strictness = request.strictness();
        let config = Configuration { object: &config.object, problem: config.problem.as_deref(), strictness };
        let propose = &mut |found: Option<&Current>| match found {
            Some(current) => changed(request, part, config, current, &now).map(Proposal::Object),
            None if part == Part::Main => created(request, config, &now).map(Proposal::Object),
            None => Err(request.target.not_found()),
        };
        self.modify(Write::change(request, part, None), propose).await
    }
}

/// The configuration to apply, and the problem that strict decoding found in its text.
#[derive(Clone, Copy)]
struct Configuration<'a> {
    object: &'a ObjectMap,
    problem: Option<&'a str>,
    strictness: Strictness<'a>,
}

impl Configuration<'_> {
    /// Reports the problem. Called after conflicts were checked, as upstream does.
    fn judge(self) -> Result<(), Error> {
        configuration::judge(self.problem, self.strictness)
    }
}

fn changed(
    request: &Request<'_>,
    part: Part,
    configured: Configuration<'_>,
    current: &Current,
    now: &str,
) -> Result<ObjectMap, Error> {
    let (target, config, options) = (request.target, configured.object, request.options.write());
    let kind = Kind::new(target.resource, part).seen(current.conversions.as_deref());
    let manager = options.manager();
    let acting = acting(target.resource, Tracking { manager, part, now }, Operation::Apply);
    let mut live = current.object.clone();
    let managers = taken_managers(&kind, &mut live, &acting)?;
    configuration::check(config, target.resource.definition.gvk())?;
    let mut applied = match apply(&kind, &live, config, &managers, &acting, options.conflicts) {
        Err(Refusal::Conflicts(found)) => {
            let found = last_applied::unforgiven(&kind, &live, &acting, found);
            if !found.is_empty() {
                return Err(conflict_error(&found));
            }
            apply(&kind, &live, config, &managers, &acting, Conflicts::Force)
        }
        other => other,
    }
    .map_err(|refusal| refused(target, config, refusal))?;
    last_applied::refresh(&mut applied.object, config, manager);
    let mut new = finished(target, config, applied)?;
    configured.judge()?;
    check_place(target, &mut new)?;
    Ok(new)
}

fn created(request: &Request<'_>, configured: Configuration<'_>, now: &str) -> Result<ObjectMap, Error> {
    let (target, config) = (request.target, configured.object);
    let resource = target.resource;
    let kind = Kind::new(resource, Part::Main);
    configuration::check(config, target.resource.definition.gvk())?;
    let tracking = Tracking { manager: request.options.write().manager(), part: Part::Main, now };
    let acting = acting(resource, tracking, Operation::Apply);
    let nothing: ObjectMap = ["kind", "apiVersion"]
        .iter()
        .filter_map(|name| kind.zero().get_key_value(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let applied = apply(&kind, &nothing, config, &Managers::default(), &acting, Conflicts::Force)
        .map_err(|refusal| refused(target, config, refusal))?;
    let mut new = finished(target, config, applied)?;
    configured.judge()?;
    check_place(target, &mut new)?;
    let uid = meta::text(metadata_mut(&mut new), "uid");
    if !uid.is_empty() {
        return Err(Error::uid_without_object(resource.group_resource(), target.name, uid));
    }
    metadata_mut(&mut new).shift_remove("resourceVersion");
    Ok(new)
}
