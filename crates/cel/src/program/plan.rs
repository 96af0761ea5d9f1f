//! From a checked tree to a plan.

mod loops;

use std::collections::HashMap;
use std::sync::Arc;

use smol_str::SmolStr;

use super::{Attribute, Base, Call, Node, NodeId, Operator, Program, Qualifier, QualifierKey, Slot};
use crate::check::{Checked, Reference};
use crate::environment::Environment;
use crate::functions::Overload;
use crate::library::conversions;
use crate::library::table::{self, Quick, cost, is_sequential};
use crate::operators;
use crate::pattern::Pattern;
use crate::syntax::ast::{Expr, Id, Literal};
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

    fn local(&mut self, name: &SmolStr) -> Slot {
        let slot = self.slots;
        self.slots += 1;
        self.locals.push((name.clone(), slot));
        slot
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
