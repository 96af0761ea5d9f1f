//! Server-side apply: who owns which fields, and what an applied configuration makes of an object.
//!
//! The rules are those of `sigs.k8s.io/structured-merge-diff` (`docs/spec/patch-apply.md`, section 4): a [`schema::Schema`]
//! says how values of a kind are taken apart, a [`fields::FieldSet`] holds paths, and [`ownership`] keeps the sets of
//! all managers of an object true to what writes do. Objects come in the version of their schema; whoever calls
//! converts.

pub mod compare;
pub mod conflict;
pub mod fields;
pub mod fields_v1;
pub mod filter;
mod first;
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

#[cfg(test)]
mod tests;
