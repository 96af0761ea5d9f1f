//! Texts that functions could not read, seen before they are called (cel-go `cel/validator.go`).

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use super::source::Found;
use crate::gotext::parse_duration;

pub fn check(expression: &IdedExpr, found: &mut Vec<Found>) {
    let mut below = |inner: &IdedExpr| check(inner, found);
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Select(select) => below(&select.operand),
        Expr::List(list) => list.elements.iter().for_each(below),
        Expr::Map(map) => map.entries.iter().for_each(|entry| entry_of(&entry.expr, &mut below)),
        Expr::Struct(new) => new.entries.iter().for_each(|entry| entry_of(&entry.expr, &mut below)),
        Expr::Comprehension(all) => {
            let parts = [&all.iter_range, &all.accu_init, &all.loop_cond, &all.loop_step, &all.result];
            parts.into_iter().for_each(below);
        }
        Expr::Call(call) => {
            call.target.iter().for_each(|target| below(target));
            call.args.iter().for_each(below);
            let first = call.args.first().filter(|_| call.target.is_none());
            if let Some(IdedExpr { id, expr: Expr::Literal(LiteralValue::String(text)) }) = first {
                let name = &*call.func_name;
                let readable = match name {
                    "duration" => is_duration(text.inner()),
                    "timestamp" => is_timestamp(text.inner()),
                    _ => true,
                };
                if !readable {
                    found.push(Found { id: *id, message: format!("invalid {name} argument") });
                }
            }
        }
    }
}

fn entry_of(entry: &EntryExpr, below: &mut impl FnMut(&IdedExpr)) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            below(&entry.key);
            below(&entry.value);
        }
        EntryExpr::StructField(field) => below(&field.value),
    }
}

/// Go's `time.ParseDuration`.
fn is_duration(text: &str) -> bool {
    parse_duration(text).is_ok()
}

fn is_timestamp(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}
