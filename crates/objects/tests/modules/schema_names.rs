//! Tests of `schema::names`.

use rowplane_objects::schema::names::GroupResource;
use rowplane_objects::schema::names::GroupVersion;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::names::Gvr;

#[test]
fn names_have_one_form_however_they_came() {
    const DEPLOYMENT: Gvk = Gvk::fixed("apps/v1", "Deployment");
    assert_eq!(Gvk::parse("apps/v1", "Deployment"), Ok(DEPLOYMENT));
    assert_eq!(GroupVersion::new("apps", "v1").with_kind("Deployment"), DEPLOYMENT);
    assert_eq!((DEPLOYMENT.group().as_str(), DEPLOYMENT.version()), ("apps", "v1"));
    assert_eq!(DEPLOYMENT.to_string(), "apps/v1, Kind=Deployment");
    let pods = Gvr::fixed("v1", "pods");
    assert_eq!(GroupVersion::new("", "v1").with_plural("pods"), pods);
    assert_eq!((pods.group().as_str(), pods.version(), &*pods.to_string()), ("", "v1", "/v1, Resource=pods"));
    assert_eq!(pods.group_resource(), GroupResource::new("", "pods"));
}

#[test]
fn an_api_version_has_one_slash_at_most() {
    let error = GroupVersion::parse("a/b/c").expect_err("two slashes");
    assert_eq!(error.to_string(), "unexpected GroupVersion string: a/b/c");
    for (text, group, version) in [("", "", ""), ("v1", "", "v1"), ("/v1", "", "v1"), ("apps/", "apps", "")] {
        let parsed = GroupVersion::parse(text).expect(text);
        assert_eq!(
            (parsed.group().as_str(), parsed.version(), parsed.api_version().as_str()),
            (group, version, text.trim_start_matches('/'))
        );
    }
}
