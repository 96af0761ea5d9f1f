//! Columns of kinds: how their objects become rows of Tables.

pub mod age;
pub mod cell;
pub mod custom;
pub mod text;

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age as age_cell, cells, date_column, integer_column, name,
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
            Self::BuiltIn(printer) => (printer.cells)(object, now),
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
    /// One cell per column, in their order.
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// The row's `conditions`, where the kind has any.
    pub conditions: Option<fn(&Value) -> Option<Value>>,
    /// The order of the rows of a list, where it is not the list's own.
    pub order: Option<fn(&Value, &Value) -> Ordering>,
    /// The name of the object among those of a list that is the default, which its row tells.
    pub default: Option<DefaultOf>,
    pub empty: EmptyRows,
}

/// One entry of `columnDefinitions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: &'static str,
    /// `name` on the column that identifies the object, else empty.
    pub format: &'static str,
    pub description: &'static str,
    /// 0 is always shown, 1 only in wide output.
    pub priority: i32,
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
}

/// The value of `rows` in the table of a list without items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyRows {
    List,
    Null,
}

/// Roles, limit ranges, reviews and whatever else upstream has no printer for.
pub static DEFAULT: Printer = Printer {
    columns: &[NAME, CREATED_AT],
    cells: |object, _| cells![name(object), created_at(object)],
    empty: EmptyRows::Null,
    ..PLAIN
};

pub const CREATED_AT: Column = date_column("Created At", "When the object was created.");

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
        integer_column("Desired", "How many replicas are wanted."),
        integer_column("Available", "How many replicas there are."),
        AGE,
    ],
    cells: |scale, now| {
        let replicas = |part: &str| scale[part]["replicas"].as_i64().unwrap_or_default();
        cells![name(scale), replicas("spec"), replicas("status"), age_cell(scale, now)]
    },
    ..PLAIN
};

/// Device classes and claim templates.
pub static NAME_AND_AGE: Printer = Printer {
    columns: &[NAME, AGE],
    cells: |object, now| cells![name(object), age_cell(object, now)],
    ..PLAIN
};
