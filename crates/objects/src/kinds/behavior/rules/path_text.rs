//! Paths of files.

use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;

pub fn no_backsteps(at: &At<'_, '_>, path: &str, errors: &mut Errors) {
    if has_backsteps(path) {
        errors.invalid(at, path, "must not contain '..'");
    }
}

pub fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A path below some directory.
pub fn descending(at: &At<'_, '_>, path: &str, errors: &mut Errors) {
    if path.starts_with('/') {
        errors.invalid(at, path, "must be a relative path");
    }
    no_backsteps(at, path, errors);
}

/// The variant of [`descending`] that refuses names which volumes use themselves.
pub fn not_reserved(at: &At<'_, '_>, path: &str, errors: &mut Errors) {
    descending(at, path, errors);
    if path.starts_with("..") && !path.starts_with("../") {
        errors.invalid(at, path, "must not start with '..'");
    }
}

/// The bits of a file's mode.
pub fn mode(at: &At<'_, '_>, errors: &mut Errors) {
    if at.opt_int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.invalid(at, at.int(), "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
