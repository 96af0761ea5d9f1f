//! A line of a stream of changes, before it has a form.

use std::sync::Arc;

use crate::api::resource::Resource;
use crate::api::verbs::past::history::Changed;

/// A line of the stream.
pub struct Line {
    pub resource: Arc<Resource>,
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub change: Changed,
}
