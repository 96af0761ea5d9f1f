//! The capacity of a device, and the portions in which it is allocated.

use crate::kinds::behavior::rules::resource::{nanos, shown};
use crate::kinds::prelude::*;
use crate::quantity::units;

const COUNTERS: usize = 32;

const OPTIONS: usize = 10;

/// Validates a capacity. `shared` devices can be allocated to several claims, in portions.
pub fn validate(at: &At<'_, '_>, shared: bool, errors: &mut Errors) {
    let policy = at.get("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !shared {
        return errors.forbidden(&policy, "allowMultipleAllocations must be true");
    }
    let (options, range, default) =
        (policy.get("validValues"), policy.get("validRange"), policy.get("default"));
    let total = at.get("value");
    match (!options.is_empty(), range.is_set()) {
        (true, true) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.forbidden(&policy, why);
        }
        (true, false) if !default.is_set() => {
            errors.required(&default, "required when validValues is defined");
        }
        (false, true) if !default.is_set() => {
            errors.required(&default, "required when validRange is defined");
        }
        (true, false) => self::options(&options, &default, &total, errors),
        (false, true) => self::range(&range, &default, &total, errors),
        (false, false) => {}
    }
}

pub fn options(list: &At<'_, '_>, default: &At<'_, '_>, total: &At<'_, '_>, errors: &mut Errors) {
    let amounts: Vec<i128> = list.items().map(|option| nanos(&option)).collect();
    for (index, _) in amounts.windows(2).enumerate().filter(|(_, pair)| pair[0] > pair[1]) {
        let option = list.index(index + 1);
        errors.invalid(&option, &*shown(&option), "values must be sorted in ascending order");
    }
    if list.len() > OPTIONS {
        errors.too_many(list, list.len(), OPTIONS);
    } else {
        for (index, option) in list.items().enumerate() {
            if amounts[index] > nanos(total) {
                let why = format!("option is larger than capacity value: {}", shown(total));
                errors.invalid(&option, &*shown(&option), &why);
            }
        }
        for (index, option) in list.items().enumerate() {
            // Upstream compares amounts in whole units.
            let key = units(amounts[index]);
            if amounts[..index].iter().any(|before| units(*before) == key) {
                errors.duplicate(&option, &*key.to_string());
            }
        }
    }
    if list.len() > OPTIONS || !amounts.contains(&nanos(default)) {
        errors.invalid(list, &*shown(default), "default value is not valid according to the requestPolicy");
    }
}

pub fn range(at: &At<'_, '_>, default: &At<'_, '_>, total: &At<'_, '_>, errors: &mut Errors) {
    let (min, max, step) = (at.get("min"), at.get("max"), at.get("step"));
    if !min.is_set() {
        return errors.required(&min, "required when validRange is defined");
    }
    let mut check = |at: &At<'_, '_>, wrong: bool, value: &At<'_, '_>, why: &str, other: &At<'_, '_>| {
        if wrong {
            errors.invalid(at, &*shown(value), &format!("{why}: {}", shown(other)));
        }
    };
    check(&min, nanos(&min) > nanos(total), &min, "min is larger than capacity value", total);
    check(&at.get("default"), nanos(default) < nanos(&min), default, "default is less than min", &min);
    if max.is_set() {
        check(&max, nanos(&min) > nanos(&max), &min, "min is larger than max", &max);
        check(&max, nanos(&max) > nanos(total), &max, "max is larger than capacity value", total);
        check(&at.get("default"), nanos(default) > nanos(&max), default, "default is more than max", &max);
    }
    if !step.is_set() {
        return;
    }
    if nanos(&step) <= 0 {
        return errors.invalid(&step, &*shown(&step), "must be greater than zero");
    }
    let (least, one) = (shown(&min), shown(&step));
    let reached = crate::quantity::sum(&least, &one).unwrap_or_default();
    if nanos(&min) + nanos(&step) > nanos(total) {
        let why = format!("one step {reached} is larger than capacity value: {}", shown(total));
        errors.invalid(&step, &*one, &why);
    }
    let default = at.get("default").holding(default.value());
    let bounds = [Some(default), Some(min), max.is_set().then_some(max), Some(step)];
    let mut is_safe = true;
    for bound in bounds.into_iter().flatten() {
        is_safe &= in_whole_numbers(&bound, errors);
    }
    if !is_safe {
        return;
    }
    for value in [Some(default), max.is_set().then_some(max)].into_iter().flatten() {
        let (distance, width) = (units(nanos(&value)) - units(nanos(&min)), units(nanos(&step)));
        if distance % width != 0 {
            let why = format!("value is not a multiple of a given step ({one}) from ({least})");
            errors.invalid(&step, &*shown(&value), &why);
        }
    }
}

/// Validates an amount that upstream counts with as 64 bits.
fn in_whole_numbers(at: &At<'_, '_>, errors: &mut Errors) -> bool {
    const UNIT: i128 = 1_000_000_000;
    let why = match nanos(at) {
        amount if amount < 0 => "must be greater than or equal to 0",
        amount if amount > i128::from(i64::MAX) * UNIT => "must not be larger than 9223372036854775807",
        _ => return true,
    };
    errors.invalid(at, &*shown(at), why);
    false
}

/// Validates the counters that several devices share, by name.
pub fn counters(map: &At<'_, '_>, errors: &mut Errors) {
    errors.at_most(map, COUNTERS);
}
