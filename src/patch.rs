//! Patch formats as pure functions over JSON values.
