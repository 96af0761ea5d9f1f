//! Calls: which of the ways to call a function is meant.

use cel::common::ast::operators::{CONDITIONAL, LOGICAL_AND, LOGICAL_OR, OPT_SELECT};
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::checker::{Checker, dotted};
use super::functions::overloads;
use super::source::{Found, MOST};
use super::types::Type;

impl Checker<'_> {
    pub(super) fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        let name = &*call.func_name;
        match (name, &call.target, &call.args[..]) {
            (OPT_SELECT, None, [operand, field]) => return self.optional_field(id, operand, field),
            ("optMap" | "optFlatMap", Some(target), [variable, expression]) => {
                return self.mapped(id, name, target, variable, expression);
            }
            _ => {}
        }
        if name == "format" {
            self.formatting += 1;
            let result = self.plain_call(id, call);
            self.formatting -= 1;
            return result;
        }
        self.plain_call(id, call)
    }

    fn plain_call(&mut self, id: u64, call: &CallExpr) -> Type {
        let name = &*call.func_name;
        let mut arguments: Vec<Type> = call.args.iter().map(|argument| self.check(argument)).collect();
        let Some(target) = &call.target else {
            return self.resolve(id, name, false, &arguments, &call.args);
        };
        // `sets.contains` is one name, `list.contains` a list and a name.
        if let Some(before) = dotted(target) {
            let whole = format!("{before}.{name}");
            let whole = whole.strip_prefix('.').unwrap_or(&whole);
            if overloads(whole).is_some() && self.environment.has_function(whole) {
                return self.resolve(id, whole, false, &arguments, &call.args);
            }
        }
        arguments.insert(0, self.check(target));
        self.resolve(id, name, true, &arguments, &call.args)
    }

    fn resolve(&mut self, id: u64, name: &str, member: bool, arguments: &[Type], at: &[IdedExpr]) -> Type {
        let known = overloads(name).filter(|_| self.environment.has_function(name));
        let Some(known) = known else { return self.undeclared(id, name) };
        if !member && matches!(name, LOGICAL_AND | LOGICAL_OR) {
            return self.logical(arguments, at);
        }
        let mut result: Option<Type> = None;
        let fitting = known.iter().filter(|known| known.member == member);
        for overload in fitting.filter(|known| known.arguments.len() == arguments.len()) {
            let mut fresh = Vec::new();
            let wanted: Vec<Type> =
                overload.arguments.iter().map(|of| self.freshen(of, &mut fresh)).collect();
            let becomes = self.freshen(&overload.result, &mut fresh);
            if !self.types.fit_all(arguments, &wanted) {
                continue;
            }
            let becomes = self.types.resolve(&becomes);
            result = Some(match result {
                None => becomes,
                Some(so_far) if so_far.is_unknown() || so_far == becomes => so_far,
                Some(_) => Type::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> = arguments.iter().map(|of| self.types.settle(of).short()).collect();
            let applied = match &shown[..] {
                [target, arguments @ ..] if member => format!("{target}.({})", arguments.join(", ")),
                all => format!("({})", all.join(", ")),
            };
            self.tell(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
            Type::Error
        })
    }

    fn logical(&mut self, arguments: &[Type], at: &[IdedExpr]) -> Type {
        let mut result = Type::Bool;
        for (is, argument) in arguments.iter().zip(at) {
            if !self.types.fits(is, &Type::Bool) {
                self.mismatch(argument.id, &Type::Bool, is);
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
                let is = self.types.fresh();
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

    fn optional_field(&mut self, id: u64, operand: &IdedExpr, field: &IdedExpr) -> Type {
        let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
            self.tell(field.id, "unsupported optional field selection".to_owned());
            return Type::Error;
        };
        let found = self.field(id, operand, name.inner(), true);
        self.types.resolve(&found)
    }

    /// `target.optMap(variable, expression)`: upstream's macro makes a conditional of it, with the target in it twice.
    fn mapped(
        &mut self,
        id: u64,
        name: &str,
        target: &IdedExpr,
        variable: &IdedExpr,
        expression: &IdedExpr,
    ) -> Type {
        let Expr::Ident(variable) = &variable.expr else {
            self.tell(variable.id, format!("{name}() variable name must be a simple identifier"));
            return Type::Error;
        };
        let before = self.found.len();
        let of = self.check(target);
        let again: Vec<Found> = self.found[before..].to_vec();
        let has = self.resolve(id, "hasValue", true, std::slice::from_ref(&of), &[]);
        // Upstream tells what is wrong with the target twice; of too many, it tells the first.
        if self.found.len() < MOST {
            self.found.extend(again);
        }
        let value = self.resolve(id, "value", true, &[of], &[]);
        let result = self.check_with(variable, value, expression);
        let result = self.types.resolve(&result);
        let result = match name {
            "optMap" => self.resolve(id, "optional.of", false, &[result], &[]),
            _ => result,
        };
        let none = self.resolve(id, "optional.none", false, &[], &[]);
        self.resolve(id, CONDITIONAL, false, &[has, result, none], &[])
    }
}
