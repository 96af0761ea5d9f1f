use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, age, cells, integer, integer_column, name};
use crate::kinds::behavior::columns::{Column, Printer};

pub static COLUMNS: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        integer_column("Desired", "Replicas that are wanted."),
        integer_column("Available", "Replicas that exist."),
        AGE,
    ],
    cells: |object, now| {
        let (desired, available) = (&object["spec"]["replicas"], &object["status"]["replicas"]);
        cells![name(object), integer(desired), integer(available), age(object, now)]
    },
    ..PLAIN
};
