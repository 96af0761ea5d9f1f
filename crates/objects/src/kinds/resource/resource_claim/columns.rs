//! Columns of ResourceClaims.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, count, deleting, text_column};
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("State", "Whether the claim is allocated and reserved.")
            .of(|object, _| claim_state(object).into()),
        AGE,
    ],
    ..PLAIN
};

fn claim_state(claim: &Value) -> &'static str {
    let status = &claim["status"];
    let (allocated, reserved) = (status["allocation"].is_object(), count(&status["reservedFor"]) > 0);
    match (deleting(claim), allocated, reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}
