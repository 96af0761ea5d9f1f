use crate::kinds::behavior::columns::Printer;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, age, cells, name, text, text_column};

pub static COLUMNS: Printer = Printer {
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
