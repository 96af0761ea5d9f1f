//! Followers: values that are read from the cache again when what they are made of has changed.

pub mod aggregation;
pub mod api_services;
pub mod configured;
pub mod definitions;
pub mod grace_ends;
