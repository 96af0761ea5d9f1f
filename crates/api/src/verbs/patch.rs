//! PATCH: a change computed from the current object, and computed again if another write came in between.

use crate::decode::check_place;
use crate::decode::patch::Patch;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::meta::owners::{Found, drop_repeated};
use crate::patch::PatchKind;
use crate::request::Request;
use crate::write::outcome::Modified;
use crate::write::{Current, Proposal, Write};
use crate::{Api, metadata_mut};

impl Api {
    /// Applies a patch of any format to the object, or to the part of it that the request names.
    pub async fn patch(
        &self,
        request: &Request<'_>,
        kind: PatchKind,
        body: &[u8],
    ) -> Result<Modified, Error> {
        match (kind, request.part()) {
            (PatchKind::Apply, Part::Scale) => self.apply_scale(request, body).await,
            (PatchKind::Apply, part) => self.apply(request, part, body).await,
            (_, Part::Scale) => self.patch_scale(request, kind, body).await,
            (_, part) => {
                self.patch_object(request, part, Patch::parse(kind, body, request.strictness())?).await
            }
        }
    }

    async fn patch_object(&self, request: &Request<'_>, part: Part, patch: Patch) -> Result<Modified, Error> {
        let target = request.target;
        let definition = &target.resource.definition;
        let write = Write::change(request, part, Some(request.options.write().manager()));
        let propose = &mut |found: Option<&Current>| {
            let current = &found.ok_or_else(|| target.not_found())?.object;
            let mut new = patch.decode(current, &definition.kind, request.strictness())?;
            target.resource.default(&mut new)?;
            check_place(target, &mut new)?;
            drop_repeated(metadata_mut(&mut new), Found::AfterAdmission, request.warnings);
            Ok(Proposal::Object(new))
        };
        self.modify(write, propose).await
    }
}
