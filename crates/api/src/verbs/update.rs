//! PUT: a new version of an object, or of a part of it.

use crate::decode::{Body, check_place};
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::meta::owners::{Found, drop_repeated};
use crate::meta::update::expected_revision;
use crate::request::Request;
use crate::write::outcome::Modified;
use crate::write::{Proposal, UidRule, Write};
use crate::{Api, metadata_mut};

impl Api {
    /// Replaces the object, or the part of it that the request names. Creates the object if it does not exist and the
    /// kind allows that.
    pub async fn update(&self, request: &Request<'_>, body: Body<'_>) -> Result<Modified, Error> {
        let (target, part) = (request.target, request.part());
        if part == Part::Scale {
            return self.update_scale(request, body).await;
        }
        let read = || {
            let mut object = body.decode(request)?;
            check_place(target, &mut object)?;
            drop_repeated(metadata_mut(&mut object), Found::InBody, request.warnings);
            Ok(object)
        };
        let mut first = read()?;
        expected_revision(metadata_mut(&mut first))?;
        let mut first = Some(first);
        let creates = part == Part::Main && target.resource.definition.behavior.create_on_update;
        let write = Write {
            uid: UidRule::Precondition,
            ..Write::change(request, part, Some(request.options.write().manager()))
        };
        let propose = &mut |found: Option<&_>| match found {
            None if !creates => Err(target.not_found()),
            // After a lost race the body is decoded again, which is cheaper than keeping a copy for every update.
            _ => first.take().map_or_else(read, Ok).map(Proposal::Object),
        };
        self.modify(write, propose).await
    }
}
