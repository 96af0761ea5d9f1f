//! Regular expressions as Go's `regexp` reads them: RE2's dialect, its error texts, and matching in time linear in the
//! text.
//!
//! Expressions that Go takes are taken, except those larger than anybody writes by hand ([`LENGTH_MAX`], [`DEPTH_MAX`], and
//! the size of the compiled program): they are refused as Go refuses expressions of hundreds of megabytes.

mod class;
mod parser;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex_automata::meta;
use regex_syntax::hir::{Hir, HirKind};

/// Bytes of an expression.
pub const LENGTH_MAX: usize = 64 << 10;

/// Groups within groups.
pub const DEPTH_MAX: usize = 250;

/// Bytes of a compiled program.
const PROGRAM_MAX: usize = 64 << 20;

/// Bytes in which a search remembers what it has worked out.
const SCRATCH_MAX: usize = 512 << 10;

/// Bytes of the programs of expressions that come from one place, such as a schema.
const ROOM: usize = 256 << 20;

/// The bytes that an expression takes besides its program.
const LEAST: usize = 32 << 10;

/// Bytes times places of an expression that a search may look at for one step of others' work: half a microsecond at
/// worst (measured: 8 ns each for `a(a|b){900}c`, of which nothing can be remembered).
const LOOKS_OF_STEP: u64 = 64;

/// A compiled expression.
#[derive(Clone)]
pub struct Regexp {
    program: meta::Regex,
    /// The number of places in the expression at which a search can be at the same time.
    places: u64,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{part}`")]
pub struct Error {
    code: Code,
    /// The part of the expression that is wrong.
    part: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    InvalidCharRange,
    InvalidEscape,
    InvalidNamedCapture,
    InvalidPerlOp,
    InvalidRepeatOp,
    InvalidRepeatSize,
    MissingBracket,
    MissingParen,
    MissingRepeatArgument,
    TrailingBackslash,
    UnexpectedParen,
    NestingDepth,
    Large,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidCharRange => "invalid character class range",
            Self::InvalidEscape => "invalid escape sequence",
            Self::InvalidNamedCapture => "invalid named capture",
            Self::InvalidPerlOp => "invalid or unsupported Perl syntax",
            Self::InvalidRepeatOp => "invalid nested repetition operator",
            Self::InvalidRepeatSize => "invalid repeat count",
            Self::MissingBracket => "missing closing ]",
            Self::MissingParen => "missing closing )",
            Self::MissingRepeatArgument => "missing argument to repetition operator",
            Self::TrailingBackslash => "trailing backslash at end of expression",
            Self::UnexpectedParen => "unexpected )",
            Self::NestingDepth => "expression nests too deeply",
            Self::Large => "expression too large",
        })
    }
}

impl Error {
    fn new(code: Code, part: &str) -> Self {
        Self { code, part: part.to_owned() }
    }
}

/// The error of an expression, if it has one. Costs less than compiling it.
pub fn check(expression: &str) -> Result<(), Error> {
    parser::parse(expression).map(drop)
}

impl Regexp {
    pub fn compile(expression: &str) -> Result<Self, Error> {
        Self::compile_within(expression, PROGRAM_MAX)
    }

    /// The variant of [`Regexp::compile`] that limits the bytes of the program.
    fn compile_within(expression: &str, most: usize) -> Result<Self, Error> {
        let parsed = parser::parse(expression)?;
        let config = meta::Config::new()
            .nfa_size_limit(Some(most))
            .hybrid_cache_capacity(SCRATCH_MAX)
            .utf8_empty(true);
        let compiled = meta::Builder::new().configure(config).build_from_hir(&parsed);
        let places = places(&parsed);
        compiled.map(|program| Self { program, places }).map_err(|_| Error::new(Code::Large, expression))
    }

    /// The steps that a search of so many bytes takes at worst, for those who bound the work that others may ask for. Most
    /// searches take far fewer.
    pub fn steps(&self, bytes: usize) -> u64 {
        self.places.saturating_mul(bytes as u64) / LOOKS_OF_STEP
    }

    /// Whether the expression matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.program.is_match(text)
    }

    /// The leftmost match.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.program.find(text).map(|found| found.range())
    }

    /// Matches that do not overlap, from left to right.
    pub fn find_iter<'r, 't>(&'r self, text: &'t str) -> impl Iterator<Item = Range<usize>> + use<'r, 't> {
        self.program.find_iter(text).map(|found| found.range())
    }

    /// The range of the leftmost match, followed by those of its groups.
    pub fn captures(&self, text: &str) -> Option<Vec<Option<Range<usize>>>> {
        let mut captures = self.program.create_captures();
        self.program.captures(text, &mut captures);
        captures.is_match().then(|| captures.iter().map(|group| group.map(|group| group.range())).collect())
    }
}

/// The letters of an expression, as often as they are repeated.
fn places(expression: &Hir) -> u64 {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(1);
            places(&repeated.sub).saturating_mul(times.into())
        }
        HirKind::Capture(group) => places(&group.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(places).fold(0, u64::saturating_add)
        }
    }
}

/// The bytes that are left for the programs of some expressions together: each may be as large as Go's, but not all of
/// thousands.
#[derive(Debug)]
pub struct Room(AtomicUsize);

impl Default for Room {
    fn default() -> Self {
        Self::of(ROOM)
    }
}

impl Room {
    pub fn of(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Compiles an expression. One that there is no room for is too large.
    pub fn compile(&self, expression: &str) -> Result<Regexp, Error> {
        let left = self.left().saturating_sub(LEAST);
        if left == 0 {
            return Err(Error::new(Code::Large, expression));
        }
        let compiled = Regexp::compile_within(expression, left.min(PROGRAM_MAX))?;
        let taken = LEAST.saturating_add(compiled.program.memory_usage());
        let take = |left: usize| Some(left.saturating_sub(taken));
        _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        Ok(compiled)
    }
}

impl fmt::Debug for Regexp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Regexp")
    }
}
