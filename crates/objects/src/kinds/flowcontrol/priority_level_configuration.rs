//! PriorityLevelConfigurations: how many requests may run, and how many wait (`pkg/apis/flowcontrol/validation`).

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, age, cells, integer, name, text, text_column};
use crate::kinds::behavior::strategy::status::StatusMetadata;
use crate::kinds::flowcontrol::bootstrap;
use crate::kinds::flowcontrol::shared::{mandatory, status};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("prioritylevelconfigurations", "PriorityLevelConfiguration")
        .sub(&["status"])
        .generation(),
    strategy: Strategy { status_metadata: StatusMetadata::Closed, ..Strategy::PLAIN },
    rules: Rules::timeless(create).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const QUEUES_MAX: i64 = 10_000_000;

/// The number of bits in the hash that chooses queues.
const HASH_BITS: u32 = 60;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    const PRESERVE: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    let annotations = metadata.get("annotations");
    if annotations.key(PRESERVE).is_set() {
        errors.forbidden(&annotations, &format!("annotation '{PRESERVE}' is forbidden"));
    }
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (metadata.get("name").text() == "exempt") != (kind.text() == "Exempt") {
        errors.invalid(&kind, kind.text(), "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => {
            shares(&exempt, errors);
        }
        "Limited" if limited.is_set() => self::limited(&limited, errors),
        "Limited" | "" => {}
        other => errors.not_supported(&kind, other, &["Exempt", "Limited"]),
    }
    mandatory(object, bootstrap::levels(), errors);
    status(object, object, errors);
}

fn shares(at: &At<'_, '_>, errors: &mut Errors) {
    let (nominal, lendable) = (at.get("nominalConcurrencyShares"), at.get("lendablePercent"));
    if nominal.int() < 0 {
        errors.invalid(&nominal, nominal.int(), "must be a non-negative integer");
    }
    if lendable.is_set() {
        errors.within(&lendable, 0, 100);
    }
}

pub fn limited(at: &At<'_, '_>, errors: &mut Errors) {
    shares(at, errors);
    let response = at.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" => {}
        "Queue" if queuing.is_set() => queues(&queuing, errors),
        "Queue" | "" => {}
        other => errors.not_supported(&kind, other, &["Queue", "Reject"]),
    }
    let borrowing = at.get("borrowingLimitPercent");
    if borrowing.int() < 0 {
        errors.invalid(&borrowing, borrowing.int(), "if specified, must be a non-negative integer");
    }
}

fn queues(at: &At<'_, '_>, errors: &mut Errors) {
    let (length, queues, hand) = (at.get("queueLengthLimit"), at.get("queues"), at.get("handSize"));
    // Defaults replace zeros.
    let or = |at: &At<'_, '_>, default| if at.int() == 0 { default } else { at.int() };
    let (length_number, count, size) = (or(&length, 50), or(&queues, 64), or(&hand, 8));
    if length_number < 0 {
        errors.invalid(&length, length_number, "must be positive");
    }
    if count < 0 {
        errors.invalid(&queues, count, "must be positive");
    } else if count > QUEUES_MAX {
        errors.invalid(&queues, count, &format!("must not be greater than {QUEUES_MAX}"));
    }
    if size < 0 {
        errors.invalid(&hand, size, "must be positive");
    } else if size > count {
        errors.invalid(&hand, size, &format!("should not be greater than queues ({count})"));
    } else if entropy_bits(count, size) > HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {count} and handSize {size} should not be greater than {HASH_BITS}"
        );
        errors.invalid(&hand, size, &why);
    }
}

/// How many bits it takes to choose `hand` of `deck` queues.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    (((deck as f64).log2() * hand as f64).ceil()) as u32
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Type", "Whether the level is limited."),
        text_column("NominalConcurrencyShares", "Share of the server's concurrency."),
        text_column("Queues", "Number of queues."),
        text_column("HandSize", "Queues among which a flow is dealt."),
        text_column("QueueLengthLimit", "Requests that may wait in a queue."),
        AGE,
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(level: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &level["spec"];
    let limited = &spec["limited"];
    let queuing = &limited["limitResponse"]["queuing"];
    cells![
        name(level),
        text(&spec["type"]),
        number_of(limited, "nominalConcurrencyShares"),
        number_of(queuing, "queues"),
        number_of(queuing, "handSize"),
        number_of(queuing, "queueLengthLimit"),
        age(level, now),
    ]
}

/// A number; `<none>` only if its struct is absent.
fn number_of(parent: &Value, field: &str) -> Value {
    if parent.is_object() { integer(&parent[field]).into() } else { "<none>".into() }
}
