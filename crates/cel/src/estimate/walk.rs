//! The cost of an expression at worst, found on a walk through its checked tree.

use smol_str::SmolStr;

use super::calls::Call;
use super::range::Range;
use super::sizes::{ElementSizes, Local, Part, Walk};
use crate::check::Reference;
use crate::decl::{Decl, Kind};
use crate::functions::Overload;
use crate::operators;
use crate::syntax::ast::{Comprehension, Expr, Id, Literal};
use crate::types::{Generic, Type};

impl<'c> Walk<'c> {
    pub fn cost(&mut self, id: Id) -> Range {
        if let (Some(Reference::Variable(_) | Reference::Type(_)), Expr::Select { .. }) =
            (self.checked.reference(id), self.checked.ast.expr(id))
        {
            // A name with dots comes from nowhere else.
            self.paths[id as usize] = vec![self.checked.ast.dotted(id).unwrap_or_default().into()];
            return Range::exactly(1);
        }
        match self.checked.ast.expr(id) {
            Expr::Unspecified | Expr::Literal(_) => Range::exactly(0),
            Expr::Ident(name) => {
                let local = self.local(name).map(|local| local.path.clone());
                self.paths[id as usize] = local.unwrap_or_else(|| vec![name.clone()]);
                Range::exactly(1)
            }
            Expr::Select { operand, field, test } => {
                let below = self.cost(*operand);
                if *test {
                    return below;
                }
                let mut path = self.path(*operand);
                path.push(field.clone());
                self.paths[id as usize] = path;
                let selects = match self.checked.type_of(*operand) {
                    Type::Struct(_) => true,
                    Type::Applied(of) => of.of == Generic::Map,
                    _ => false,
                };
                below.plus(Range::exactly(u64::from(selects)))
            }
            Expr::Call { function, target, arguments } => self.call(id, function, *target, arguments),
            Expr::List { elements, .. } => self.list(id, elements),
            Expr::Map(entries) => {
                let mut cost = Range::exactly(30);
                let (mut key, mut value) = (none(entries.len()), none(entries.len()));
                for entry in entries {
                    cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value));
                    key = key.union(self.size_or_unknown(entry.key));
                    value = value.union(self.size_or_unknown(entry.value));
                }
                self.entries[id as usize] = Some(ElementSizes { is_list: false, key, value });
                cost
            }
            Expr::Struct { fields, .. } => {
                fields.iter().fold(Range::exactly(40), |cost, field| cost.plus(self.cost(field.value)))
            }
            Expr::Comprehension(all) => self.comprehension(id, all),
        }
    }

    fn list(&mut self, id: Id, elements: &[Id]) -> Range {
        let mut cost = Range::exactly(10);
        let mut value = none(elements.len());
        for element in elements {
            cost = cost.plus(self.cost(*element));
            value = value.union(self.size_or_unknown(*element));
        }
        self.entries[id as usize] = Some(ElementSizes { is_list: true, key: Range::exactly(1), value });
        cost
    }

    fn comprehension(&mut self, id: Id, all: &Comprehension) -> Range {
        let mut cost = self.cost(all.range).plus(self.cost(all.init));
        let before = self.locals.len();
        self.push(&all.accumulator, all.init);
        if self.is_binding(all) {
            cost = cost.plus(self.cost(all.result));
            self.copy(id, all.result);
            self.locals.truncate(before);
            return cost;
        }
        let around = self.locals.len();
        match &all.second {
            Some(second) => {
                self.push_of(&all.first, all.range, true);
                self.push_of(second, all.range, false);
            }
            None => {
                let is_list = self.is_list(all.range);
                self.push_of(&all.first, all.range, !is_list);
            }
        }
        let each = self.cost(all.condition);
        let each = self.cost(all.step).plus(each);
        self.locals.truncate(around);
        cost = cost.plus(self.cost(all.result));
        self.locals.truncate(before);
        let count = self.size_or_unknown(all.range);
        match self.checked.ast.expr(all.init) {
            Expr::Literal(_) => {
                if let Some(size) = self.size(all.init) {
                    self.sizes[id as usize] = Some(size);
                }
            }
            Expr::List { .. } | Expr::Map(_) => {
                self.sizes[id as usize] = Some(count);
                if let Some(entry) = self.entry(all.step) {
                    self.entries[id as usize] = Some(entry);
                }
            }
            _ => {}
        }
        cost.plus(count.times(each))
    }

    fn is_binding(&self, all: &Comprehension) -> bool {
        let ast = &self.checked.ast;
        let never = matches!(ast.expr(all.condition), Expr::Literal(Literal::Bool(false)));
        let empty = matches!(ast.expr(all.range), Expr::List { elements, .. } if elements.is_empty());
        never && empty && all.accumulator != "__result__"
    }

    fn call(&mut self, id: Id, function: &SmolStr, target: Option<Id>, given: &[Id]) -> Range {
        if let ("optMap" | "optFlatMap", Some(target), [variable, expression]) =
            (function.as_str(), target, given)
        {
            return self.mapped(function, target, *variable, *expression);
        }
        let (name, qualified, overloads) = match self.checked.reference(id) {
            Some(Reference::Function { name, qualified, overloads }) => {
                (name.clone(), *qualified, overloads.clone())
            }
            _ => (function.clone(), false, Vec::new()),
        };
        if let (operators::OPT_SELECT, [operand, _]) = (name.as_str(), given) {
            let cost = self.cost(*operand).plus(Range::exactly(1));
            self.sizes[id as usize] = self.size(id);
            return cost;
        }
        if name == "dyn"
            && let [argument] = given
        {
            let cost = self.cost(*argument).plus(Range::exactly(1));
            self.copy(id, *argument);
            return cost;
        }
        let costs: Vec<Range> = given.iter().map(|argument| self.cost(*argument)).collect();
        let parts: Vec<Part> = given.iter().map(|argument| self.part(*argument)).collect();
        if matches!(name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR) {
            let all = costs[0].plus(costs[1]);
            return Range { min: costs[0].min, max: all.max };
        }
        let target = target.filter(|_| !qualified);
        let before = target.map_or(Range::exactly(0), |target| self.cost(target));
        let target = target.map(|target| self.part(target));
        let mut cost = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in &overloads {
            let call =
                Call { id, name: &name, overload, target: target.as_ref(), parts: &parts, costs: &costs };
            let (spent, result) = self.overload(&call);
            cost = cost.union(spent);
            size = match (size, result) {
                (Some(one), Some(other)) => Some(one.union(other)),
                (one, other) => one.or(other),
            };
            self.index(id, &name, overload, given, &mut size);
            if size.is_none() {
                size = self.size(id);
            }
        }
        if let Some(size) = size {
            self.sizes[id as usize] = Some(size);
        }
        before.plus(cost)
    }

    /// An element of a list or map comes from it, and is as large as its elements.
    fn index(&mut self, id: Id, name: &str, overload: &Overload, given: &[Id], size: &mut Option<Range>) {
        let Some(of) =
            overload.arguments.first().and_then(Type::as_applied).filter(|_| name == operators::INDEX)
        else {
            return;
        };
        let step = match of.of {
            Generic::List => "@items",
            Generic::Map => "@values",
            _ => return,
        };
        *size = self.entry(given[0]).map(|entry| entry.value);
        let mut path = self.path(given[0]);
        path.push(step.into());
        self.paths[id as usize] = path;
    }

    /// `target.hasValue() ? optional.of(cel.bind(variable, target.value(), expression)) : optional.none()`.
    fn mapped(&mut self, function: &str, target: Id, variable: Id, expression: Id) -> Range {
        let of = self.cost(target);
        let one = Range::exactly(1);
        let Expr::Ident(name) = self.checked.ast.expr(variable) else { return of };
        self.locals.push(Local { name: name.clone(), ..Local::default() });
        let bound = Range::exactly(10).plus(of).plus(one).plus(self.cost(expression));
        self.locals.pop();
        let some = if function == "optMap" { bound.plus(one) } else { bound };
        of.plus(one).plus(some.union(one))
    }
}

/// The size of nothing's elements, to which others are joined.
fn none(count: usize) -> Range {
    Range { min: if count == 0 { 0 } else { u64::MAX }, max: 0 }
}

/// How much there is at most at a path below a variable of this type.
pub fn declared(of: &Decl, path: &[SmolStr]) -> Option<u64> {
    let mut at = of;
    let steps = path.split_first()?.1;
    for (place, step) in steps.iter().enumerate() {
        at = match (step.as_str(), &at.kind) {
            ("@items" | "@values", Kind::List(list)) => &list.items,
            ("@items" | "@values", Kind::Map(values)) => values,
            // Nothing is said of keys, and nothing is below them.
            ("@keys", Kind::Map(_)) => return (place + 1 == steps.len()).then_some(0),
            (name, Kind::Object(object)) => {
                &object.field(name, 0).filter(|field| field.decl.cel_type().is_some())?.decl
            }
            _ => return None,
        };
    }
    Some(u64::try_from(at.max_elements).unwrap_or_default())
}
