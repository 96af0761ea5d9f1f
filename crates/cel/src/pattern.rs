//! Regular expressions as Go reads them.

use std::sync::{Arc, OnceLock};

use rowplane_values::regexp::{self, Regexp, Room};

use crate::value::Error;

/// A constant pattern that was read. It is compiled when the first text is held to it.
#[derive(Debug)]
pub struct Pattern {
    text: Box<str>,
    room: Arc<Room>,
    compiled: OnceLock<Result<Regexp, String>>,
}

/// Why a text is no pattern.
pub fn check(text: &str) -> Result<(), String> {
    regexp::check(text).map_err(|why| why.to_string())
}

impl Pattern {
    /// The program will be one of those that share the room.
    pub fn new(text: &str, room: &Arc<Room>) -> Result<Self, String> {
        check(text)?;
        Ok(Self { text: text.into(), room: room.clone(), compiled: OnceLock::new() })
    }

    /// An error says that the program is too large.
    pub fn compiled(&self) -> Result<&Regexp, Error> {
        let compile = || self.room.compile(&self.text).map_err(|why| why.to_string());
        self.compiled.get_or_init(compile).as_ref().map_err(|why| Error::new(why.as_str()))
    }
}
