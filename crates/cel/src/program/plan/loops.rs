//! Plans of loops.

use smol_str::SmolStr;

use super::{Planned, Planner, Result};
use crate::operators;
use crate::program::{Attribute, Base, Fold, FoldShape, Node, NodeId, Slot};
use crate::syntax::ast::{Comprehension, Expr, Id};
use crate::value::Value;

impl Planner<'_> {
    pub(super) fn fold(&mut self, all: &Comprehension) -> Result<Node> {
        let outside = self.locals.len();
        let init = self.node(all.init)?;
        let range = self.node(all.range)?;
        let accumulator = self.local(&all.accumulator);
        let around = self.locals.len();
        let first = self.local(&all.first);
        let second = all.second.as_ref().map(|name| self.local(name));
        let condition = self.node(all.condition)?;
        let step = self.step(all, accumulator)?;
        self.locals.truncate(around);
        let result = self.node(all.result)?;
        self.locals.truncate(outside);
        let shape = FoldShape::Other;
        let mut fold = Fold { range, first, second, accumulator, init, condition, step, result, shape };
        fold.shape = self.quantifier(&fold).or_else(|| self.collection(&fold)).unwrap_or(shape);
        Ok(Node::Fold(Box::new(fold)))
    }

    fn known(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    fn is_accumulator(&self, node: NodeId, fold: &Fold) -> bool {
        matches!(self.known(node), Node::Attribute(attribute) if attribute.is_local(fold.accumulator))
    }

    /// `all`: true as long as it is not false, and so is the body. `exists`: the other way round.
    fn quantifier(&self, fold: &Fold) -> Option<FoldShape> {
        let Node::NotFalse(condition) = *self.known(fold.condition) else { return None };
        let (looked_at, so_far, body, decides) = match (self.known(fold.step), self.known(condition)) {
            (Node::And(so_far, body), _) => (condition, *so_far, *body, false),
            (Node::Or(so_far, body), Node::Not(negated)) => (*negated, *so_far, *body, true),
            _ => return None,
        };
        let is_begun = matches!(self.constant(fold.init), Some(Value::Bool(is)) if *is != decides);
        let looks = [looked_at, so_far, fold.result].iter().all(|node| self.is_accumulator(*node, fold));
        (is_begun && looks).then_some(FoldShape::Quantifier { body, decides })
    }

    /// `map` and `filter`: the list grows by an element in every round, or in those that a condition chooses.
    fn collection(&self, fold: &Fold) -> Option<FoldShape> {
        let is_empty = matches!(self.constant(fold.init), Some(Value::List(list)) if list.is_empty());
        let is_endless = matches!(self.constant(fold.condition), Some(Value::Bool(true)));
        if !is_empty || !is_endless || !self.is_accumulator(fold.result, fold) {
            return None;
        }
        let added = |node: NodeId| match *self.known(node) {
            Node::Append { to, element } if to == fold.accumulator => Some(element),
            _ => None,
        };
        let chosen = |attribute: &Attribute| match &attribute.base {
            Base::Conditional { condition, yes, no } if no.is_local(fold.accumulator) => {
                let element = yes.node().and_then(added)?;
                attribute.qualifiers.is_empty().then_some((Some(*condition), element))
            }
            _ => None,
        };
        let (condition, element) = match self.known(fold.step) {
            Node::Attribute(attribute) => chosen(attribute)?,
            _ => (None, added(fold.step)?),
        };
        Some(FoldShape::Collection { condition, element })
    }

    /// The step of a loop, which adds to its list in place.
    fn step(&mut self, all: &Comprehension, accumulator: Slot) -> Result<NodeId> {
        let Expr::Call { function, arguments, .. } = self.checked.ast.expr(all.step) else {
            return self.node(all.step);
        };
        match (function.as_str(), &arguments[..]) {
            (operators::CONDITIONAL, [condition, more, same]) => {
                let Some(element) = self.appended(*more, &all.accumulator) else {
                    return self.node(all.step);
                };
                let condition = self.node(*condition)?;
                let element = self.node(element)?;
                let append = self.push(Node::Append { to: accumulator, element });
                let yes = Box::new(Attribute { base: Base::Node(append), qualifiers: Vec::new() });
                let same = self.plan(*same)?;
                let no = Box::new(self.attribute(same));
                let base = Base::Conditional { condition, yes, no };
                Ok(self.push(Node::Attribute(Attribute { base, qualifiers: Vec::new() })))
            }
            _ => match self.appended(all.step, &all.accumulator) {
                Some(element) => {
                    let element = self.node(element)?;
                    Ok(self.push(Node::Append { to: accumulator, element }))
                }
                None => self.node(all.step),
            },
        }
    }

    /// The element of `accumulator + [element]`.
    fn appended(&self, id: Id, accumulator: &SmolStr) -> Option<Id> {
        let ast = &self.checked.ast;
        let Expr::Call { function, arguments, .. } = ast.expr(id) else { return None };
        let [to, list] = arguments[..] else { return None };
        match (function.as_str(), ast.expr(to), ast.expr(list)) {
            (operators::ADD, Expr::Ident(name), Expr::List { elements, .. })
                if name == accumulator && accumulator == "@result" =>
            {
                if let [element] = elements[..] {
                    Some(element)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// `target.optMap(variable, expression)`: the target is evaluated twice, as upstream's macro has it twice.
    pub(super) fn mapped(
        &mut self,
        function: &str,
        target: Id,
        variable: Id,
        expression: Id,
    ) -> Result<Planned> {
        let Expr::Ident(variable) = self.checked.ast.expr(variable) else { return Err("no name".to_owned()) };
        let target = self.node(target)?;
        let has = self.function("hasValue".into(), None, vec![target])?;
        let condition = self.push(has);
        let value = self.function("value".into(), None, vec![target])?;
        let init = self.push(value);
        let range = self.push(Node::Constant(Value::owned(Vec::new())));
        let outside = self.locals.len();
        let accumulator = self.local(variable);
        let result = self.node(expression)?;
        self.locals.truncate(outside);
        let first = self.slots;
        self.slots += 1;
        let never = self.push(Node::Constant(Value::Bool(false)));
        let (second, shape) = (None, FoldShape::Other);
        let fold =
            Fold { range, first, second, accumulator, init, condition: never, step: never, result, shape };
        let mut some = self.push(Node::Fold(Box::new(fold)));
        if function == "optMap" {
            let of = self.function("optional.of".into(), None, vec![some])?;
            some = self.push(of);
        }
        let none = self.function("optional.none".into(), None, Vec::new())?;
        let none = self.push(none);
        let branch = |node| Box::new(Attribute { base: Base::Node(node), qualifiers: Vec::new() });
        let base = Base::Conditional { condition, yes: branch(some), no: branch(none) };
        Ok(Planned::Attribute(Attribute { base, qualifiers: Vec::new() }))
    }
}
