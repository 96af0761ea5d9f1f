//! Texts that functions could not read, seen before they are called (cel-go `cel/validator.go`, `ext/formatting.go`).

use crate::library::conversions;
use crate::library::formatting::{self, ArgumentTypes, unprintable};
use crate::pattern;
use crate::source::Problem;
use crate::syntax::ast::{Ast, Expr, Id, Literal};
use crate::types::{Generic, Type};
use crate::value::Value;

/// Errors in the literals of a tree are added to `problems`; `types` are those of the tree's nodes.
pub fn check(ast: &Ast, types: &[Type], problems: &mut Vec<Problem>) {
    Walk { ast, types, problems }.below(ast.root);
}

struct Walk<'a> {
    ast: &'a Ast,
    types: &'a [Type],
    problems: &'a mut Vec<Problem>,
}

impl Walk<'_> {
    fn below(&mut self, id: Id) {
        let ast = self.ast;
        if let Expr::Call { function, target, arguments } = ast.expr(id) {
            self.argument(function, arguments);
            if let (Some(target), "format", [list]) = (target, function.as_str(), &arguments[..]) {
                self.format(id, *target, *list);
            }
        }
        ast.expr(id).children().into_iter().for_each(|child| self.below(child));
    }

    fn argument(&mut self, function: &str, arguments: &[Id]) {
        let Some(at) = arguments.first() else { return };
        let Expr::Literal(literal) = self.ast.expr(*at) else { return };
        let readable = match (function, literal) {
            ("duration" | "timestamp", Literal::String(text)) => {
                matches!(conversions::call(function, &Value::string(text.as_str())), Some(Ok(_)))
            }
            ("timestamp", Literal::Int(seconds)) => {
                matches!(conversions::call(function, &Value::Int(*seconds)), Some(Ok(_)))
            }
            ("matches", Literal::String(text)) => pattern::check(text).is_ok(),
            _ => true,
        };
        if !readable {
            let why = format!("invalid {function} argument");
            self.problems.push(Problem::at(self.ast.start(*at), why));
        }
    }

    fn format(&mut self, id: Id, target: Id, list: Id) {
        let (Expr::Literal(Literal::String(pattern)), Expr::List { elements, .. }) =
            (self.ast.expr(target), self.ast.expr(list))
        else {
            return;
        };
        let known = Arguments { ast: self.ast, types: self.types, elements };
        if let Err((place, why)) = formatting::check(pattern, elements.len(), &known) {
            self.problems.push(Problem::at(self.ast.start(place.unwrap_or(id)), why));
        }
    }
}

struct Arguments<'a> {
    ast: &'a Ast,
    types: &'a [Type],
    elements: &'a [Id],
}

impl ArgumentTypes for Arguments<'_> {
    type Place = Id;

    fn problem(&self, argument: usize, letter: char) -> Option<(Id, String)> {
        let id = self.elements[argument];
        let odd = if letter == 's' { self.unprintable(id) } else { (!self.fits(id, letter)).then_some(id) }?;
        let of = self.types[odd as usize].to_string();
        Some((odd, unprintable(letter, of.split('(').next().unwrap_or_default())))
    }
}

impl Arguments<'_> {
    fn fits(&self, id: Id, letter: char) -> bool {
        match (&self.types[id as usize], letter) {
            (Type::Dyn, _)
            | (Type::Int | Type::Uint, 'd' | 'b' | 'o' | 'x' | 'X')
            | (Type::Double | Type::String, 'f' | 'e')
            | (Type::Bool, 'b')
            | (Type::String | Type::Bytes, 'x' | 'X') => true,
            (of, 's') => match of {
                Type::Applied(applied) => !matches!(applied.of, Generic::Opaque(_)),
                Type::Struct(_) | Type::Any | Type::Error | Type::Param(_) => false,
                _ => true,
            },
            _ => false,
        }
    }

    /// The part of an argument that cannot be printed.
    fn unprintable(&self, id: Id) -> Option<Id> {
        if !self.fits(id, 's') {
            return Some(id);
        }
        match self.ast.expr(id) {
            Expr::List { elements, .. } => elements.iter().find_map(|element| self.unprintable(*element)),
            Expr::Map(entries) => {
                let parts = entries.iter().flat_map(|entry| [entry.key, entry.value]);
                parts.into_iter().find_map(|part| self.unprintable(part))
            }
            _ => None,
        }
    }
}
