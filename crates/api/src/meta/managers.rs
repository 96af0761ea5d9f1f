//! Rules for the entries of `managedFields` in a body (apimachinery `ValidateManagedFields`). Entries that are
//! malformed have been dropped before.

use super::{Metadata, text};
use crate::causes::Cause;
use crate::causes::Causes;
use crate::gotext;
use crate::tree::Value;

/// The longest field manager, in bytes.
pub const FIELD_MANAGER_MAX: usize = 128;

const SUBRESOURCE_MAX: usize = 256;

pub(super) fn validate(metadata: &Metadata, causes: &mut Causes) {
    let entries = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    for (index, entry) in entries.filter_map(Value::as_object).enumerate() {
        let manager = text(entry, "manager");
        let plain = manager.bytes().all(|byte| byte.is_ascii_graphic());
        // A short and plain name, as nearly all are, needs no full check.
        if !plain || manager.len() > 100 {
            validate_manager(&format!("metadata.managedFields[{index}].manager"), manager, causes);
        }
        if text(entry, "subresource").len() > SUBRESOURCE_MAX {
            causes.push(Cause::too_long(
                format!("metadata.managedFields[{index}].subresource"),
                SUBRESOURCE_MAX,
            ));
        }
    }
}

/// Validates a manager's name in `field`.
pub fn validate_manager(field: &str, manager: &str, causes: &mut Causes) {
    if manager.len() > FIELD_MANAGER_MAX {
        causes.push(Cause::too_long(field, FIELD_MANAGER_MAX));
    }
    for (i, c) in manager.char_indices().filter(|(_, c)| !gotext::is_printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {i})", u32::from(c));
        causes.add(|| Cause::invalid(field, gotext::quote(manager), &why));
    }
}
