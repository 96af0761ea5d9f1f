//! The functions of statements beside SQLite's own.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rowplane_values::quantity;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error as SqliteError};

use crate::Cell;

/// The work of a [`Function`]; an error fails the statement.
pub type Call = Arc<dyn Fn(&[Cell<'_>]) -> Result<Cell<'static>, String> + Send + Sync>;

/// A function that a statement may call. It must be deterministic within a statement.
#[derive(Clone)]
pub struct Function {
    pub name: &'static str,
    pub arguments: usize,
    pub call: Call,
}

impl Function {
    pub fn new(
        name: &'static str,
        arguments: usize,
        call: impl Fn(&[Cell<'_>]) -> Result<Cell<'static>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name, arguments, call: Arc::new(call) }
    }
}

/// SQLite's functions that statements may call: those that neither reach beyond the statement nor tell of the process.
pub const BUILT_IN: &[&str] = &[
    "->",
    "->>",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "random",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "soundex",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unixepoch",
    "unlikely",
    "upper",
];

/// The functions that this crate has, with the time of the statement.
pub fn own(now: Timestamp) -> Vec<Function> {
    vec![
        Function::new("ago", 1, move |arguments| {
            let Cell::Text(text) = &arguments[0] else { return Ok(Cell::Null) };
            let span = parse_span(text)
                .ok_or_else(|| format!("ago(): {text:?} is not a length of time such as '15m' or '1d'"))?;
            let then = now.checked_sub(span).map_err(|_| format!("ago(): {text:?} is too long ago"))?;
            Ok(Cell::text(then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
        }),
        Function::new("age", 1, move |arguments| {
            let time = match &arguments[0] {
                Cell::Text(text) => text.parse::<Timestamp>().ok(),
                Cell::Null | Cell::Integer(_) | Cell::Real(_) => None,
            };
            Ok(time.map_or(Cell::Null, |time| Cell::Integer(now.duration_since(time).as_secs())))
        }),
        Function::new("quantity", 1, |arguments| {
            Ok(match &arguments[0] {
                Cell::Text(text) => {
                    quantity::nanos(text).map_or(Cell::Null, |nanos| Cell::Real(nanos as f64 / 1e9))
                }
                Cell::Integer(value) => Cell::Real(*value as f64),
                Cell::Real(value) => Cell::Real(*value),
                Cell::Null => Cell::Null,
            })
        }),
    ]
}

/// Reads a length of time: numbers with the units `s`, `m`, `h`, `d` and `w`, such as `1h30m`.
pub fn parse_span(text: &str) -> Option<SignedDuration> {
    let (mut seconds, mut rest) = (0_i64, text.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..end].parse().ok()?;
        let unit = match rest.as_bytes()[end] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[end + 1..];
    }
    Some(SignedDuration::from_secs(seconds))
}

/// Offers a function to the statements of a connection.
pub fn register(connection: &Connection, function: Function) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let Function { name, arguments, call } = function;
    connection.create_scalar_function(name, arguments as i32, flags, move |context: &Context<'_>| {
        let mut cells = Vec::with_capacity(arguments);
        for at in 0..arguments {
            cells.push(cell(context.get_raw(at))?);
        }
        let answer = call(&cells).map_err(|error| SqliteError::UserFunctionError(error.into()))?;
        Ok(output(answer))
    })
}

/// A value of SQLite's. Blobs are not among the values of tables.
pub fn cell(value: ValueRef<'_>) -> rusqlite::Result<Cell<'_>> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Integer(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => Cell::Text(String::from_utf8_lossy(bytes)),
    })
}

/// A value for SQLite.
pub fn output(cell: Cell<'_>) -> ToSqlOutput<'_> {
    match cell {
        Cell::Null => ToSqlOutput::Owned(Value::Null),
        Cell::Integer(value) => ToSqlOutput::Owned(Value::Integer(value)),
        Cell::Real(value) => ToSqlOutput::Owned(Value::Real(value)),
        Cell::Text(std::borrow::Cow::Borrowed(text)) => {
            ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
        }
        Cell::Text(std::borrow::Cow::Owned(text)) => ToSqlOutput::Owned(Value::Text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        let seconds = |text| parse_span(text).map(|span| span.as_secs());
        assert_eq!(seconds("15m"), Some(900));
        assert_eq!(seconds("1h30m"), Some(5_400));
        assert_eq!(seconds("1w"), Some(604_800));
        for bad in ["", "15", "m", "-5m", "1y", "99999999999999999999s", "9223372036854775807w"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
