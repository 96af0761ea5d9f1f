//! Tests of `flowcontrol::bootstrap`.

use rowplane_objects::kinds::flowcontrol::bootstrap::{flows, levels};
use rowplane_objects::kinds::prelude::*;

/// The objects of a kube-apiserver 1.37.2 after its first start.
#[test]
fn objects_are_upstreams() {
    let file = include_str!("../../../../testdata/flowcontrol/bootstrap.json");
    let file: Value = serde_json::from_str(file).expect("JSON");
    for (list, objects) in
        [("flowschemas", flows().collect::<Vec<_>>()), ("prioritylevelconfigurations", levels().collect())]
    {
        let expected = file[list].as_array().expect("a list");
        assert_eq!(expected.len(), objects.len());
        for expected in expected {
            let name = expected["name"].as_str().expect("a name");
            let object = objects.iter().find(|object| object.name() == name).expect(name);
            assert_eq!(*object.spec(), expected["spec"], "{name}");
            assert_eq!(object.object["metadata"]["annotations"], expected["annotations"], "{name}");
        }
    }
}
