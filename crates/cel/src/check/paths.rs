//! The members of a variable that an expression looks at.

use smol_str::SmolStr;

use super::{Checked, Reference};
use crate::syntax::ast::{Expr, Id};

impl Checked {
    /// The paths of members below a variable that the expression reads, as it spells them: `spec.a` of `v.spec.a[0].b > 1`.
    /// `None` if it looks at the variable as a whole.
    pub fn paths(&self, variable: &str) -> Option<Vec<Vec<SmolStr>>> {
        let mut paths = Vec::new();
        let mut seen = vec![false; self.ast.len()];
        let mut open = vec![self.ast.root];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            match self.path(id, variable) {
                Some(path) if path.is_empty() => return None,
                Some(path) => paths.push(path),
                None => open.extend(self.ast.expr(id).children()),
            }
        }
        Some(paths)
    }

    /// The members that are selected from the variable; `None` for another expression.
    fn path(&self, id: Id, variable: &str) -> Option<Vec<SmolStr>> {
        let (mut at, mut path) = (id, Vec::new());
        loop {
            match self.ast.expr(at) {
                Expr::Ident(name) if name == variable => {
                    if matches!(self.reference(at), Some(Reference::Local)) {
                        return None;
                    }
                    path.reverse();
                    return Some(path);
                }
                Expr::Select { operand, field, .. } => {
                    path.push(field.clone());
                    at = *operand;
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, Type, check};

    fn paths(text: &str) -> Option<Vec<String>> {
        let environment = Environment::default().with_variable("v", Type::Dyn);
        let paths = check(text, &environment).expect("it fits").paths("v")?;
        let mut paths: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
        paths.sort();
        paths.dedup();
        Some(paths)
    }

    #[test]
    fn an_expression_looks_at_few_members() {
        let few = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(paths("v.spec.a > 3 && has(v.spec.b)"), few(&["spec.a", "spec.b"]));
        assert_eq!(paths("v.spec.a.exists(x, x.b == v.c)"), few(&["c", "spec.a"]));
        assert_eq!(paths("v.m['k'].n == 1"), few(&["m"]));
        assert_eq!(paths("[1].exists(v, v == 1)"), few(&[]));
        assert_eq!(paths("v == 1"), None);
        assert_eq!(paths("v['spec'].a == 1"), None);
        assert_eq!(paths("v.?spec.hasValue()"), None);
    }
}
