//! Type variables, and the types that they turn out to be (cel-go `checker/types.go`).

use std::collections::HashMap;

use smol_str::{SmolStr, format_smolstr};

use crate::types::{Applied, Generic, Type};

#[derive(Default)]
pub struct Substitution {
    known: HashMap<SmolStr, Type>,
    /// The former types of the variables that an attempt has changed, in the order of the changes, for their undoing.
    before: Vec<(SmolStr, Option<Type>)>,
    fresh: usize,
}

/// The result of unifying a type with a type variable. `known`: the variable had a type before, or is that type itself.
struct Taken {
    valid: bool,
    known: bool,
}

impl Substitution {
    pub fn fresh(&mut self) -> Type {
        self.fresh += 1;
        Type::Param(format_smolstr!("_var{}", self.fresh))
    }

    /// Whether values of the other types fit, each in its place; what is learned stays only if all do.
    pub fn fit_all(&mut self, to: &[Type], from: &[Type]) -> bool {
        self.before.clear();
        let fits = self.all_assignable(to, from);
        if !fits {
            for (name, old) in self.before.drain(..).rev() {
                match old {
                    Some(old) => self.known.insert(name, old),
                    None => self.known.remove(&name),
                };
            }
        }
        fits
    }

    pub fn fits(&mut self, to: &Type, from: &Type) -> bool {
        self.fit_all(std::slice::from_ref(to), std::slice::from_ref(from))
    }

    /// The type with all that is known of it.
    pub fn resolve(&self, of: &Type) -> Type {
        self.replace(of, false)
    }

    /// The same, and what is not known may be anything.
    pub fn settle(&self, of: &Type) -> Type {
        self.replace(of, true)
    }

    fn replace(&self, of: &Type, settle: bool) -> Type {
        match of {
            Type::Param(name) => match self.known.get(name) {
                Some(known) => self.replace(known, settle),
                None if settle => Type::Dyn,
                None => of.clone(),
            },
            Type::Applied(applied) if applied.open => {
                let to = applied.to.iter().map(|part| self.replace(part, settle));
                Type::applied(applied.of.clone(), to.collect())
            }
            _ => of.clone(),
        }
    }

    fn learn(&mut self, name: &SmolStr, is: Type) {
        let old = self.known.insert(name.clone(), is);
        self.before.push((name.clone(), old));
    }

    fn all_assignable(&mut self, to: &[Type], from: &[Type]) -> bool {
        to.len() == from.len() && to.iter().zip(from).all(|(to, from)| self.assignable(to, from))
    }

    fn assignable(&mut self, to: &Type, from: &Type) -> bool {
        if let Type::Param(name) = from {
            let taken = self.take(to, name, from);
            if taken.valid || taken.known {
                return taken.valid;
            }
        }
        if let Type::Param(name) = to {
            return self.take(from, name, to).valid;
        }
        let anything = |of: &Type| of.is_unknown() || *of == Type::Error;
        if anything(to) || anything(from) {
            return true;
        }
        match (to, from) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Applied(to), Type::Applied(from)) if to.of == from.of => {
                to.of == Generic::Type || self.all_assignable(&to.to, &from.to)
            }
            _ => to == from,
        }
    }

    /// Unifies a type with a type variable.
    fn take(&mut self, is: &Type, name: &SmolStr, param: &Type) -> Taken {
        if is == param {
            return Taken { valid: true, known: true };
        }
        if let Some(known) = self.known.get(name).cloned() {
            if *is == known {
                return Taken { valid: true, known: true };
            }
            let valid = self.assignable(is, &known);
            if valid {
                let general = most_general(is, &known);
                if !self.mentions(general, param) {
                    self.learn(name, general.clone());
                }
            }
            return Taken { valid, known: true };
        }
        let valid = !self.mentions(is, param);
        if valid {
            self.learn(name, is.clone());
        }
        Taken { valid, known: false }
    }

    fn mentions(&self, within: &Type, param: &Type) -> bool {
        match within {
            _ if within == param => true,
            Type::Param(name) => self.known.get(name).is_some_and(|known| self.mentions(known, param)),
            Type::Applied(applied) if applied.open => {
                applied.to.iter().any(|part| self.mentions(part, param))
            }
            _ => false,
        }
    }
}

fn is_nullable(of: &Type) -> bool {
    match of {
        Type::Null | Type::Any | Type::Struct(_) | Type::Duration | Type::Timestamp => true,
        Type::Applied(applied) => matches!(applied.of, Generic::Opaque(_)),
        _ => false,
    }
}

pub fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_no_more_specific(one, other) { one } else { other }
}

fn is_no_more_specific(one: &Type, other: &Type) -> bool {
    let open = |of: &Type| of.is_unknown() || matches!(of, Type::Param(_));
    if open(one) || open(other) {
        return open(one);
    }
    match (one, other) {
        (Type::Applied(one), Type::Applied(other)) => {
            let Applied { of, to, .. } = &**one;
            let inner = || to.iter().zip(&other.to).all(|(one, other)| is_no_more_specific(one, other));
            *of == other.of && (*of == Generic::Type || to.len() == other.to.len() && inner())
        }
        _ => one == other,
    }
}
