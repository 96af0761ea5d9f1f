//! `storage.k8s.io`.

use jiff::Timestamp;

use super::super::cell::{
    AGE, NAME, PLAIN, age, boolean_column, cells, flag, integer_column, list, name, optional_text, text,
    text_column,
};
use super::super::text::join;
use super::super::{Column, Printer};
use crate::tree::Value;

const DEFAULT_CLASS_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub static STORAGE_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Provisioner", "Driver that makes volumes of the class."),
        text_column("ReclaimPolicy", "What becomes of a volume when its claim is gone."),
        text_column("VolumeBindingMode", "When volumes are made and bound."),
        text_column("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    cells: storage_class_cells,
    ..PLAIN
};

pub static VOLUME_ATTRIBUTES_CLASS: Printer = Printer {
    columns: &[NAME, text_column("DriverName", "CSI driver that the class is for."), AGE],
    cells: |object, now| cells![name(object), text(&object["driverName"]), age(object, now)],
    ..PLAIN
};

pub static VOLUME_ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        Column { format: "name", ..text_column("Attacher", "Driver that attaches the volume.") },
        text_column("PV", "Volume to attach."),
        text_column("Node", "Node to attach the volume to."),
        boolean_column("Attached", "Whether the volume is attached."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![
            name(object),
            text(&spec["attacher"]),
            text(&spec["source"]["persistentVolumeName"]),
            text(&spec["nodeName"]),
            flag(&object["status"]["attached"]),
            age(object, now),
        ]
    },
    ..PLAIN
};

pub static CSI_NODE: Printer = Printer {
    columns: &[NAME, integer_column("Drivers", "Number of CSI drivers on the node."), AGE],
    cells: |object, now| cells![name(object), list(&object["spec"]["drivers"]).len(), age(object, now)],
    ..PLAIN
};

pub static CSI_DRIVER: Printer = Printer {
    columns: &[
        NAME,
        boolean_column("AttachRequired", "Whether volumes are attached before they are mounted."),
        boolean_column("PodInfoOnMount", "Whether the driver is told of the pod when it mounts."),
        boolean_column("StorageCapacity", "Whether the scheduler heeds the capacity the driver reports."),
        text_column("TokenRequests", "Audiences of the service account tokens that the driver gets."),
        boolean_column("RequiresRepublish", "Whether mounted volumes are published again and again."),
        text_column("Modes", "Volume life cycles that the driver supports."),
        AGE,
    ],
    cells: csi_driver_cells,
    ..PLAIN
};

fn storage_class_cells(class: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = &class["metadata"]["annotations"];
    let is_default = DEFAULT_CLASS_ANNOTATIONS.iter().any(|annotation| annotations[*annotation] == "true");
    cells![
        format!("{}{}", name(class), if is_default { " (default)" } else { "" }),
        text(&class["provisioner"]),
        optional_text(&class["reclaimPolicy"], "Delete"),
        optional_text(&class["volumeBindingMode"], "Immediate"),
        flag(&class["allowVolumeExpansion"]),
        age(class, now),
    ]
}

fn csi_driver_cells(driver: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &driver["spec"];
    let modes = list(&spec["volumeLifecycleModes"]);
    cells![
        name(driver),
        spec["attachRequired"].as_bool().unwrap_or(true),
        flag(&spec["podInfoOnMount"]),
        flag(&spec["storageCapacity"]),
        token_audiences(&spec["tokenRequests"]),
        flag(&spec["requiresRepublish"]),
        if modes.is_empty() { "<none>".to_owned() } else { join(modes.iter().map(text), ",") },
        age(driver, now),
    ]
}

fn token_audiences(requests: &Value) -> String {
    match requests.as_array() {
        Some(requests) => join(requests.iter().map(|request| text(&request["audience"])), ","),
        None => "<unset>".to_owned(),
    }
}
