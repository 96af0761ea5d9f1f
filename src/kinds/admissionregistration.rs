pub mod binding;
pub mod policy;
pub mod shared;
pub mod webhook;
