//! Subcommands, flags, start-up and shutdown.
