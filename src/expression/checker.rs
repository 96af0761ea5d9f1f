//! Finds the type of every part of an expression, as cel-go's `checker/checker.go` does, and tells what does not fit.

use std::collections::BTreeSet;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, StructExpr};

use super::Checked;
use super::environment::{Environment, Field};
use super::literals;
use super::source::Found;
use super::substitution::{Substitution, most_general};
use super::types::{Generic, Type};

pub struct Checker<'e> {
    pub(super) environment: &'e Environment,
    pub(super) types: Substitution,
    /// Variables of loops, the innermost last.
    locals: Vec<(String, Type)>,
    pub(super) found: Vec<Found>,
    uses: BTreeSet<String>,
    /// How many calls of `format` are around, whose lists may hold anything.
    pub(super) formatting: usize,
    /// Elements of lists and maps that have to be of one type.
    together: Vec<Vec<(u64, Type)>>,
}

impl<'e> Checker<'e> {
    pub fn new(environment: &'e Environment) -> Self {
        Self {
            environment,
            types: Substitution::default(),
            locals: Vec::new(),
            found: Vec::new(),
            uses: BTreeSet::new(),
            formatting: 0,
            together: Vec::new(),
        }
    }

    /// What the expression is, or all that is wrong with it.
    pub fn finish(mut self, expression: &IdedExpr, result: Type) -> Result<Checked, Vec<Found>> {
        if self.found.is_empty() {
            literals::check(expression, &mut self.found);
            for elements in std::mem::take(&mut self.together) {
                self.check_together(&elements);
            }
        }
        if self.found.is_empty() {
            Ok(Checked { result: self.types.settle(&result), uses: self.uses.into_iter().collect() })
        } else {
            Err(self.found)
        }
    }

    /// Upstream looks at this after all else.
    fn check_together(&mut self, elements: &[(u64, Type)]) {
        let mut elements = elements.iter().map(|(id, is)| (*id, self.types.settle(is)));
        let Some((_, first)) = elements.next() else { return };
        let odd: Vec<_> = elements.filter(|(_, is)| *is != first).take(1).collect();
        for (id, is) in odd {
            self.mismatch(id, &first, &is);
        }
    }

    pub(super) fn tell(&mut self, id: u64, message: String) {
        self.found.push(Found { id, message });
    }

    pub(super) fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.tell(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    pub(super) fn mismatch(&mut self, id: u64, wanted: &Type, is: &Type) {
        self.tell(id, format!("expected type '{}' but found '{}'", wanted.short(), is.short()));
    }

    pub fn check(&mut self, expression: &IdedExpr) -> Type {
        let id = expression.id;
        match &expression.expr {
            Expr::Unspecified => Type::Error,
            Expr::Literal(value) => match value {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::String,
                LiteralValue::UInt(_) => Type::Uint,
            },
            Expr::Ident(name) => self.variable(name).unwrap_or_else(|| self.undeclared(id, name)),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(id, call),
            Expr::List(list) => {
                let optional = |index| list.optional_indices.contains(&index);
                let mut elements = Vec::new();
                for (index, element) in list.elements.iter().enumerate() {
                    let is = self.check(element);
                    elements.push((element.id, self.element(element.id, is, optional(index))));
                }
                Type::list(self.joined(elements))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    keys.push((entry.key.id, self.check(&entry.key)));
                    let is = self.check(&entry.value);
                    values.push((entry.value.id, self.element(entry.value.id, is, entry.optional)));
                }
                let keys = self.joined(keys);
                Type::map(keys, self.joined(values))
            }
            Expr::Struct(new) => self.new_struct(id, new),
            Expr::Comprehension(all) => self.comprehension(all),
        }
    }

    /// The variable of this name; a dot before it passes those of loops by.
    fn variable(&mut self, name: &str) -> Option<Type> {
        let local = self.locals.iter().rev().find(|(known, _)| known == name);
        if let Some((_, is)) = local {
            return Some(is.clone());
        }
        self.global(name.strip_prefix('.').unwrap_or(name))
    }

    fn global(&mut self, name: &str) -> Option<Type> {
        let found = self.environment.variable(name);
        if found.is_some() && !self.uses.contains(name) {
            self.uses.insert(name.to_owned());
        }
        found
    }

    fn select(&mut self, whole: &IdedExpr, select: &SelectExpr) -> Type {
        if let Some(found) = self.qualified(whole) {
            return found;
        }
        let found = self.field(whole.id, &select.operand, &select.field, false);
        if select.test { Type::Bool } else { self.types.resolve(&found) }
    }

    /// A variable whose name has dots.
    fn qualified(&mut self, whole: &IdedExpr) -> Option<Type> {
        let name = dotted(whole)?;
        let first = name.split('.').find(|part| !part.is_empty())?;
        if !name.starts_with('.') && self.locals.iter().any(|(known, _)| known == first) {
            return None;
        }
        self.global(name.strip_prefix('.').unwrap_or(&name))
    }

    pub(super) fn field(&mut self, id: u64, operand: &IdedExpr, name: &str, optional: bool) -> Type {
        let is = self.check(operand);
        let is = self.types.resolve(&is);
        let (of, was_optional) = is.as_optional().map_or((&is, false), |of| (of, true));
        let found = match of {
            Type::Applied(applied) if applied.of == Generic::Map => applied.to[1].clone(),
            Type::Struct(of) => self.field_of(id, of, name),
            Type::Param(_) => {
                self.types.fits(&Type::Dyn, of);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                self.tell(id, format!("type '{}' does not support field selection", of.short()));
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(found) } else { found }
    }

    fn field_of(&mut self, id: u64, of: &str, name: &str) -> Type {
        match self.environment.field(of, name) {
            Field::Found(is) => return is,
            Field::Undefined => self.tell(id, format!("undefined field '{name}'")),
            Field::OfNothing => self.tell(id, format!("unexpected failed resolution of '{of}'")),
        }
        Type::Error
    }

    /// What an element adds to its list or map.
    fn element(&mut self, id: u64, is: Type, optional: bool) -> Type {
        if !optional {
            return is;
        }
        if let Some(of) = is.as_optional() {
            return of.clone();
        }
        if !is.is_unknown() {
            self.mismatch(id, &Type::optional(is.clone()), &is);
        }
        is
    }

    /// The type of several, or whatever, if they have none in common.
    fn joined(&mut self, elements: Vec<(u64, Type)>) -> Type {
        let mut joined: Option<Type> = None;
        for (_, is) in &elements {
            joined = Some(match joined {
                None => is.clone(),
                Some(so_far) if self.types.fits(&so_far, is) => most_general(&so_far, is).clone(),
                Some(_) => Type::Dyn,
            });
        }
        if elements.len() > 1 && self.formatting == 0 {
            self.together.push(elements);
        }
        joined.unwrap_or_else(|| self.types.fresh())
    }

    fn new_struct(&mut self, id: u64, new: &StructExpr) -> Type {
        let name = new.type_name.strip_prefix('.').unwrap_or(&new.type_name);
        let Some(is) = self.environment.named(name) else { return self.undeclared(id, &new.type_name) };
        let is = match is {
            Type::Struct(_) | Type::Timestamp | Type::Duration => is,
            _ => {
                self.tell(id, format!("'{name}' is not a message type"));
                Type::Error
            }
        };
        for entry in &new.entries {
            let EntryExpr::StructField(field) = &entry.expr else { continue };
            let value = self.check(&field.value);
            let wanted = self.field_of(entry.id, name, &field.field);
            let value = self.element(field.value.id, value, field.optional);
            if !self.types.fits(&wanted, &value) {
                let (name, wanted, value) = (&field.field, wanted.short(), value.short());
                let message =
                    format!("expected type of field '{name}' is '{wanted}' but provided type is '{value}'");
                self.tell(entry.id, message);
            }
        }
        is
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Type {
        let range = self.check(&all.iter_range);
        let range = self.types.resolve(&range);
        let so_far = self.check(&all.accu_init);
        let (first, second) = match &range {
            Type::Applied(of) if of.of == Generic::List && all.iter_var2.is_some() => {
                (Type::Int, of.to[0].clone())
            }
            Type::Applied(of) if of.of == Generic::List => (of.to[0].clone(), Type::Dyn),
            Type::Applied(of) if of.of == Generic::Map => (of.to[0].clone(), of.to[1].clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.types.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    range.short()
                );
                self.tell(all.iter_range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let outside = self.locals.len();
        self.locals.push((all.accu_var.clone(), so_far.clone()));
        let around = self.locals.len();
        self.locals.push((all.iter_var.clone(), first));
        if let Some(name) = &all.iter_var2 {
            self.locals.push((name.clone(), second));
        }
        for (part, wanted) in [(&all.loop_cond, &Type::Bool), (&all.loop_step, &so_far)] {
            let is = self.check(part);
            if !self.types.fits(wanted, &is) {
                self.mismatch(part.id, wanted, &is);
            }
        }
        self.locals.truncate(around);
        let result = self.check(&all.result);
        self.locals.truncate(outside);
        self.types.resolve(&result)
    }

    /// Checks an expression in which a name stands for something.
    pub(super) fn check_with(&mut self, name: &str, is: Type, expression: &IdedExpr) -> Type {
        self.locals.push((name.to_owned(), is));
        let result = self.check(expression);
        self.locals.pop();
        result
    }
}

/// `a.b.c`, if that is all the expression says.
pub(super) fn dotted(expression: &IdedExpr) -> Option<String> {
    let (mut at, mut parts) = (expression, Vec::new());
    loop {
        match &at.expr {
            Expr::Ident(name) => {
                parts.push(&**name);
                parts.reverse();
                return Some(parts.join("."));
            }
            Expr::Select(select) if !select.test => {
                parts.push(&*select.field);
                at = &select.operand;
            }
            _ => return None,
        }
    }
}
