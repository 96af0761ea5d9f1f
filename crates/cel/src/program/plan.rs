//! From a checked tree to a plan.

use std::collections::HashMap;
use std::sync::Arc;

use smol_str::SmolStr;

use super::{
    Attribute, Base, Call, Fold, FoldShape, Node, NodeId, Operator, Program, Qualifier, QualifierKey, Slot,
};
use crate::check::{Checked, Reference};
use crate::environment::Environment;
use crate::functions::Overload;
use crate::library::conversions;
use crate::library::table::{self, Quick, cost, is_sequential};
use crate::operators;
use crate::pattern::Pattern;
use crate::syntax::ast::{Comprehension, Expr, Id, Literal};
use crate::types::Type;
use crate::value::{Entries, Key, List, Map, Value};

struct Planner<'c> {
    checked: &'c Checked,
    environment: &'c Environment,
    nodes: Vec<Node>,
    variables: Vec<SmolStr>,
    numbers: HashMap<SmolStr, u32>,
    /// Variables of loops, the innermost last.
    locals: Vec<(SmolStr, Slot)>,
    slots: Slot,
}

/// Something of a plan: an attribute is told apart as long as more may be looked up in it.
enum Planned {
    Node(NodeId),
    Attribute(Attribute),
}

/// An error is that of a constant part that has no value.
type Result<T> = std::result::Result<T, String>;

pub fn plan(checked: &Checked, environment: &Environment) -> Result<Program> {
    let mut planner = Planner {
        checked,
        environment,
        nodes: Vec::new(),
        variables: Vec::new(),
        numbers: HashMap::new(),
        locals: Vec::new(),
        slots: 0,
    };
    let root = planner.node(checked.ast.root)?;
    let Planner { nodes, variables, slots, .. } = planner;
    let (slots, depth) = (slots as usize, checked.ast.depth(checked.ast.root));
    Ok(Program { nodes, root, slots, variables, depth, result: checked.result.clone() })
}

impl Planner<'_> {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    fn node(&mut self, id: Id) -> Result<NodeId> {
        let planned = self.plan(id)?;
        Ok(self.settle(planned))
    }

    fn settle(&mut self, planned: Planned) -> NodeId {
        match planned {
            Planned::Node(node) => node,
            Planned::Attribute(attribute) => self.push(Node::Attribute(attribute)),
        }
    }

    /// An attribute to look something up in, or a value that is one so far.
    fn attribute(&mut self, planned: Planned) -> Attribute {
        match planned {
            Planned::Attribute(attribute) => attribute,
            Planned::Node(node) => Attribute { base: Base::Node(node), qualifiers: Vec::new() },
        }
    }

    fn constant(&self, node: NodeId) -> Option<&Value<'static>> {
        match &self.nodes[node as usize] {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn plan(&mut self, id: Id) -> Result<Planned> {
        let checked = self.checked;
        if let Some(planned) = self.name(id) {
            return Ok(planned);
        }
        let node = match checked.ast.expr(id) {
            Expr::Literal(literal) => Node::Constant(value_of(literal)),
            Expr::Select { operand, field, test } => return self.select(*operand, field, *test),
            Expr::Call { target, arguments, .. } => return self.call(id, *target, arguments),
            Expr::List { elements, optional } => {
                let elements =
                    elements.iter().map(|element| self.node(*element)).collect::<Result<Box<[_]>>>()?;
                self.list(elements, optional.clone())
            }
            Expr::Map(entries) => {
                let mut planned = Vec::new();
                for entry in entries {
                    planned.push((self.node(entry.key)?, self.node(entry.value)?, entry.optional));
                }
                self.map(planned)
            }
            Expr::Struct { name, fields } => {
                let mut planned = Vec::new();
                for field in fields {
                    planned.push((field.name.clone(), self.node(field.value)?, field.optional));
                }
                let name = name.strip_prefix('.').unwrap_or(name).into();
                Node::Struct { name, fields: planned.into() }
            }
            Expr::Comprehension(all) => self.fold(all)?,
            Expr::Ident(_) | Expr::Unspecified => return Err("unsupported expr".to_owned()),
        };
        Ok(Planned::Node(self.push(node)))
    }

    /// A variable or a type.
    fn name(&mut self, id: Id) -> Option<Planned> {
        let base = match self.checked.reference(id)? {
            Reference::Local => {
                let Expr::Ident(name) = self.checked.ast.expr(id) else { return None };
                Base::Local(self.locals.iter().rev().find(|(known, _)| known == name)?.1)
            }
            Reference::Variable(name) => Base::Variable(self.number(&name.clone())),
            Reference::Type(of) => {
                let constant = Node::Constant(Value::Type(Arc::new(of.clone())));
                return Some(Planned::Node(self.push(constant)));
            }
            Reference::Function { .. } => return None,
        };
        Some(Planned::Attribute(Attribute { base, qualifiers: Vec::new() }))
    }

    fn number(&mut self, name: &SmolStr) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.variables.len() as u32;
        self.variables.push(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    /// The index of a field in the declaration of its struct, if the operand is known to be a struct; else 0.
    fn hint(&self, operand: Id, field: &str) -> usize {
        let mut of = self.checked.type_of(operand);
        if let Some(inner) = of.as_optional() {
            of = inner;
        }
        match of {
            Type::Struct(name) => self.environment.place_of(name, field),
            _ => 0,
        }
    }

    fn select(&mut self, operand: Id, field: &SmolStr, test: bool) -> Result<Planned> {
        let hint = self.hint(operand, field);
        let planned = self.plan(operand)?;
        let mut attribute = self.attribute(planned);
        let key = QualifierKey::Constant(Value::string(field.as_str()));
        attribute.qualifiers.push(Qualifier { key, optional: false, hint });
        Ok(if test { Planned::Node(self.push(Node::Test(attribute))) } else { Planned::Attribute(attribute) })
    }

    fn list(&mut self, elements: Box<[NodeId]>, optional: Box<[bool]>) -> Node {
        let constants: Option<Vec<_>> = elements.iter().map(|node| self.constant(*node).cloned()).collect();
        match constants.filter(|_| !optional.contains(&true)) {
            Some(values) => Node::Constant(Value::owned(values)),
            None => Node::List { elements, optional },
        }
    }

    fn map(&mut self, entries: Vec<(NodeId, NodeId, bool)>) -> Node {
        let mut constant = Entries::default();
        for (key, value, optional) in &entries {
            let both = self.constant(*key).and_then(Key::of).zip(self.constant(*value).cloned());
            match both.filter(|_| !optional) {
                Some((key, value)) => constant.put(key, value),
                None => return Node::Map { entries: entries.into() },
            }
        }
        Node::Constant(Value::Map(Map::Owned(Arc::new(constant))))
    }

    fn fold(&mut self, all: &Comprehension) -> Result<Node> {
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

    fn local(&mut self, name: &SmolStr) -> Slot {
        let slot = self.slots;
        self.slots += 1;
        self.locals.push((name.clone(), slot));
        slot
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

    fn call(&mut self, id: Id, target: Option<Id>, given: &[Id]) -> Result<Planned> {
        let checked = self.checked;
        let Expr::Call { function, .. } = checked.ast.expr(id) else { return Err("no call".to_owned()) };
        if let ("optMap" | "optFlatMap", Some(target), [variable, expression]) =
            (function.as_str(), target, given)
        {
            return self.mapped(function, target, *variable, *expression);
        }
        let (name, qualified, overload) = match checked.reference(id) {
            Some(Reference::Function { name, qualified, overloads }) => {
                let only = if let [only] = overloads[..] { Some(only) } else { None };
                (name.clone(), *qualified, only)
            }
            _ => (function.clone(), false, None),
        };
        if matches!(name.as_str(), operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT) {
            return self.index(&name, given);
        }
        if name == operators::CONDITIONAL {
            return self.conditional(given);
        }
        let target = target.filter(|_| !qualified);
        let arguments: Vec<NodeId> =
            target.iter().chain(given).map(|argument| self.node(*argument)).collect::<Result<_>>()?;
        let node = self.function(name, overload, arguments)?;
        Ok(Planned::Node(self.push(node)))
    }

    fn function(
        &mut self,
        name: SmolStr,
        overload: Option<&'static Overload>,
        arguments: Vec<NodeId>,
    ) -> Result<Node> {
        let cost = cost(&name, overload);
        if let [left, right] = arguments[..] {
            match name.as_str() {
                operators::LOGICAL_AND => return Ok(Node::And(left, right)),
                operators::LOGICAL_OR => return Ok(Node::Or(left, right)),
                "or" | "orValue" => return Ok(Node::OptionalOr { left, right, value: name == "orValue" }),
                operators::IN => {
                    if let Some(node) = self.member(left, right, overload) {
                        return Ok(node);
                    }
                }
                "matches" => {
                    if let Some(Value::String(text)) = self.constant(right) {
                        let pattern = Pattern::new(text, &self.environment.room)?;
                        return Ok(Node::Matches { text: left, pattern, length: text.letters() as u64 });
                    }
                }
                _ => {}
            }
            if let Some(operator) = operator_of(&name) {
                return Ok(Node::Binary { operator, left, right, cost });
            }
        }
        if let [argument] = arguments[..] {
            match name.as_str() {
                operators::LOGICAL_NOT => return Ok(Node::Not(argument)),
                operators::NOT_STRICTLY_FALSE => return Ok(Node::NotFalse(argument)),
                operators::NEGATE => return Ok(Node::Negate(argument)),
                _ => {}
            }
            if let Some(constant) = self.constant(argument)
                && conversions::FUNCTIONS.contains(&name.as_str())
            {
                let converted = table::call(&name, std::slice::from_ref(constant), None);
                return converted.map(Node::Constant).map_err(|why| why.message().to_owned());
            }
        }
        let pattern = match (name.as_str(), arguments.get(1).and_then(|node| self.constant(*node))) {
            ("find" | "findAll", Some(Value::String(text))) => {
                Some(Pattern::new(text, &self.environment.room)?)
            }
            _ => None,
        };
        let sequential = pattern.is_some() || is_sequential(&name, arguments.len(), overload);
        let (arguments, quick) = (arguments.into(), Quick::of(&name));
        Ok(Node::Call(Box::new(Call {
            function: name,
            overload,
            arguments,
            cost,
            quick,
            sequential,
            pattern,
        })))
    }

    /// `in` a list of constants that can be told apart by themselves.
    fn member(&self, item: NodeId, list: NodeId, overload: Option<&Overload>) -> Option<Node> {
        overload?;
        let Value::List(List::Owned(items)) = self.constant(list)? else { return None };
        if items.is_empty() {
            return Some(Node::Constant(Value::Bool(false)));
        }
        let of: Option<Vec<_>> = items.iter().map(Key::of).collect();
        Some(Node::Member { item, of: of? })
    }

    fn index(&mut self, name: &str, given: &[Id]) -> Result<Planned> {
        let [operand, index] = given else { return Err("no index".to_owned()) };
        let optional = name != operators::INDEX;
        let hint = match self.checked.ast.expr(*index) {
            Expr::Literal(Literal::String(field)) => self.hint(*operand, field),
            _ => 0,
        };
        let planned = self.plan(*operand)?;
        let mut attribute = self.attribute(planned);
        let key = match self.plan(*index)? {
            Planned::Attribute(inner) => QualifierKey::Attribute(Box::new(inner)),
            Planned::Node(node) => match self.constant(node) {
                Some(constant) => QualifierKey::Constant(constant.clone()),
                None => QualifierKey::Node(node),
            },
        };
        attribute.qualifiers.push(Qualifier { key, optional, hint });
        Ok(Planned::Attribute(attribute))
    }

    fn conditional(&mut self, given: &[Id]) -> Result<Planned> {
        let [condition, yes, no] = given else { return Err("no condition".to_owned()) };
        let condition = self.node(*condition)?;
        let yes = self.plan(*yes)?;
        let yes = Box::new(self.attribute(yes));
        let no = self.plan(*no)?;
        let no = Box::new(self.attribute(no));
        Ok(Planned::Attribute(Attribute {
            base: Base::Conditional { condition, yes, no },
            qualifiers: Vec::new(),
        }))
    }

    /// `target.optMap(variable, expression)`: the target is evaluated twice, as upstream's macro has it twice.
    fn mapped(&mut self, function: &str, target: Id, variable: Id, expression: Id) -> Result<Planned> {
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

fn operator_of(name: &str) -> Option<Operator> {
    Some(match name {
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterEqual,
        operators::ADD => Operator::Add,
        operators::SUBTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Modulo,
        operators::IN => Operator::In,
        _ => return None,
    })
}

fn value_of(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(is) => Value::Bool(*is),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::string(text.as_str()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}
