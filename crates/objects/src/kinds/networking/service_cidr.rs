//! ServiceCIDRs: ranges from which addresses of Services are taken.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, list, text, text_column};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::behavior::rules::ip;
use crate::kinds::behavior::rules::same::IMMUTABLE;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("servicecidrs", "ServiceCIDR").sub(&["status"]),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    ranges(&spec.get("cidrs"), errors);
}

fn ranges(list: &At<'_, '_>, errors: &mut Errors) {
    match list.len() {
        0 => return errors.required(list, "at least one CIDR required"),
        1 | 2 => {}
        _ => {
            let shown =
                crate::kinds::behavior::rules::errors::Verbatim(format!("{{\"CIDRs\":{}}}", list.value()));
            return errors.invalid(list, shown, "may only hold up to 2 values");
        }
    }
    for range in list.items() {
        ip::canonical_range(&range, range.text(), errors);
    }
    let families: Vec<Option<bool>> =
        list.texts().map(|text| ip::parse_range(text).map(|(ip, _)| ip.is_ipv6())).collect();
    if let [Some(first), Some(second)] = families.as_slice()
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(list, list.value(), why);
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    let (list, before) = (spec.get("cidrs"), old.get("cidrs"));
    let changed = || list.items().zip(before.texts()).filter(|(new, old)| new.text() != *old);
    match (before.len(), list.len()) {
        (old, new) if old == new => {
            for (range, _) in changed() {
                errors.invalid(&range, range.text(), IMMUTABLE);
            }
        }
        (1, 2) => {
            for (range, _) in changed() {
                errors.invalid(&range, range.text(), IMMUTABLE);
            }
            ranges(&list, errors);
        }
        _ => errors.invalid(&list, list.value(), IMMUTABLE),
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("CIDRs", "Ranges that cluster IPs are taken from.")
            .of(|object, _| join(list(&object["spec"]["cidrs"]).iter().map(text), ",").into()),
        AGE,
    ],
    ..PLAIN
};
