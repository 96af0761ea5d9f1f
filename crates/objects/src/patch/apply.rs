//! Server-side apply: which manager owns which fields, and how an applied configuration changes an object.
//!
//! The rules are those of `sigs.k8s.io/structured-merge-diff` (`docs/spec/patch-apply.md`, section 4). A
//! [`schema::Schema`] tells how values of a kind are merged, a [`fields::FieldSet`] is a set of paths, and
//! [`ownership`] updates the sets of an object's managers when the object is written. Objects are in the version of
//! their schema; callers convert them.

pub mod atomics;
pub mod compare;
pub mod conflict;
pub mod fields;
pub mod fields_v1;
pub mod filter;
mod items;
pub mod managers;
pub mod merge;
pub mod nulls;
pub mod owned;
pub mod ownership;
pub mod path;
mod reclaimed;
pub mod remove;
pub mod schema;
pub mod validate;
