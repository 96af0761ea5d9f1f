//! The Content-Type of a request.

use crate::api::error::{Error, Refuser};
use crate::codec::media_type::MediaType;
use crate::patch::PatchKind;

/// Whether the patched kind is built in: only built-in kinds support strategic merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchTarget {
    BuiltIn,
    Custom,
}

/// The type of a body; a missing or empty header means JSON. 415 for a type that is not in `accepted`.
pub fn body_type(content_type: Option<&str>, accepted: &[MediaType]) -> Result<MediaType, Error> {
    let Some(text) = content_type.filter(|text| !text.is_empty()) else { return Ok(MediaType::Json) };
    let bare = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let found = accepted.iter().copied().find(|media| media.as_str() == bare);
    found.ok_or_else(|| unknown_format(accepted.iter().map(|media| media.as_str())))
}

/// The kind of a patch: the header is cut at `;` and compared exactly. 415 for anything else, in the words of
/// upstream's router for built-in kinds, or of its handler for custom resources.
pub fn patch_kind(content_type: Option<&str>, target: PatchTarget) -> Result<PatchKind, Error> {
    let bare = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let known = KINDS.iter().find(|(name, _)| *name == bare).map(|(_, kind)| *kind);
    match (known, target) {
        (Some(PatchKind::StrategicMerge) | None, PatchTarget::Custom) => {
            let offered = KINDS.iter().filter(|(_, kind)| *kind != PatchKind::StrategicMerge);
            Err(unknown_format(offered.map(|(name, _)| *name)))
        }
        (Some(kind), _) => Ok(kind),
        (None, PatchTarget::BuiltIn) => {
            let message = "415: Unsupported Media Type".to_owned();
            Err(Error::UnsupportedMediaType { message, by: Refuser::Router })
        }
    }
}

/// The media types of patches, in the order of the error's text.
const KINDS: [(&str, PatchKind); 4] = [
    ("application/json-patch+json", PatchKind::Json),
    ("application/merge-patch+json", PatchKind::Merge),
    ("application/strategic-merge-patch+json", PatchKind::StrategicMerge),
    ("application/apply-patch+yaml", PatchKind::Apply),
];

fn unknown_format<'a>(accepted: impl Iterator<Item = &'a str>) -> Error {
    let list = accepted.collect::<Vec<_>>().join(", ");
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {list}");
    Error::UnsupportedMediaType { message, by: Refuser::Handler }
}
