//! The values that a JSON patch has changed.

use std::collections::HashMap;

use crate::codec::depth::MAX_DEPTH;
use crate::tree::Value;

/// The paths of a patch as a tree, since thousands of operations share their first steps.
#[derive(Default)]
struct Touched(HashMap<String, Touched>);

impl Touched {
    fn by(patch: &Value) -> Self {
        let mut root = Self::default();
        for operation in patch.as_array().into_iter().flatten() {
            for path in ["path", "from"].iter().filter_map(|name| operation.get(*name)?.as_str()) {
                let steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
                // No result is deeper than this, however long a path is.
                steps.take(MAX_DEPTH + 1).fold(&mut root, |at, step| at.0.entry(step).or_default());
            }
        }
        root
    }

    fn sort(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        if let Value::Object(members) = value {
            members.sort_keys();
        }
        for (step, below) in &self.0 {
            let found = match value {
                Value::Object(members) => members.get_mut(step),
                Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get_mut(index)),
                _ => None,
            };
            if let Some(found) = found {
                below.sort(found);
            }
        }
    }
}

/// Sorts the objects of a result that lie on the patch's paths, since Go prints them so.
pub fn sort_touched(result: &mut Value, patch: &Value) {
    Touched::by(patch).sort(result);
}
