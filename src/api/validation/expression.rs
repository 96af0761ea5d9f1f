//! CEL expressions: whether they can be read. What they are about is not looked into: neither names nor types nor costs.

use cel::parser::{ParseError, Parser};

use super::at::At;
use super::errors::Errors;

/// Deeper ones are refused; upstream reads 250 levels.
const DEPTH: u16 = 96;
/// Longer ones are not looked at: every operator of a chain may cost a frame of the parser's.
const LONGEST: usize = 16 * 1024;
/// Enough for the longest, of which only that becomes memory what is used.
const STACK: usize = 128 << 20;

/// Tells what cannot be read. Whether an expression has to be there is the caller's.
pub fn validate(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.text().trim().is_empty() {
        validate_also_blank(at, errors);
    }
}

/// As [`validate`], where nothing but the expression itself says that it has to be there.
pub fn validate_also_blank(at: &At<'_, '_>, errors: &mut Errors) {
    if let Some(why) = problem(at.text()) {
        errors.invalid(at, at.text(), &why);
    }
}

/// What is wrong with an expression, as cel-go prints it.
pub fn problem(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return None;
    }
    let errors = std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || errors(text));
        // A server without threads to spare has other troubles.
        parser.ok().and_then(|parser| parser.join().ok()).unwrap_or_default()
    });
    let shown = |Problem { line, column, message }: &Problem| {
        // Nothing has no first column.
        let column = if text.is_empty() { &0 } else { column };
        let source = line.checked_sub(1).and_then(|row| text.split('\n').nth(row)).unwrap_or_default();
        let (source, dots) = (source.replace('\t', " "), ".".repeat(column.saturating_sub(1)));
        format!("ERROR: <input>:{line}:{column}: {message}\n | {source}\n | {dots}^")
    };
    let errors: Vec<String> = errors.iter().map(shown).collect();
    (!errors.is_empty()).then(|| format!("compilation failed: {}", errors.join("\n")))
}

struct Problem {
    line: usize,
    column: usize,
    message: String,
}

fn errors(text: &str) -> Vec<Problem> {
    let parser = Parser::new().max_recursion_depth(DEPTH).enable_optional_syntax(true);
    let errors = parser.parse(text).err().map(|errors| errors.errors).unwrap_or_default();
    let number = |number: isize| usize::try_from(number).unwrap_or_default();
    let problem = |error: ParseError| {
        let (line, column) = error.pos;
        // The crate tells this one as its own struct.
        let deep = error.msg.contains("Recursion limit of ");
        let message = if deep { format!("expression recursion limit exceeded: {DEPTH}") } else { error.msg };
        Problem { line: number(line), column: number(column), message }
    };
    errors.into_iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn expressions_that_can_be_read() {
        for text in [
            "true",
            "object.spec.replicas <= 5 && has(object.metadata.labels)",
            "self.items.all(item, item.name.startsWith('a'))",
            "self.pairs.all(key, value, key != value)",
            "[{'op': 'add'}].exists_one(patch, patch.?op.orValue('') == 'add')",
            "{?'a': optional.none()}",
            "device.attributes['gpu.example.com'].model == \"big\"",
            "JSONPatch{op: 'add', path: '/a'}",
        ] {
            assert_eq!(problem(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_shown() {
        let why = problem("a &&\n\t)").expect("wrong");
        assert!(why.starts_with("compilation failed: ERROR: <input>:2:2: Syntax error: "), "{why}");
        assert!(why.ends_with("\n |  )\n | .^"), "{why}");
        assert!(problem("object.spec.").is_some());
        assert!(problem("'open").is_some());
    }

    #[test]
    fn no_expression_needs_more_stack_than_there_is() {
        let limit = "expression recursion limit exceeded: 96";
        let nested =
            [("(", ")"), ("[", "]"), ("f(", ")"), ("{1: ", "}"), ("a ? b : ", ""), ("a.all(b, ", ")")];
        for (open, close) in nested {
            let nest = |depth| problem(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
            assert_eq!(nest(50), None, "{open}");
            assert!(nest(1000).is_some_and(|why| why.contains(limit)), "{open}");
        }
        for link in ["a+", "a&&", "a.", "a[0].b.c().", "!", "-"] {
            let text = format!("{}a", link.repeat((super::LONGEST - 1) / link.len()));
            assert_eq!(problem(&text), None, "{link}");
        }
    }
}
