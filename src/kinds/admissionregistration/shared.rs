//! Warnings that all kinds of this group share.

use crate::fields::ObjectMap;
use crate::gotext;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::warnings::Remarks;

/// The end of a name that is reserved for objects that come from files.
const STATIC: &str = ".static.k8s.io";

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text().ends_with(STATIC) {
        let end = gotext::quote(STATIC);
        let what = "are reserved for static manifest-based configurations and cannot be managed via the API";
        remarks.on(&name, format_args!("names ending with {end} {what}"));
    }
}
