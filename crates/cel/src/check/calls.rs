//! Calls: which of the ways to call a function is meant.

use super::Reference;
use super::checker::Checker;
use crate::functions::{Overload, overloads};
use crate::operators::{CONDITIONAL, LOGICAL_AND, LOGICAL_OR, OPT_SELECT};
use crate::source::{MOST, Problem};
use crate::syntax::ast::{Expr, Id, Literal};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn call(&mut self, id: Id, name: &str, target: Option<Id>, arguments: &[Id]) -> Type {
        match (name, target, arguments) {
            (OPT_SELECT, None, [operand, field]) => return self.optional_field(id, *operand, *field),
            ("optMap" | "optFlatMap", Some(target), [variable, expression]) => {
                return self.mapped(id, name, target, *variable, *expression);
            }
            _ => {}
        }
        if name == "format" {
            self.formatting += 1;
            let result = self.plain_call(id, name, target, arguments);
            self.formatting -= 1;
            return result;
        }
        self.plain_call(id, name, target, arguments)
    }

    fn plain_call(&mut self, id: Id, name: &str, target: Option<Id>, given: &[Id]) -> Type {
        let mut arguments: Vec<Type> = given.iter().map(|argument| self.check(*argument)).collect();
        let Some(target) = target else {
            return self.resolve_at(id, name.strip_prefix('.').unwrap_or(name), false, &arguments, given);
        };
        // `sets.contains` is one name, `list.contains` a list and a name.
        if let Some(before) = self.ast.dotted(target) {
            let whole = format!("{before}.{name}");
            let whole = whole.strip_prefix('.').unwrap_or(&whole);
            if overloads(whole).is_some() && self.environment.has_function(whole) {
                return self.resolve_at(id, whole, true, &arguments, given);
            }
        }
        arguments.insert(0, self.check(target));
        self.resolve_at(id, name, false, &arguments, given)
    }

    /// Resolves the call and keeps what it refers to.
    fn resolve_at(&mut self, id: Id, name: &str, qualified: bool, arguments: &[Type], at: &[Id]) -> Type {
        let member = arguments.len() > at.len();
        let (result, overloads) = self.resolve(id, name, member, arguments, at);
        self.refer(id, Reference::Function { name: name.into(), qualified, overloads });
        result
    }

    fn resolve(
        &mut self,
        id: Id,
        name: &str,
        member: bool,
        arguments: &[Type],
        at: &[Id],
    ) -> (Type, Vec<&'static Overload>) {
        let known = overloads(name).filter(|_| self.environment.has_function(name));
        let Some(known) = known else { return (self.undeclared(id, name), Vec::new()) };
        if !member && matches!(name, LOGICAL_AND | LOGICAL_OR) {
            return (self.logical(arguments, at), Vec::new());
        }
        let mut result: Option<Type> = None;
        let mut chosen = Vec::new();
        let fitting = known.iter().filter(|known| known.member == member);
        for overload in fitting.filter(|known| known.arguments.len() == arguments.len()) {
            let mut fresh = Vec::new();
            let wanted: Vec<Type> =
                overload.arguments.iter().map(|of| self.freshen(of, &mut fresh)).collect();
            let becomes = self.freshen(&overload.result, &mut fresh);
            if !self.known.fit_all(arguments, &wanted) {
                continue;
            }
            chosen.push(overload);
            let becomes = self.known.resolve(&becomes);
            result = Some(match result {
                None => becomes,
                Some(so_far) if so_far.is_unknown() || so_far == becomes => so_far,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(result) => (result, chosen),
            None => (self.unfitting(id, name, member, arguments), Vec::new()),
        }
    }

    fn unfitting(&mut self, id: Id, name: &str, member: bool, arguments: &[Type]) -> Type {
        let shown: Vec<String> = arguments.iter().map(|of| self.known.settle(of).short()).collect();
        let applied = match &shown[..] {
            [target, arguments @ ..] if member => format!("{target}.({})", arguments.join(", ")),
            all => format!("({})", all.join(", ")),
        };
        self.tell(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
        Type::Error
    }

    fn logical(&mut self, arguments: &[Type], at: &[Id]) -> Type {
        let mut result = Type::Bool;
        for (is, argument) in arguments.iter().zip(at) {
            if !self.known.fits(is, &Type::Bool) {
                self.mismatch(*argument, &Type::Bool, is);
                result = Type::Error;
            }
        }
        result
    }

    /// The type with new unknowns for its own, the same one for the same.
    fn freshen(&mut self, of: &Type, fresh: &mut Vec<(Type, Type)>) -> Type {
        match of {
            Type::Param(_) => {
                if let Some((_, is)) = fresh.iter().find(|(known, _)| known == of) {
                    return is.clone();
                }
                let is = self.known.fresh();
                fresh.push((of.clone(), is.clone()));
                is
            }
            Type::Applied(applied) if applied.open => {
                let to = applied.to.iter().map(|part| self.freshen(part, fresh)).collect();
                Type::applied(applied.of.clone(), to)
            }
            _ => of.clone(),
        }
    }

    fn optional_field(&mut self, id: Id, operand: Id, field: Id) -> Type {
        let Expr::Literal(Literal::String(name)) = self.ast.expr(field) else {
            self.tell(field, "unsupported optional field selection".to_owned());
            return Type::Error;
        };
        let found = self.field(id, operand, name, true);
        self.known.resolve(&found)
    }

    /// `target.optMap(variable, expression)`: upstream's macro makes a conditional of it, with the target in it twice.
    fn mapped(&mut self, id: Id, name: &str, target: Id, variable: Id, expression: Id) -> Type {
        let Expr::Ident(variable) = self.ast.expr(variable) else { return Type::Error };
        let before = self.problems.len();
        let of = self.check(target);
        let again: Vec<Problem> = self.problems[before..].to_vec();
        let (has, _) = self.resolve(id, "hasValue", true, std::slice::from_ref(&of), &[]);
        // Upstream tells what is wrong with the target twice; of too many, it tells the first.
        if self.problems.len() < MOST {
            self.problems.extend(again);
        }
        let (value, _) = self.resolve(id, "value", true, &[of], &[]);
        let result = self.check_with(variable, value, expression);
        let result = self.known.resolve(&result);
        let result = match name {
            "optMap" => self.resolve(id, "optional.of", false, &[result], &[]).0,
            _ => result,
        };
        let (none, _) = self.resolve(id, "optional.none", false, &[], &[]);
        self.resolve(id, CONDITIONAL, false, &[has, result, none], &[]).0
    }
}
