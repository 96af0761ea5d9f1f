//! Numbers as Go holds them: integers of 64 bits, or floating-point.

use super::check::Check;
use super::outcome::{Kind, ValidationResult};
use super::place::ValuePath;
use super::{Bound, Format, SchemaNode, ValueType};
use crate::gotext;
use crate::tree::Number;

#[derive(Clone, Copy, Debug)]
pub enum Quantity {
    Integer(i64),
    Float(f64),
}

impl From<&Number> for Quantity {
    fn from(number: &Number) -> Self {
        match number.as_i64() {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(number.as_f64().unwrap_or_default()),
        }
    }
}

/// The words of errors about a bound itself, and about the number.
#[derive(Clone, Copy)]
struct Words {
    /// How errors of range call the keyword.
    bound: &'static str,
    /// The relation that the number should have to the bound.
    should: &'static str,
}

const MULTIPLE: Words = Words { bound: "MultipleOf", should: "a multiple of" };

impl Quantity {
    pub fn type_and_format(self) -> (&'static str, &'static str) {
        match self {
            Self::Integer(_) => ("integer", "int64"),
            Self::Float(_) => ("number", "float64"),
        }
    }

    /// Whether a number of this type stands for one of the schema's type.
    pub fn fits(self, expected: Expected<'_>) -> bool {
        match self {
            Self::Integer(_) => expected.has("integer") || expected.has("number"),
            Self::Float(float) => expected.has("number") || expected.has("integer") && is_json_integer(float),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }

    /// Whether this number equals `other` once it is converted to the type of `other`.
    pub fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Float(one), Self::Integer(other)) => to_integer(one) == other,
            (one, Self::Float(other)) => one.as_float() == other,
        }
    }

    /// Range of the type, multiple, minimum, maximum.
    pub fn check(self, schema: &SchemaNode, at: &ValuePath<'_>, found: &mut ValidationResult) {
        self.in_range(schema, "Checked", at, found);
        for check in &schema.checks {
            match check {
                Check::MultipleOf(factor) => self.multiple(schema, factor.0, at, found),
                Check::Minimum { bound, exclusive } => {
                    let should = if *exclusive { "greater than" } else { "greater than or equal to" };
                    let words = Words { bound: "Minimum boundary", should };
                    let below = |number: f64, min: f64| number < min || *exclusive && number == min;
                    let below_integer = |number: i64, min: i64| number < min || *exclusive && number == min;
                    self.bounded(schema, *bound, words, (below, below_integer), at, found);
                }
                Check::Maximum { bound, exclusive } => {
                    let should = if *exclusive { "less than" } else { "less than or equal to" };
                    let words = Words { bound: "Maximum boundary", should };
                    let above = |number: f64, max: f64| number > max || *exclusive && number == max;
                    let above_integer = |number: i64, max: i64| number > max || *exclusive && number == max;
                    self.bounded(schema, *bound, words, (above, above_integer), at, found);
                }
                _ => {}
            }
        }
    }

    fn bounded(
        self,
        schema: &SchemaNode,
        bound: Bound,
        words: Words,
        (fails, fails_integer): (impl Fn(f64, f64) -> bool, impl Fn(i64, i64) -> bool),
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) {
        let comparable = Self::Float(bound.0).in_range(schema, words.bound, at, found);
        match self {
            // Integers are compared with what is left of the bound without its fraction.
            Self::Integer(integer) if comparable => {
                let bound = to_integer(bound.0);
                if fails_integer(integer, bound) {
                    self.should(words, bound.to_string(), integer.to_string(), at, found);
                }
            }
            _ if fails(self.as_float(), bound.0) => {
                self.should(words, display(bound.0), display(self.as_float()), at, found);
            }
            _ => {}
        }
    }

    fn multiple(self, schema: &SchemaNode, factor: f64, at: &ValuePath<'_>, found: &mut ValidationResult) {
        let comparable = Self::Float(factor).in_range(schema, MULTIPLE.bound, at, found);
        let positive = |place: &str, factor: &str| {
            format!("factor MultipleOf declared for {place} must be positive: {factor}")
        };
        match self {
            Self::Integer(integer) if comparable => {
                let factor = to_integer(factor);
                let shown = factor.to_string();
                if factor <= 0 {
                    found.add(Kind::Invalid, at, || shown.clone(), |place| positive(place, &shown));
                } else if integer % factor != 0 {
                    self.should(MULTIPLE, shown, integer.to_string(), at, found);
                }
            }
            _ => {
                let (number, shown) = (self.as_float(), display(factor));
                let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
                if factor <= 0.0 {
                    found.add(Kind::Invalid, at, || shown.clone(), |place| positive(place, &shown));
                } else if !is_json_integer(quotient) {
                    self.should(MULTIPLE, shown, display(number), at, found);
                }
            }
        }
    }

    fn should(
        self,
        words: Words,
        bound: String,
        value: String,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) {
        let text = |place: &str| format!("{place} in body should be {} {bound}", words.should);
        found.add(Kind::Invalid, at, || value, text);
    }

    /// Whether the type and the format of the schema hold the number.
    fn in_range(
        self,
        schema: &SchemaNode,
        what: &'static str,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) -> bool {
        let kind = match schema.value_type {
            _ if schema.int_or_string => "",
            ValueType::Integer => "integer",
            ValueType::Number => "number",
            _ => "",
        };
        let format = schema.known_format;
        let (holds, format) = match (kind, format) {
            ("integer", Some(Format::Int32)) => {
                (self.as_integer().is_some_and(|n| i32::try_from(n).is_ok()), "int32")
            }
            ("integer", Some(Format::Int64)) => (self.as_integer().is_some(), "int64"),
            ("integer", _) => (self.as_integer().is_some(), ""),
            ("number", Some(Format::Float)) => (is_single(self.as_float()), "float"),
            _ => return true,
        };
        if !holds {
            found.add_unplaced(|| {
                let format = match format {
                    "" => " (default format)".to_owned(),
                    format => format!(" with format {format}"),
                };
                format!("{what} value must be of type {kind}{format} in {}", at.dotted())
            });
        }
        holds
    }

    /// The integer that the number is spelled as.
    fn as_integer(self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(integer),
            Self::Float(float) => {
                let fits = float.fract() == 0.0
                    && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
                fits.then_some(float as i64)
            }
        }
    }
}

/// Go's conversion on the processors that upstream runs on: what does not fit becomes the least integer.
fn to_integer(float: f64) -> i64 {
    let fits = float > -9_223_372_036_854_775_809.0 && float < 9_223_372_036_854_775_808.0;
    if fits { float as i64 } else { i64::MIN }
}

/// Whether a number is one of 32 bits after rounding.
fn is_single(float: f64) -> bool {
    (float as f32).is_finite()
}

/// go-openapi's idea of an integer: within the exact ones, and as near to one as a billionth of it.
fn is_json_integer(float: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    if !(-EXACT..=EXACT).contains(&float) {
        return false;
    }
    let rounded = float.round();
    float == rounded || rounded != 0.0 && (float - rounded).abs() < 1e-9 * rounded.abs()
}

/// `%v` of a floating-point number.
fn display(float: f64) -> String {
    gotext::display_float(float)
}

/// The types of a schema.
#[derive(Clone, Copy)]
pub struct Expected<'s> {
    pub names: Option<&'s str>,
}

impl Expected<'_> {
    pub fn has(self, name: &str) -> bool {
        match self.names {
            Some("integer,string") => matches!(name, "integer" | "string"),
            names => names == Some(name),
        }
    }
}
