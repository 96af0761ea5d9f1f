//! Leases and the candidates for them.

use super::super::Printer;
use super::super::cell::{AGE, NAME, PLAIN, age, cells, name, text, text_column};

pub static LEASE: Printer = Printer {
    columns: &[NAME, text_column("Holder", "Who holds the lease."), AGE],
    cells: |object, now| cells![name(object), text(&object["spec"]["holderIdentity"]), age(object, now)],
    ..PLAIN
};

pub static LEASE_CANDIDATE: Printer = Printer {
    columns: &[
        NAME,
        text_column("LeaseName", "Lease that the candidate stands for."),
        text_column("BinaryVersion", "Version of the candidate's binary."),
        text_column("EmulationVersion", "Version that the candidate behaves like."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![
            name(object),
            text(&spec["leaseName"]),
            text(&spec["binaryVersion"]),
            text(&spec["emulationVersion"]),
            age(object, now),
        ]
    },
    ..PLAIN
};
