//! Declarations of messages: structs of prost.

/// Structs of messages.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$attribute:meta])* $field:ident $(as $wire:literal)? $(in $numbers:ident)?: $type:ty),* $(,)?
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct $name {
            $($(#[$attribute])* pub $field: $type,)*
        }
    )*};
}

/// A field of which only one variant is set.
macro_rules! oneof {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$attribute:meta])* $variant:ident as $wire:literal ($type:ty)),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Oneof)]
        pub enum $name {
            $($(#[$attribute])* $variant($type),)*
        }
    };
}

/// The named numbers of a field.
macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $number:literal as $wire:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
        #[repr(i32)]
        pub enum $name {
            $($(#[$about])* $variant = $number,)*
        }
    };
}

pub(super) use {enumeration, messages, oneof};
