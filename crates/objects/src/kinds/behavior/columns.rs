//! Columns of kinds: how their objects become rows of Tables.

pub mod age;
pub mod cell;
pub mod custom;
pub mod text;

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, date_column, flag, integer, integer_column, text, text_or,
};
use crate::kinds::behavior::columns::custom::DeclaredColumns;
use crate::tree::{Value, json};

/// The source of a kind's columns.
#[derive(Clone, Debug)]
pub enum TablePrinter {
    BuiltIn(&'static Printer),
    /// A CustomResourceDefinition declares them.
    Custom(Arc<DeclaredColumns>),
}

impl TablePrinter {
    /// `columnDefinitions`.
    pub fn definitions(&self) -> Value {
        match self {
            Self::BuiltIn(printer) => printer.columns.iter().map(Column::definition).collect(),
            Self::Custom(declared) => declared.definitions(),
        }
    }

    /// The cells of a row, one per column.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::BuiltIn(printer) => match printer.cells {
                Some(cells) => cells(object, now),
                None => printer.columns.iter().map(|column| column.value(object, now)).collect(),
            },
            Self::Custom(declared) => declared.cells(object, now),
        }
    }

    /// A row's `conditions`, where the kind has any.
    pub fn conditions(&self, object: &Value) -> Option<Value> {
        match self {
            Self::BuiltIn(printer) => printer.conditions.and_then(|conditions| conditions(object)),
            Self::Custom(_) => None,
        }
    }

    /// The order of the rows of a list, where it is not the list's own.
    pub fn order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        match self {
            Self::BuiltIn(printer) => printer.order,
            Self::Custom(_) => None,
        }
    }

    /// How a list tells its default, where the kind has one.
    pub fn default(&self) -> Option<DefaultOf> {
        match self {
            Self::BuiltIn(printer) => printer.default,
            Self::Custom(_) => None,
        }
    }

    pub fn empty(&self) -> EmptyRows {
        match self {
            Self::BuiltIn(printer) => printer.empty,
            Self::Custom(_) => EmptyRows::List,
        }
    }

    /// The printer of the kind's subresource `scale`.
    pub fn of_scale(&self) -> Self {
        match self {
            Self::BuiltIn(_) => Self::BuiltIn(&SCALE),
            Self::Custom(_) => Self::Custom(Arc::new(DeclaredColumns::of_scale())),
        }
    }
}

/// The function that finds the name of the default object among those of a list.
pub type DefaultOf = fn(&[Value]) -> Option<&str>;

/// How the objects of a kind become rows.
#[derive(Debug)]
pub struct Printer {
    pub columns: &'static [Column],
    /// One cell per column, in their order, where the columns do not say their cells themselves.
    pub cells: Option<fn(&Value, Timestamp) -> Vec<Value>>,
    /// The row's `conditions`, where the kind has any.
    pub conditions: Option<fn(&Value) -> Option<Value>>,
    /// The order of the rows of a list, where it is not the list's own.
    pub order: Option<fn(&Value, &Value) -> Ordering>,
    /// The name of the object among those of a list that is the default, which its row tells.
    pub default: Option<DefaultOf>,
    pub empty: EmptyRows,
}

/// One entry of `columnDefinitions`, and the column's cell in a row.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: &'static str,
    /// `name` on the column that identifies the object, else empty.
    pub format: &'static str,
    pub description: &'static str,
    /// 0 is always shown, 1 only in wide output.
    pub priority: i32,
    pub cell: Cell,
}

/// The cell of a column.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    /// The member at this path, for example `spec.taint.key`; zero of the column's type where it is absent.
    At(&'static str),
    /// The text at a path, or another one where it is absent or empty.
    Or(&'static str, &'static str),
    /// The cell that a function makes of the object.
    Of(fn(&Value, Timestamp) -> Value),
}

impl Column {
    /// The entry of `columnDefinitions`.
    pub fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.type_,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// The column with the member at this path in its cells.
    pub const fn at(self, path: &'static str) -> Self {
        Self { cell: Cell::At(path), ..self }
    }

    /// The variant of [`Column::at`] with another text for an absent or empty one.
    pub const fn or(self, path: &'static str, default: &'static str) -> Self {
        Self { cell: Cell::Or(path, default), ..self }
    }

    /// The column with cells that a function makes.
    pub const fn of(self, cell: fn(&Value, Timestamp) -> Value) -> Self {
        Self { cell: Cell::Of(cell), ..self }
    }

    /// The value of the cell in the row of an object.
    pub fn value(&self, object: &Value, now: Timestamp) -> Value {
        let at = |path: &'static str| path.split('.').fold(object, |value, name| &value[name]);
        match self.cell {
            Cell::Of(cell) => cell(object, now),
            Cell::Or(path, default) => text_or(at(path), default).into(),
            Cell::At(path) => match self.type_ {
                "integer" => integer(at(path)).into(),
                "boolean" => flag(at(path)).into(),
                _ => text(at(path)).into(),
            },
        }
    }
}

/// The value of `rows` in the table of a list without items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyRows {
    List,
    Null,
}

/// Roles, limit ranges, reviews and whatever else upstream has no printer for.
pub static DEFAULT: Printer = Printer { columns: &[NAME, CREATED_AT], empty: EmptyRows::Null, ..PLAIN };

pub const CREATED_AT: Column =
    date_column("Created At", "When the object was created.").of(|object, _| created_at(object).into());

/// RFC 3339 in whole seconds; upstream prints its zero time as a date like any other.
pub fn created_at(object: &Value) -> String {
    match age::timestamp(&object["metadata"]["creationTimestamp"]) {
        Some(created) => jiff::Timestamp::from_second(created.as_second()).unwrap_or(created).to_string(),
        None => "0001-01-01T00:00:00Z".to_owned(),
    }
}

/// Scales of built-in kinds.
static SCALE: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        integer_column("Desired", "How many replicas are wanted.").at("spec.replicas"),
        integer_column("Available", "How many replicas there are.").at("status.replicas"),
        AGE,
    ],
    ..PLAIN
};

/// Device classes and claim templates.
pub static NAME_AND_AGE: Printer = Printer { columns: &[NAME, AGE], ..PLAIN };
