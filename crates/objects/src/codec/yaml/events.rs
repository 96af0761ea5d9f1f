//! The events of libyaml, of which go-yaml's parser is a descendant: it reads the same documents and complains in the same
//! words. Parsers of YAML 1.2 read some of them as other values, and the translation of libyaml to safe Rust panics on a
//! few. What is unsafe of libyaml stays in here: pointers to what it has read are copied from, and never kept.

#![allow(unsafe_code, reason = "libyaml hands out pointers")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use libyaml_rs as libyaml;

/// How many bytes libyaml takes at a time, as go-yaml does: what is behind the first document counts only this far.
const CHUNK: usize = 512;

#[derive(Debug)]
pub(super) enum Event {
    /// With the version of a `%YAML` directive.
    DocumentStart(Option<(i32, i32)>),
    /// The end of a document, or of a stream without one.
    End,
    Alias(String),
    Scalar {
        anchor: Option<String>,
        tag: Option<String>,
        text: String,
        /// Whether it is written without quotes and tag.
        is_plain: bool,
    },
    SequenceStart(Option<String>),
    MappingStart(Option<String>),
    CollectionEnd,
}

/// The parser of a text.
pub(super) struct Events<'t> {
    // libyaml keeps pointers to both, so they stay where they are.
    parser: Box<libyaml::yaml_parser_t>,
    #[allow(clippy::redundant_allocation, reason = "the address of the slice has to stay")]
    _rest: Box<&'t [u8]>,
}

impl<'t> Events<'t> {
    /// The text may be in UTF-8 or, with a byte order mark, in UTF-16.
    pub fn of(text: &'t [u8]) -> Self {
        let mut parser = Box::<libyaml::yaml_parser_t>::new_uninit();
        let mut rest = Box::new(text);
        // SAFETY: the parser is written to before it is used, and reads `rest` only, which lives as long.
        let parser = unsafe {
            parser.as_mut_ptr().write_bytes(0, 1);
            let started = libyaml::yaml_parser_initialize(parser.as_mut_ptr());
            assert!(started.ok, "libyaml's parser takes no arguments");
            let data: *mut &[u8] = &raw mut *rest;
            libyaml::yaml_parser_set_input(parser.as_mut_ptr(), read, data.cast());
            parser.assume_init()
        };
        Self { parser, _rest: rest }
    }

    /// The next event, and its line from 0. The error is go-yaml's text.
    pub fn next(&mut self) -> Result<(Event, u64), String> {
        loop {
            let mut event = MaybeUninit::<libyaml::yaml_event_t>::zeroed();
            // SAFETY: the parser is initialized; it writes the event if it succeeds, which then owns what it points to.
            unsafe {
                if libyaml::yaml_parser_parse(&raw mut *self.parser, event.as_mut_ptr()).fail {
                    return Err(self.complaint());
                }
                let line = (*event.as_ptr()).start_mark.line;
                let owned = owned(&*event.as_ptr());
                libyaml::yaml_event_delete(event.as_mut_ptr());
                if let Some(event) = owned {
                    return Ok((event, line));
                }
            }
        }
    }

    /// Why the text cannot be parsed. go-yaml counts lines from 0, but those of its scanner from 1, and leaves the first
    /// out.
    fn complaint(&self) -> String {
        // SAFETY: libyaml's problems are literals.
        let problem = unsafe { text(self.parser.problem) }.unwrap_or_default();
        let by_scanner = self.parser.error == libyaml::YAML_SCANNER_ERROR;
        let line = match self.parser.problem_mark.line {
            0 => self.parser.context_mark.line,
            line => line + u64::from(by_scanner),
        };
        if line == 0 { format!("yaml: {problem}") } else { format!("yaml: line {line}: {problem}") }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        // SAFETY: it was initialized, and is not used any more.
        unsafe { libyaml::yaml_parser_delete(&raw mut *self.parser) }
    }
}

/// Hands libyaml the next bytes of the input.
unsafe fn read(input: *mut c_void, buffer: *mut u8, size: u64, size_read: *mut u64) -> i32 {
    // SAFETY: `input` is the slice of `Events`; `buffer` has room for `size` bytes.
    unsafe {
        let rest: &mut &[u8] = &mut *input.cast();
        let count = rest.len().min(CHUNK).min(usize::try_from(size).unwrap_or(CHUNK));
        let (head, tail) = rest.split_at(count);
        buffer.copy_from_nonoverlapping(head.as_ptr(), count);
        *size_read = count as u64;
        *rest = tail;
    }
    1
}

/// Copies what is needed of an event.
///
/// # Safety
///
/// The event must be libyaml's, and not deleted.
unsafe fn owned(event: &libyaml::yaml_event_t) -> Option<Event> {
    // SAFETY: the type tells which member of the union is there.
    unsafe {
        Some(match event.type_ {
            libyaml::YAML_DOCUMENT_START_EVENT => {
                let version = event.data.document_start.version_directive.as_ref();
                Event::DocumentStart(version.map(|version| (version.major, version.minor)))
            }
            libyaml::YAML_DOCUMENT_END_EVENT | libyaml::YAML_STREAM_END_EVENT => Event::End,
            libyaml::YAML_ALIAS_EVENT => {
                Event::Alias(text(event.data.alias.anchor.cast()).unwrap_or_default())
            }
            libyaml::YAML_SCALAR_EVENT => {
                let scalar = &event.data.scalar;
                let value = std::slice::from_raw_parts(scalar.value, usize::try_from(scalar.length).ok()?);
                Event::Scalar {
                    anchor: text(scalar.anchor.cast()),
                    tag: text(scalar.tag.cast()),
                    text: String::from_utf8_lossy(value).into_owned(),
                    is_plain: scalar.plain_implicit,
                }
            }
            libyaml::YAML_SEQUENCE_START_EVENT => {
                Event::SequenceStart(text(event.data.sequence_start.anchor.cast()))
            }
            libyaml::YAML_MAPPING_START_EVENT => {
                Event::MappingStart(text(event.data.mapping_start.anchor.cast()))
            }
            libyaml::YAML_SEQUENCE_END_EVENT | libyaml::YAML_MAPPING_END_EVENT => Event::CollectionEnd,
            _ => return None,
        })
    }
}

/// The text at a pointer that may be null.
///
/// # Safety
///
/// The text must end in a zero.
unsafe fn text(at: *const c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}
