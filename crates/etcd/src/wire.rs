//! etcd's API on the wire.

pub mod messages;
