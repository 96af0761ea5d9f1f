//! Followers: values that are read from the cache again when what they are made of has changed.

pub mod aggregation;
pub mod configured;
pub mod definitions;
pub mod grace_ends;
