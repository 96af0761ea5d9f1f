pub mod binding;
pub mod shared;
