//! Compares. All of a transaction, those of nested ones too, are judged on the state before it.

use std::cmp::Ordering;

use crate::engine::interval::Interval;
use crate::engine::keys::Kv;
use crate::engine::state::State;
use crate::wire::messages::{Compare, CompareResult, CompareTarget, TargetUnion};

/// Whether a compare holds. With a range, it has to for every key of it; a range without keys counts as a missing key.
pub fn holds(state: &State, compare: &Compare) -> bool {
    let mut keys = state.keys.range(&interval(compare)).peekable();
    if keys.peek().is_none() {
        return holds_for(None, compare);
    }
    keys.all(|kv| holds_for(Some(kv), compare))
}

pub fn interval(compare: &Compare) -> Interval {
    Interval::new(&compare.key, &compare.range_end)
}

fn holds_for(kv: Option<&Kv>, compare: &Compare) -> bool {
    let number = |of: fn(&Kv) -> i64| kv.map_or(0, of);
    let wanted = compare.target_union.as_ref();
    // A target that is not the one told by its number counts as zero.
    let ordering = match CompareTarget::try_from(compare.target) {
        Ok(CompareTarget::Value) => {
            let Some(kv) = kv else { return false };
            match wanted {
                Some(TargetUnion::Value(value)) => kv.value.cmp(value),
                _ => kv.value[..].cmp(&[]),
            }
        }
        Ok(CompareTarget::Version) => number(|kv| kv.version).cmp(&match wanted {
            Some(TargetUnion::Version(version)) => *version,
            _ => 0,
        }),
        Ok(CompareTarget::Create) => number(|kv| kv.create_revision).cmp(&match wanted {
            Some(TargetUnion::CreateRevision(revision)) => *revision,
            _ => 0,
        }),
        Ok(CompareTarget::Mod) => number(|kv| kv.mod_revision).cmp(&match wanted {
            Some(TargetUnion::ModRevision(revision)) => *revision,
            _ => 0,
        }),
        Ok(CompareTarget::Lease) => number(|kv| kv.lease).cmp(&match wanted {
            Some(TargetUnion::Lease(lease)) => *lease,
            _ => 0,
        }),
        Err(_) => Ordering::Equal,
    };
    match CompareResult::try_from(compare.result) {
        Ok(CompareResult::Equal) => ordering == Ordering::Equal,
        Ok(CompareResult::NotEqual) => ordering != Ordering::Equal,
        Ok(CompareResult::Greater) => ordering == Ordering::Greater,
        Ok(CompareResult::Less) => ordering == Ordering::Less,
        // As etcd does with a result that it does not know.
        Err(_) => true,
    }
}
