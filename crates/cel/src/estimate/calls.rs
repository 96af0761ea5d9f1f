//! The worst-case costs of calls, and the sizes of their results.

use super::range::Range;
use super::sizes::{Part, Walk, is_list};
use crate::functions::Overload;
use crate::operators;
use crate::syntax::ast::{Expr, Id, Literal};
use crate::types::{Generic, Type};

const TENTH: f64 = 0.1;
/// The list of a selector's requirements, how many there may be for each letter, and what each takes.
const SELECTOR: u64 = 10;
const PER_LETTER: f64 = 0.5;
const PER_REQUIREMENT: f64 = 50.0;

pub struct Call<'a> {
    pub id: Id,
    pub name: &'a str,
    pub overload: &'a Overload,
    pub target: Option<&'a Part>,
    pub parts: &'a [Part],
    pub costs: &'a [Range],
}

/// The cost of a call, without that of its arguments except in [`Walk::overload`], and the size of its result.
type Estimate = (Range, Option<Range>);

impl Walk<'_> {
    pub fn overload(&mut self, call: &Call<'_>) -> Estimate {
        let arguments = call.costs.iter().fold(Range::exactly(0), |sum, cost| sum.plus(*cost));
        if call.name == operators::CONDITIONAL {
            let [condition, yes, no] = call.costs else { return (arguments, None) };
            let size = or_unknown(&call.parts[1]).union(or_unknown(&call.parts[2]));
            if let (Some(one), Some(other)) = (call.parts[1].expr, call.parts[2].expr) {
                self.join_entries(call.id, one, other);
            }
            return (condition.plus(yes.union(*no)), Some(size));
        }
        let (cost, size) =
            self.ext_lists(call).or_else(|| self.kubernetes(call)).unwrap_or_else(|| self.standard(call));
        (cost.plus(arguments), size)
    }

    /// The size of a part: what is known, or declared, or anything.
    fn estimate(&self, part: &Part) -> Range {
        part.size.or_else(|| self.declared(&part.path)).unwrap_or(Range::UNKNOWN)
    }

    /// cel-go `ext/{lists,sets}.go`.
    fn ext_lists(&self, call: &Call<'_>) -> Option<Estimate> {
        let allocating = |factor: f64, size: Range| {
            let cost = size.scaled(factor).plus(Range::exactly(11));
            Some((cost, Some(size)))
        };
        let square = |part: &Part| {
            let size = self.estimate(part);
            size.times(size)
        };
        let sorting = |of: Option<&Type>| match of.and_then(Type::as_applied).and_then(|of| of.to.first()) {
            Some(Type::String | Type::Bytes) => 2.1,
            _ => 2.0,
        };
        match (call.name, call.target, call.parts) {
            ("slice", Some(target), [from, to]) => {
                let size = self.estimate(target);
                let (from, to) = (self.literal(from, 0), self.literal(to, size.max));
                allocating(1.0, Range::exactly(to.wrapping_sub(from)))
            }
            ("lists.range", None, [count]) => allocating(1.0, Range::exactly(self.literal(count, u64::MAX))),
            ("reverse", Some(target), []) => allocating(1.0, self.estimate(target)),
            ("flatten", Some(target), []) => allocating(1.0, self.estimate(target)),
            ("flatten", Some(target), [depth]) => {
                allocating(self.literal(depth, u64::MAX) as f64, self.estimate(target))
            }
            ("distinct", Some(target), []) => allocating(2.0, square(target)),
            ("sort", Some(target), []) => {
                allocating(sorting(call.overload.arguments.first()), square(target))
            }
            ("@sortByAssociatedKeys", Some(_), [keys]) => {
                allocating(sorting(call.overload.arguments.get(1)), square(keys))
            }
            ("sets.contains" | "sets.intersects" | "sets.equivalent", _, [one, other]) => {
                let factor = if call.name == "sets.equivalent" { 2.0 } else { 1.0 };
                let cost = self.estimate(one).times(self.estimate(other)).scaled(factor);
                Some((cost.plus(Range::exactly(1)), None))
            }
            _ => None,
        }
    }

    /// A number that stands in the expression; below nothing is nothing.
    fn literal(&self, part: &Part, otherwise: u64) -> u64 {
        match part.expr.map(|id| self.checked.ast.expr(id)) {
            Some(Expr::Literal(Literal::Int(number))) => u64::try_from(*number).unwrap_or(0),
            _ => otherwise,
        }
    }

    /// `apiserver/pkg/cel/library/cost.go`.
    fn kubernetes(&self, call: &Call<'_>) -> Option<Estimate> {
        let one = Range::exactly(1);
        let first = || call.parts.first().map(|part| self.estimate(part));
        let tenth = |size: Range| (size.scaled(TENTH), None);
        Some(match (call.name, call.target) {
            ("check", _) => (Range::exactly(350_000), None),
            (
                "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
                | "allowed" | "reason" | "error" | "errored",
                _,
            ) => (one, None),
            // A selector is read, and has a requirement for so many letters.
            ("fieldSelector" | "labelSelector", Some(_)) if call.parts.len() == 1 => {
                let length = first()?;
                let requirements = length.scaled(PER_LETTER).scaled(PER_REQUIREMENT);
                (Range::exactly(SELECTOR).plus(length.scaled(TENTH)).plus(requirements), None)
            }
            ("includes", Some(target)) if self.elements(target).is_none() => (self.estimate(target), None),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes", Some(target)) => {
                (self.traversal(target), None)
            }
            ("url" | "jsonpatch.escapeKey", _) if call.parts.len() == 1 => (first()?.scaled(TENTH), first()),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target)) => {
                let size = self.estimate(target);
                (size.scaled(TENTH), Some(size))
            }
            ("replace", Some(target)) if call.parts.len() >= 2 => self.replace(target, call.parts),
            ("split", Some(target)) => {
                let size = self.estimate(target);
                let most = call.parts.get(1).map_or(size.max, |most| self.any_literal(most, size.max));
                (size.scaled(2.0 * TENTH), Some(Range { min: 0, max: most }))
            }
            ("join", Some(target)) => {
                let size = self.joined(target, call.parts.first());
                (size.scaled(TENTH), Some(size))
            }
            ("find" | "findAll", Some(target)) => {
                let size = self.estimate(target);
                let cost = size.plus(one).scaled(TENTH).times(first()?.scaled(0.25));
                (cost, Some(Range { min: 0, max: size.max }))
            }
            ("ip", _) if call.overload.member => (one, None),
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", _) => {
                tenth(first()?)
            }
            ("ip.isCanonical", _) => (first()?.scaled(2.0 * TENTH), None),
            ("containsIP" | "containsCIDR", _) => (self.contains(call)?, None),
            ("validate", _) => (first()?.scaled(TENTH).scaled(128.0 * 0.25), None),
            (
                "masked"
                | "prefixLength"
                | "family"
                | "isUnspecified"
                | "isLoopback"
                | "isLinkLocalMulticast"
                | "isLinkLocalUnicast"
                | "isGlobalUnicast"
                | "format.named"
                | "sign"
                | "asInteger"
                | "isInteger"
                | "asApproximateFloat"
                | "isGreaterThan"
                | "isLessThan"
                | "compareTo"
                | "add"
                | "sub"
                | "major"
                | "minor"
                | "patch"
                | "getScheme"
                | "getHostname"
                | "getHost"
                | "getPort"
                | "getEscapedPath"
                | "getQuery",
                _,
            ) => (one, None),
            (operators::EQUALS, _) => return self.equality(call),
            _ => return None,
        })
    }

    /// Any number that stands in the expression, as Go converts it.
    fn any_literal(&self, part: &Part, otherwise: u64) -> u64 {
        match part.expr.map(|id| self.checked.ast.expr(id)) {
            Some(Expr::Literal(Literal::Int(number))) => *number as u64,
            _ => otherwise,
        }
    }

    /// The elements of a list, as a part.
    fn elements(&self, list: &Part) -> Option<Part> {
        let of = list.of.as_applied()?.to.first()?.clone();
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".into());
        }
        Some(Part { path, of, expr: None, size: None })
    }

    fn traversal(&self, target: &Part) -> Range {
        let size = self.estimate(target);
        let Some(elements) = self.elements(target) else { return size.scaled(TENTH) };
        let each = match elements.of {
            Type::String | Type::Bytes => Range::exactly(1).plus(self.estimate(&elements).scaled(TENTH)),
            _ => Range::exactly(1),
        };
        size.times(each)
    }

    fn joined(&self, target: &Part, separator: Option<&Part>) -> Range {
        let count = self.estimate(target);
        let elements = self.elements(target).map(|elements| count.times(self.estimate(&elements)));
        let size = elements.unwrap_or_default();
        let Some(separator) = separator else { return size };
        let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
        size.plus(self.estimate(separator).times(between))
    }

    fn replace(&self, target: &Part, parts: &[Part]) -> Estimate {
        let (text, old, new) = (self.estimate(target), self.estimate(&parts[0]), self.estimate(&parts[1]));
        let (mut count, mut kept) = (Range::default(), Range::default());
        if old.min == 0 {
            count.max = text.max.saturating_add(1);
            kept.max = text.max;
        } else if new.max <= old.min {
            kept.max = text.max;
        } else {
            count.max = (text.max as f64 / old.min as f64).ceil() as u64;
        }
        if old.max == 0 {
            count.min = text.min.saturating_add(1);
            kept.min = text.min;
        } else if old.max <= new.min {
            kept.min = text.min;
        } else {
            count.min = (text.min as f64 / old.max as f64).ceil() as u64;
        }
        (text.scaled(2.0 * TENTH), Some(count.times(new).plus(kept)))
    }

    fn contains(&self, call: &Call<'_>) -> Option<Range> {
        let size = Range { min: 4, max: 16 };
        let mut cost = size.plus(size).scaled(TENTH);
        if call.name == "containsCIDR" {
            cost = cost.plus(size.scaled(TENTH)).plus(Range::exactly(1));
        }
        let argument = call.parts.first()?;
        if call.overload.arguments.get(1) == Some(&Type::String) {
            cost = cost.plus(self.estimate(argument).scaled(TENTH));
        }
        Some(cost)
    }

    /// The estimate of `==` for two values of a type with its own equality, such as quantities; `None` for others.
    fn equality(&self, call: &Call<'_>) -> Option<Estimate> {
        let [one, other] = call.parts else { return None };
        if one.of != other.of {
            return None;
        }
        Some(match &one.of {
            Type::Applied(of) => match &of.of {
                Generic::Opaque(name) if matches!(name.as_str(), "net.IP" | "net.CIDR") => {
                    (Range::exactly(1), None)
                }
                _ => return None,
            },
            Type::Struct(name) => match name.as_str() {
                "kubernetes.Quantity" | "kubernetes.Semver" => (Range::exactly(1), None),
                "kubernetes.NamedFormat" => (Range { min: 1, max: 64 }.scaled(TENTH), None),
                "kubernetes.URL" => {
                    let most = other.size.map_or(1, |size| size.max);
                    (Range { min: 1, max: most }.scaled(TENTH), None)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// cel-go `checker/cost.go`.
    fn standard(&mut self, call: &Call<'_>) -> Estimate {
        let size = |at: usize| call.parts.get(at).map_or(Range::UNKNOWN, or_unknown);
        let first = call.overload.arguments.first();
        let is_text = matches!(first, Some(Type::String | Type::Bytes));
        match (call.name, call.target) {
            ("format", Some(target)) => (or_unknown(target).scaled(TENTH), None),
            ("bytes", _) if first == Some(&Type::String) => {
                let of = size(0);
                (of.scaled(TENTH), Some(Range { min: of.min, max: of.max.wrapping_mul(4) }))
            }
            ("string", _) if first == Some(&Type::Bytes) => {
                let of = size(0);
                (of.scaled(TENTH), Some(Range { min: of.min / 4, max: of.max }))
            }
            ("strings.quote", _) => {
                let of = size(0);
                let most = of.max.wrapping_mul(2).wrapping_add(2);
                (of.scaled(TENTH), Some(Range { min: of.min + 2, max: most }))
            }
            ("startsWith" | "endsWith", _) => (size(0).scaled(TENTH), None),
            (operators::IN, _) if call.overload.arguments.get(1).is_some_and(is_list) => (size(1), None),
            ("matches", target) => {
                let (text, pattern) = match target {
                    Some(target) => (or_unknown(target), size(0)),
                    None => (size(0), size(1)),
                };
                let cost = text.plus(Range::exactly(1)).scaled(TENTH).times(pattern.scaled(0.25));
                (cost, None)
            }
            ("contains", Some(target)) => {
                (or_unknown(target).scaled(TENTH).times(size(0).scaled(TENTH)), None)
            }
            (operators::ADD, _) if is_text || first.is_some_and(is_list) => {
                if let (Some(one), Some(other)) = (call.parts[0].expr, call.parts[1].expr) {
                    self.join_entries(call.id, one, other);
                }
                let sum = size(0).plus(size(1));
                (if is_text { sum.scaled(TENTH) } else { Range::exactly(1) }, Some(sum))
            }
            (operators::EQUALS | operators::NOT_EQUALS, _) => (smaller(size(0), size(1)), None),
            (
                operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS,
                _,
            ) if is_text => (smaller(size(0), size(1)), None),
            _ => (Range::exactly(1), None),
        }
    }
}

fn or_unknown(part: &Part) -> Range {
    part.size.unwrap_or(Range::UNKNOWN)
}

fn smaller(one: Range, other: Range) -> Range {
    let max = one.max.min(other.max);
    Range { min: u64::from(max > 0), max }.scaled(TENTH)
}
