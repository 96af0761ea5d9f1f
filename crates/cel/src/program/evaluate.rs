//! Goes through a plan. An error is a value that goes up until `&&`, `||` or a loop takes it; what an error goes past is
//! paid for as upstream does. A budget that is gone ends all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Attribute, Base, Call, Node, NodeId, Operator, Program, Slot};
use crate::arithmetic;
use crate::deep;
use crate::library::lists;
use crate::library::table::{self, Cost};
use crate::operators;
use crate::value::{Entries, Error, Key, List, Map, Text, Value};

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Error(Error),
    /// It costs more than it may.
    Limit,
    /// Somebody has given up on it.
    Interrupted,
    /// Upstream cannot tell what sorting costs of a list that is an error, and ends the evaluation.
    Unsortable,
}

impl Fault {
    pub fn message(&self) -> &str {
        match self {
            Self::Error(error) => error.message(),
            Self::Limit => "operation cancelled: actual cost limit exceeded",
            Self::Interrupted => "operation interrupted",
            Self::Unsortable => {
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            }
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(super) type Outcome<'a> = Result<Value<'a>, Fault>;

/// What an evaluation may cost, and what it has.
#[derive(Debug)]
pub struct Budget<'b> {
    pub limit: u64,
    pub spent: u64,
    /// Becomes true when nobody waits for the value any more.
    pub interrupt: Option<&'b AtomicBool>,
}

impl Budget<'_> {
    pub fn of(limit: u64) -> Self {
        Self { limit, spent: 0, interrupt: None }
    }
}

/// Where variables come from; each is asked for at most once in an evaluation.
pub trait Variables<'a>: Sync {
    /// `None` for a variable that is not there.
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

/// A variable of a loop.
#[derive(Clone, Debug)]
pub(super) enum Local<'a> {
    Empty,
    /// Evaluated when it is first looked at.
    Lazy(NodeId),
    Ready(Result<Value<'a>, Error>),
}

pub(super) struct Frame<'a, 'e> {
    pub(super) program: &'a Program,
    variables: Vec<Option<Result<Value<'a>, Error>>>,
    pub(super) locals: Vec<Local<'a>>,
    budget: Budget<'e>,
}

/// The plan is not much deeper than the tree, of which each level takes some hundreds of bytes of stack.
const SHALLOW: u16 = 64;

impl Program {
    /// The value, or why there is none; what it cost is in the budget either way.
    pub fn evaluate<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        budget: &mut Budget<'_>,
    ) -> Result<Value<'a>, Fault> {
        let copy = Budget { ..*budget };
        let (outcome, spent) = if self.depth <= SHALLOW {
            self.run(variables, copy)
        } else {
            let spent = budget.spent;
            deep::run(|| self.run(variables, copy)).unwrap_or((Err(Fault::Interrupted), spent))
        };
        budget.spent = spent;
        outcome
    }

    fn run<'a>(&'a self, variables: &dyn Variables<'a>, budget: Budget<'_>) -> (Outcome<'a>, u64) {
        let variables = self.variables.iter().map(|name| variables.get(name)).collect();
        let locals = vec![Local::Empty; self.slots];
        let mut frame = Frame { program: self, variables, locals, budget };
        let outcome = frame.node(self.root);
        (outcome, frame.budget.spent)
    }
}

/// What a part of a call came to, short of the end of all.
type Part<'a> = Result<Value<'a>, Error>;

impl<'a> Frame<'a, '_> {
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.budget.spent = self.budget.spent.saturating_add(cost);
        if self.budget.spent > self.budget.limit { Err(Fault::Limit) } else { Ok(()) }
    }

    pub(super) fn check_interrupt(&self) -> Result<(), Fault> {
        let is_over = self.budget.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed));
        if is_over { Err(Fault::Interrupted) } else { Ok(()) }
    }

    /// An error becomes a value.
    pub(super) fn part(&mut self, node: NodeId) -> Result<Part<'a>, Fault> {
        match self.node(node) {
            Ok(value) => Ok(Ok(value)),
            Err(Fault::Error(error)) => Ok(Err(error)),
            Err(end) => Err(end),
        }
    }

    pub(super) fn node(&mut self, id: NodeId) -> Outcome<'a> {
        let program = self.program;
        match &program.nodes[id as usize] {
            Node::Constant(value) => Ok(borrowed(value)),
            Node::Attribute(attribute) => self.observed(attribute),
            Node::Test(attribute) => self.test(attribute),
            Node::And(left, right) => self.logical(*left, *right, false),
            Node::Or(left, right) => self.logical(*left, *right, true),
            Node::Not(operand) => self.unary(*operand, |value| match value {
                Value::Bool(is) => Ok(Value::Bool(!is)),
                _ => Err(Error::no_such_overload()),
            }),
            Node::Negate(operand) => self.unary(*operand, |value| arithmetic::negate(&value)),
            Node::NotFalse(operand) => {
                let value = self.part(*operand)?;
                self.spend(1)?;
                Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))))
            }
            Node::Binary { operator, left, right, cost } => self.binary(*operator, *left, *right, *cost),
            Node::Member { item, of } => {
                let item = self.node(*item)?;
                Ok(Value::Bool(is_member(&item, of)))
            }
            Node::Append { to, element } => self.append(*to, *element),
            Node::Matches { text, pattern, length } => {
                let text = self.node(*text)?;
                let letters = (1.0 + text.size() as f64) * 0.1;
                self.spend(letters.ceil() as u64 * (*length as f64 * 0.25).ceil() as u64)?;
                match text {
                    Value::String(text) => Ok(Value::Bool(pattern.is_match(&text))),
                    _ => Err(Error::no_such_overload().into()),
                }
            }
            Node::Call(call) => self.call(call),
            Node::OptionalOr { left, right, value } => self.optional_or(*left, *right, *value),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map { entries } => self.map(entries),
            Node::Struct { fields } => self.structure(fields),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    pub(super) fn variable(&self, number: u32) -> Part<'a> {
        match &self.variables[number as usize] {
            Some(value) => value.clone(),
            None => {
                let name = &self.program.variables[number as usize];
                Err(Error::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    fn unary(&mut self, operand: NodeId, apply: impl FnOnce(Value<'a>) -> Part<'a>) -> Outcome<'a> {
        let value = self.part(operand)?;
        self.spend(1)?;
        Ok(apply(value?)?)
    }

    /// `&&` and `||`: the side that decides does so, whatever the other one is.
    fn logical(&mut self, left: NodeId, right: NodeId, decides: bool) -> Outcome<'a> {
        let mut first = None;
        for side in [left, right] {
            match self.part(side)? {
                Ok(Value::Bool(is)) if is == decides => return Ok(Value::Bool(is)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => first = first.or(Some(Error::no_such_overload())),
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) => Err(error.into()),
            None => Ok(Value::Bool(!decides)),
        }
    }

    fn binary(&mut self, operator: Operator, left: NodeId, right: NodeId, cost: Cost) -> Outcome<'a> {
        let left = self.part(left)?;
        let right = self.part(right)?;
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (left, right) => {
                let size = |of: &Part<'_>| of.as_ref().map_or(1, Value::inner_size);
                let spent = match cost {
                    Cost::Second => size(&right),
                    Cost::Both => ((size(&left) + size(&right)) as f64 * 0.1).ceil() as u64,
                    Cost::Smaller | Cost::Equality => {
                        (size(&left).min(size(&right)) as f64 * 0.1).ceil() as u64
                    }
                    _ => 1,
                };
                self.spend(spent)?;
                left?;
                return Ok(right?);
            }
        };
        let spent = match (&left, &right) {
            (Value::Int(_), Value::Int(_)) | (Value::Bool(_), Value::Bool(_)) => 1,
            _ => {
                let both = [left, right];
                let spent = cost.before(&both).unwrap_or(1);
                self.spend(spent)?;
                let [left, right] = &both;
                return Ok(apply(operator, left, right)?);
            }
        };
        self.spend(spent)?;
        Ok(apply(operator, &left, &right)?)
    }

    /// Adds an element to the list of a loop, which nobody else holds.
    fn append(&mut self, to: Slot, element: NodeId) -> Outcome<'a> {
        self.spend(1)?;
        let before = self.local(to)?;
        // A list of a constant is a constant.
        let is_constant = matches!(self.program.nodes[element as usize], Node::Constant(_));
        let element = self.part(element)?;
        self.spend(if is_constant { 1 } else { 11 })?;
        let list = before?;
        let element = element?;
        // The copy in the variable goes, so that the list can grow where it is.
        self.locals[to as usize] = Local::Empty;
        let Value::List(list) = list else { return Err(Error::no_such_overload().into()) };
        let mut items = match list {
            List::Owned(items) => items,
            other => Arc::new(other.to_vec()?),
        };
        Arc::make_mut(&mut items).push(element);
        Ok(Value::List(List::Owned(items)))
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        let mut failed = None;
        let mut sorted = None;
        if let Cost::Pairs { of } = call.cost {
            sorted = Some(of);
        }
        for (at, argument) in call.arguments.iter().enumerate() {
            match self.part(*argument)? {
                Ok(value) => arguments.push(value),
                Err(error) => {
                    failed = failed.or(Some(error));
                    if sorted == Some(at) {
                        return Err(Fault::Unsortable);
                    }
                    if call.sequential && at + 1 < call.arguments.len() {
                        return Err(failed.unwrap_or_else(Error::no_such_overload).into());
                    }
                    arguments.push(Value::Null);
                }
            }
        }
        match call.cost.before(&arguments) {
            Some(_) if call.cost == Cost::Join && failed.is_some() => self.spend(1)?,
            Some(cost) => self.spend(cost)?,
            None => {}
        }
        let result = match failed {
            Some(error) => Err(error),
            None if call.function == operators::MAP_INSERT => {
                self.let_go(call.arguments[0]);
                insert(arguments)
            }
            None => self.apply(call, &arguments),
        };
        if call.cost == Cost::Output {
            self.spend(Cost::after(result.as_ref().ok()))?;
        }
        Ok(result?)
    }

    /// Empties the variable of a loop, so that its map can grow where it is.
    fn let_go(&mut self, node: NodeId) {
        if let Node::Attribute(Attribute { base: Base::Local(slot), .. }) = &self.program.nodes[node as usize]
        {
            self.locals[*slot as usize] = Local::Empty;
        }
    }

    fn apply(&self, call: &Call, arguments: &[Value<'a>]) -> Part<'a> {
        match (call.function.as_str(), arguments) {
            ("find" | "findAll" | "matches", [Value::String(text), Value::String(pattern), ..]) => {
                found(call, text, pattern, arguments.get(2))
            }
            _ if call.pattern.is_some() => Err(Error::no_such_overload()),
            (function, arguments) => {
                table::call(function, arguments, call.overload.map(|overload| &overload.result))
            }
        }
    }

    fn optional_or(&mut self, left: NodeId, right: NodeId, value: bool) -> Outcome<'a> {
        match self.node(left)? {
            Value::Optional(Some(inner)) if value => Ok((*inner).clone()),
            Value::Optional(None) => self.node(right),
            some @ Value::Optional(_) => Ok(some),
            _ => Err(Error::no_such_overload().into()),
        }
    }

    fn list(&mut self, elements: &[NodeId], optional: &[bool]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements.iter().zip(optional) {
            let value = match self.part(*element)? {
                Ok(value) => value,
                Err(error) => {
                    self.spend(10)?;
                    return Err(error.into());
                }
            };
            match (optional, value) {
                (false, value) => values.push(value),
                (true, Value::Optional(None)) => {}
                (true, Value::Optional(Some(inner))) => values.push((*inner).clone()),
                (true, other) => {
                    self.spend(10)?;
                    let shown = other.shown();
                    let why =
                        format!("cannot initialize optional list element from non-optional value {shown}");
                    return Err(Error::new(why).into());
                }
            }
        }
        self.spend(10)?;
        Ok(Value::owned(values))
    }

    fn map(&mut self, entries: &[(NodeId, NodeId, bool)]) -> Outcome<'a> {
        let made = self.entries(entries);
        if matches!(made, Ok(_) | Err(Fault::Error(_))) {
            self.spend(30)?;
        }
        Ok(Value::Map(Map::Owned(Arc::new(made?))))
    }

    fn entries(&mut self, entries: &[(NodeId, NodeId, bool)]) -> Result<Entries<'a>, Fault> {
        let mut made = Entries::default();
        for (key, value, optional) in entries {
            let key = self.node(*key)?;
            let value = self.node(*value)?;
            let known = Key::of(&key).ok_or_else(|| {
                Error::new(format!("internal error: unsupported key type {}", key.type_name()))
            })?;
            match (optional, value) {
                (false, value) => made.put(known, value),
                (true, Value::Optional(None)) => made.remove(&known),
                (true, Value::Optional(Some(inner))) => made.put(known, (*inner).clone()),
                (true, other) => {
                    let (key, value) = (key.shown(), other.shown());
                    let why =
                        format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    return Err(Error::new(why).into());
                }
            }
        }
        Ok(made)
    }

    /// Objects that patches are made of.
    fn structure(&mut self, fields: &'a [(smol_str::SmolStr, NodeId, bool)]) -> Outcome<'a> {
        let mut made = Entries::default();
        for (name, value, optional) in fields {
            let key = Key::String(Text::Borrowed(name));
            match (optional, self.node(*value)?) {
                (false, value) => made.put(key, value),
                (true, Value::Optional(None)) => {}
                (true, Value::Optional(Some(inner))) => made.put(key, (*inner).clone()),
                (true, other) => {
                    let shown = other.shown();
                    let why =
                        format!("cannot initialize optional entry '{name}' from non-optional value {shown}");
                    return Err(Error::new(why).into());
                }
            }
        }
        self.spend(40)?;
        Ok(Value::Map(Map::Owned(Arc::new(made))))
    }
}

/// A constant, of which nothing is copied.
fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(Text::Borrowed(text)),
        Value::List(List::Owned(items)) => Value::List(List::Constant(items)),
        Value::Map(Map::Owned(entries)) => Value::Map(Map::Constant(entries)),
        other => other.clone(),
    }
}

fn is_member(item: &Value<'_>, of: &[Key<'static>]) -> bool {
    if let Value::String(text) = item {
        return of.iter().any(|key| matches!(key, Key::String(known) if **known == **text));
    }
    of.iter().any(|key| key.value().equals(item).unwrap_or(false))
}

pub(super) fn apply<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Part<'a> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let name = match operator {
        Operator::Equal => return left.equals(right).map(Value::Bool),
        // What cannot be compared is not equal.
        Operator::NotEqual => return Ok(Value::Bool(!left.equals(right).unwrap_or(false))),
        Operator::Add => return arithmetic::add(left, right),
        Operator::Subtract => return arithmetic::subtract(left, right),
        Operator::Multiply => return arithmetic::multiply(left, right),
        Operator::Divide => return arithmetic::divide(left, right),
        Operator::Modulo => return arithmetic::modulo(left, right),
        Operator::In => return contains(left, right),
        Operator::Less => "_<_",
        Operator::LessEqual => "_<=_",
        Operator::Greater => "_>_",
        Operator::GreaterEqual => "_>=_",
    };
    if !left.is_ordered() {
        return Err(Error::new(format!("no such overload: {name}")));
    }
    let order = left.compare(right)?;
    Ok(Value::Bool(match operator {
        Operator::Less => order == Less,
        Operator::LessEqual => order != Greater,
        Operator::Greater => order == Greater,
        Operator::GreaterEqual => order != Less,
        _ => order == Equal,
    }))
}

fn contains<'a>(item: &Value<'a>, of: &Value<'a>) -> Part<'a> {
    match of {
        Value::List(list) => lists::has(list, item).map(Value::Bool),
        Value::Map(map) => Ok(Value::Bool(map.find(item, 0)?.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

/// A map with one more entry, or with those of another.
fn insert(arguments: Vec<Value<'_>>) -> Part<'_> {
    let mut arguments = arguments.into_iter();
    let Some(Value::Map(map)) = arguments.next() else { return Err(Error::no_such_overload()) };
    let mut made = match map {
        Map::Owned(entries) => entries,
        other => Arc::new(pairs(&other)?.into_iter().fold(Entries::default(), |mut copy, (key, value)| {
            copy.put(key, value);
            copy
        })),
    };
    let added = match (arguments.next(), arguments.next()) {
        (Some(key), Some(value)) => vec![(Key::of(&key).ok_or_else(Error::no_such_overload)?, value)],
        (Some(Value::Map(other)), None) => pairs(&other)?,
        _ => return Err(Error::no_such_overload()),
    };
    let entries = Arc::make_mut(&mut made);
    for (key, value) in added {
        if entries.find(&key).is_some() {
            return Err(Error::new(format!("insert failed: key {} already exists", key.value().shown())));
        }
        entries.put(key, value);
    }
    Ok(Value::Map(Map::Owned(made)))
}

fn pairs<'a>(map: &Map<'a>) -> Result<Vec<(Key<'a>, Value<'a>)>, Error> {
    let mut pairs = Vec::new();
    for key in map.keys() {
        if let (Some(known), Some(value)) = (Key::of(&key), map.find(&key, 0)?) {
            pairs.push((known, value));
        }
    }
    Ok(pairs)
}

fn found<'a>(call: &Call, text: &Text<'a>, pattern: &str, most: Option<&Value<'a>>) -> Part<'a> {
    let read;
    let pattern = match &call.pattern {
        Some(pattern) => pattern,
        None => {
            let of_match = call.function == "matches";
            let wrong =
                |why: String| Error::new(if of_match { why } else { format!("Illegal regex: {why}") });
            read = crate::pattern::Pattern::new(pattern).map_err(wrong)?;
            &read
        }
    };
    let most = match most {
        None => usize::MAX,
        Some(Value::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
        Some(_) => return Err(Error::no_such_overload()),
    };
    Ok(match call.function.as_str() {
        "matches" => Value::Bool(pattern.is_match(text)),
        "find" => Value::string(pattern.find(text).unwrap_or_default()),
        _ => Value::texts(pattern.find_all(text).take(most)),
    })
}
