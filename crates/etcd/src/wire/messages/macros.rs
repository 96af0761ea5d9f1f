//! Declarations of messages: structs of prost that have a form in JSON, too.

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

        impl $crate::wire::json::Json for $name {
            #[allow(unused_variables, reason = "some messages have no fields")]
            fn write(&self, into: &mut $crate::wire::json::Object) {
                $($crate::wire::json::Field::write(
                    &self.$field,
                    ($crate::wire::messages::macros::name!($field $($wire)?), &[$(($numbers::NAMES),)?]),
                    into,
                );)*
            }

            #[allow(unused_variables, reason = "some messages have no fields")]
            fn read(from: &$crate::wire::json::Object) -> Result<Self, $crate::wire::json::Invalid> {
                Ok(Self {$(
                    $field: $crate::wire::json::Field::read(
                        ($crate::wire::messages::macros::name!($field $($wire)?), &[$(($numbers::NAMES),)?]),
                        from,
                    )?,
                )*})
            }
        }
    )*};
}

/// The name of a field on the wire.
macro_rules! name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
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

        impl $crate::wire::json::Field for Option<$name> {
            fn write(&self, _: $crate::wire::json::Name<'_>, into: &mut $crate::wire::json::Object) {
                match self {
                    $(Some($name::$variant(value)) => $crate::wire::json::write_value($wire, value, into),)*
                    None => {}
                }
            }

            fn read(
                _: $crate::wire::json::Name<'_>,
                from: &$crate::wire::json::Object,
            ) -> Result<Self, $crate::wire::json::Invalid> {
                $(if let Some(value) = $crate::wire::json::read_value($wire, from)? {
                    return Ok(Some($name::$variant(value)));
                })*
                Ok(None)
            }
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

        impl $name {
            /// The names on the wire.
            pub(in crate::wire) const NAMES: $crate::wire::json::Numbers = &[$(($number, $wire)),*];
        }
    };
}

pub(in crate::wire) use name;
pub(super) use {enumeration, messages, oneof};
