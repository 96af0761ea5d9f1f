//! The functions of expressions, by library.

pub mod addresses;
pub mod authorization;
pub mod conversions;
pub mod formats;
pub mod formatting;
pub mod lists;
pub mod opaque;
pub mod optionals;
pub mod quantities;
pub mod semvers;
pub mod strings;
pub mod table;
pub mod times;
pub mod urls;
