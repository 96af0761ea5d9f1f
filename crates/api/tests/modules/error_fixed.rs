//! Tests of `error::fixed`.

use rowplane_api::error::Error;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::names::GroupKind;
use rowplane_objects::schema::names::GroupResource;

#[test]
fn texts() {
    let widgets = || GroupResource::new("example.com", "widgets");
    let pod = || GroupKind::new("", "Pod");
    let cases = [
        (
            Error::modified(widgets(), "x"),
            "Operation cannot be fulfilled on widgets.example.com \"x\": the object has been modified; please apply your changes to the latest version and try again",
        ),
        (
            Error::uid_precondition(pod(), "n", "A", "B"),
            "Operation cannot be fulfilled on Pod \"n\": the UID in the precondition (A) does not match the UID in record (B). The object might have been deleted and then recreated",
        ),
        (
            Error::revision_precondition(pod(), "n", "1", "2"),
            "Operation cannot be fulfilled on Pod \"n\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). The object might have been modified",
        ),
        (
            Error::revision_required(&widgets(), "x"),
            "widgets.example.com \"x\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        ),
        (
            Error::expired_page(None),
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        ),
        (
            Error::undecodable_patch("{\"a\":1}", "no"),
            " \"\" is invalid: patch: Invalid value: \"{\\\"a\\\":1}\": no",
        ),
        (Error::expired_watch(Revision(3), Revision(9)), "too old resource version: 3 (9)"),
    ];
    for (error, want) in cases {
        assert_eq!(error.to_string(), want);
    }
}
