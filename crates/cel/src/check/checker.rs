//! Names, fields, lists, maps and loops.

use std::collections::BTreeSet;

use smol_str::SmolStr;

use super::substitution::{Substitution, most_general};
use super::{Checked, Reference, literals};
use crate::environment::{Environment, Field};
use crate::source::Problem;
use crate::syntax::ast::{Ast, Comprehension, Expr, Id, Literal, MapEntry};
use crate::types::{Generic, Type};

pub struct Checker<'e> {
    pub(super) environment: &'e Environment,
    pub(super) ast: &'e Ast,
    pub(super) known: Substitution,
    /// Variables of loops, the innermost last.
    locals: Vec<(SmolStr, Type)>,
    pub(super) problems: Vec<Problem>,
    uses: BTreeSet<SmolStr>,
    /// How many calls of `format` are around, whose lists may hold anything.
    pub(super) formatting: usize,
    /// Elements of lists and maps that have to be of one type.
    together: Vec<Vec<(Id, Type)>>,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
}

/// The expression with the types of its nodes, or all its errors.
pub fn check(ast: Ast, environment: &Environment) -> Result<Checked, Vec<Problem>> {
    let mut checker = Checker {
        environment,
        ast: &ast,
        known: Substitution::default(),
        locals: Vec::new(),
        problems: Vec::new(),
        uses: BTreeSet::new(),
        formatting: 0,
        together: Vec::new(),
        types: vec![Type::Dyn; ast.len()],
        references: vec![None; ast.len()],
    };
    let result = checker.check(ast.root);
    if checker.problems.is_empty() {
        checker.settle();
        literals::check(&ast, &checker.types, &mut checker.problems);
        checker.check_together();
    }
    let Checker { known, problems, uses, types, references, .. } = checker;
    if !problems.is_empty() {
        return Err(problems);
    }
    let result = known.settle(&result);
    Ok(Checked { ast, result, uses, types, references })
}

impl Checker<'_> {
    /// Type variables become what is known of them, or else `dyn`.
    fn settle(&mut self) {
        let known = &self.known;
        self.types.iter_mut().filter(|is| is.is_open()).for_each(|is| *is = known.settle(is));
    }

    /// Upstream looks at this after all else.
    fn check_together(&mut self) {
        for elements in std::mem::take(&mut self.together) {
            let mut elements = elements.iter().map(|(id, is)| (*id, self.known.settle(is)));
            let Some((_, first)) = elements.next() else { continue };
            let odd: Vec<_> = elements.filter(|(_, is)| *is != first).take(1).collect();
            for (id, is) in odd {
                self.mismatch(id, &first, &is);
            }
        }
    }

    pub(super) fn tell(&mut self, id: Id, message: String) {
        self.problems.push(Problem::at(self.ast.start(id), message));
    }

    pub(super) fn undeclared(&mut self, id: Id, name: &str) -> Type {
        self.tell(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    pub(super) fn mismatch(&mut self, id: Id, wanted: &Type, is: &Type) {
        self.tell(id, format!("expected type '{}' but found '{}'", wanted.short(), is.short()));
    }

    pub(super) fn refer(&mut self, id: Id, to: Reference) {
        self.references[id as usize] = Some(to);
    }

    pub(super) fn check(&mut self, id: Id) -> Type {
        let is = self.find(id);
        self.types[id as usize] = is.clone();
        is
    }

    fn find(&mut self, id: Id) -> Type {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Unspecified => Type::Error,
            Expr::Literal(value) => type_of(value),
            Expr::Ident(name) => self.variable(id, name),
            Expr::Select { operand, field, test } => self.select(id, *operand, field, *test),
            Expr::Call { function, target, arguments } => self.call(id, function, *target, arguments),
            Expr::List { elements, optional } => {
                let all = elements.iter().zip(optional).map(|(element, optional)| {
                    let is = self.check(*element);
                    (*element, self.element(*element, is, *optional))
                });
                let all = all.collect();
                Type::list(self.joined(all))
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Struct { name, .. } => self.new_struct(id, name),
            Expr::Comprehension(all) => self.comprehension(all),
        }
    }

    fn map(&mut self, entries: &[MapEntry]) -> Type {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for entry in entries {
            keys.push((entry.key, self.check(entry.key)));
            let is = self.check(entry.value);
            values.push((entry.value, self.element(entry.value, is, entry.optional)));
        }
        let keys = self.joined(keys);
        Type::map(keys, self.joined(values))
    }

    /// The variable of this name; a dot before it passes those of loops by.
    fn variable(&mut self, id: Id, name: &str) -> Type {
        let local = self.locals.iter().rev().find(|(known, _)| known == name);
        if let Some((_, is)) = local {
            let is = is.clone();
            self.refer(id, Reference::Local);
            return is;
        }
        match self.global(id, name.strip_prefix('.').unwrap_or(name)) {
            Some(is) => is,
            None => self.undeclared(id, name),
        }
    }

    fn global(&mut self, id: Id, name: &str) -> Option<Type> {
        if let Some(is) = self.environment.global(name) {
            self.uses.insert(name.into());
            self.refer(id, Reference::Variable(name.into()));
            return Some(is);
        }
        let is = self.environment.named(name)?;
        self.uses.insert(name.into());
        self.refer(id, Reference::Type(is.clone()));
        Some(Type::kind(is))
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) -> Type {
        if let Some(found) = self.qualified(id) {
            return found;
        }
        let found = self.field(id, operand, field, false);
        if test { Type::Bool } else { self.known.resolve(&found) }
    }

    /// A variable whose name has dots.
    fn qualified(&mut self, id: Id) -> Option<Type> {
        let name = self.ast.dotted(id)?;
        let first = name.split('.').find(|part| !part.is_empty())?;
        if !name.starts_with('.') && self.locals.iter().any(|(known, _)| known == first) {
            return None;
        }
        self.global(id, name.strip_prefix('.').unwrap_or(&name))
    }

    pub(super) fn field(&mut self, id: Id, operand: Id, name: &str, optional: bool) -> Type {
        let is = self.check(operand);
        let is = self.known.resolve(&is);
        let (of, was_optional) = is.as_optional().map_or((&is, false), |of| (of, true));
        let found = match of {
            Type::Applied(applied) if applied.of == Generic::Map => applied.to[1].clone(),
            Type::Struct(of) => self.field_of(id, of, name),
            Type::Param(_) => {
                self.known.fits(&Type::Dyn, of);
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

    fn field_of(&mut self, id: Id, of: &str, name: &str) -> Type {
        match self.environment.field(of, name) {
            Field::Found(is) => return is,
            Field::Undefined => self.tell(id, format!("undefined field '{name}'")),
            Field::OfNothing => self.tell(id, format!("unexpected failed resolution of '{of}'")),
        }
        Type::Error
    }

    /// The type that an element gives to its list, map or struct; that of an optional element is the type within.
    fn element(&mut self, id: Id, is: Type, optional: bool) -> Type {
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

    /// The type that several elements have in common, or else `dyn`; a type variable if there are no elements.
    fn joined(&mut self, elements: Vec<(Id, Type)>) -> Type {
        let mut joined: Option<Type> = None;
        for (_, is) in &elements {
            joined = Some(match joined {
                None => is.clone(),
                Some(so_far) if self.known.fits(&so_far, is) => most_general(&so_far, is).clone(),
                Some(_) => Type::Dyn,
            });
        }
        if elements.len() > 1 && self.formatting == 0 {
            self.together.push(elements);
        }
        joined.unwrap_or_else(|| self.known.fresh())
    }

    fn new_struct(&mut self, id: Id, type_name: &str) -> Type {
        let ast = self.ast;
        let Expr::Struct { fields, .. } = ast.expr(id) else { return Type::Error };
        let name = type_name.strip_prefix('.').unwrap_or(type_name);
        let Some(is) = self.environment.named(name) else { return self.undeclared(id, type_name) };
        let is = match is {
            Type::Struct(_) | Type::Timestamp | Type::Duration => is,
            _ => {
                self.tell(id, format!("'{name}' is not a message type"));
                Type::Error
            }
        };
        for field in fields {
            let value = self.check(field.value);
            let wanted = self.field_of(field.at, name, &field.name);
            let value = self.element(field.value, value, field.optional);
            if !self.known.fits(&wanted, &value) {
                let (name, wanted, value) = (&field.name, wanted.short(), value.short());
                let message =
                    format!("expected type of field '{name}' is '{wanted}' but provided type is '{value}'");
                self.tell(field.at, message);
            }
        }
        is
    }

    fn comprehension(&mut self, all: &Comprehension) -> Type {
        let range = self.check(all.range);
        let range = self.known.resolve(&range);
        let so_far = self.check(all.init);
        let (first, second) = self.variables(all, &range);
        let outside = self.locals.len();
        self.locals.push((all.accumulator.clone(), so_far.clone()));
        let around = self.locals.len();
        self.locals.push((all.first.clone(), first));
        if let Some(name) = &all.second {
            self.locals.push((name.clone(), second));
        }
        for (part, wanted) in [(all.condition, &Type::Bool), (all.step, &so_far)] {
            let is = self.check(part);
            if !self.known.fits(wanted, &is) {
                self.mismatch(part, wanted, &is);
            }
        }
        self.locals.truncate(around);
        let result = self.check(all.result);
        self.locals.truncate(outside);
        self.known.resolve(&result)
    }

    /// The types of a loop's variables.
    fn variables(&mut self, all: &Comprehension, range: &Type) -> (Type, Type) {
        match range {
            Type::Applied(of) if of.of == Generic::List && all.second.is_some() => {
                (Type::Int, of.to[0].clone())
            }
            Type::Applied(of) if of.of == Generic::List => (of.to[0].clone(), Type::Dyn),
            Type::Applied(of) if of.of == Generic::Map => (of.to[0].clone(), of.to[1].clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.known.fits(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    range.short()
                );
                self.tell(all.range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    /// Checks an expression in which a name stands for something.
    pub(super) fn check_with(&mut self, name: &str, is: Type, expression: Id) -> Type {
        self.locals.push((name.into(), is));
        let result = self.check(expression);
        self.locals.pop();
        result
    }
}

fn type_of(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
