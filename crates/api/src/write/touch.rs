//! Changes of an object's metadata by controllers, which call no webhook: the object stays in the version that it is
//! stored in.

use super::outcome::Modified;
use super::{Current, Proposal, Reads, Write, update};
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::request::Request;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::tree::Value;
use crate::{Api, Target, meta, metadata, metadata_mut};

/// A change of one member of an object's metadata, and the object as it was read.
pub struct Touch<'a> {
    pub uid: &'a str,
    pub revision: Revision,
    /// See [`Request::decided_at`].
    pub decided_at: Option<Revision>,
    pub member: &'a str,
    /// Null removes the member.
    pub value: Value,
}

impl Api {
    /// Writes a member of an object's metadata, provided that the object is as it was read. The kind's rules do not apply.
    pub async fn touch(&self, target: Target<'_>, touch: &Touch<'_>) -> Result<Modified, Error> {
        let request = Request { decided_at: touch.decided_at, ..Request::own(Verb::Update, target) };
        let write = Write { reads: Reads::AsStored, ..Write::change(&request, Part::Main, None) };
        let propose = &mut |found: Option<&Current>| {
            let found = found.ok_or_else(|| target.not_found())?;
            let uid = metadata(&found.object).map_or("", |metadata| meta::text(metadata, "uid"));
            if uid != touch.uid || found.stored.revision() != touch.revision {
                return Err(Error::modified(target.resource.group_resource(), target.name));
            }
            let mut object = found.object.clone();
            match &touch.value {
                Value::Null => metadata_mut(&mut object).shift_remove(touch.member),
                value => metadata_mut(&mut object).insert(touch.member, value.clone()),
            };
            Ok(Proposal::Decided(update::next(target.resource, object, &found.object).0))
        };
        self.modify(write, propose).await
    }
}
