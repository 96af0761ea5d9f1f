//! Tests of `kinds::built_in::enablement`.

use rowplane_objects::kinds::built_in::definitions;
use rowplane_objects::kinds::built_in::enablement::Enablement;

fn served(text: &str) -> Vec<String> {
    let enablement = Enablement::parse(text).expect(text);
    let served = definitions().into_iter().filter(|definition| enablement.serves(definition));
    served.map(|definition| format!("{}/{}", definition.api_version(), definition.plural)).collect()
}

#[test]
fn resources_go_before_versions_and_these_before_sets() {
    let all = served("api/all=true");
    assert_eq!(all.len(), definitions().len());
    assert_eq!(served("api/beta=true,api/alpha=true"), all);
    let usual = served("");
    let beta = |name: &&String| name.contains("beta");
    assert_eq!(usual, all.iter().filter(|name| !beta(name)).cloned().collect::<Vec<_>>());
    assert!(all.iter().any(|name| beta(&name)));
    let one = "admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies";
    assert_eq!(served(one).len(), usual.len() + 1);
    let core = served("api/all=false,api/v1=true");
    assert!(
        core.contains(&"v1/pods".to_owned()) && core.iter().all(|name| name.starts_with("v1/")),
        "{core:?}"
    );
    assert_eq!(served("api/all=false,api/ga=true").len(), usual.len() - served("api/ga=false").len());
    assert_eq!(served("api/all=false,/v1/pods=1"), ["v1/pods"]);
    assert_eq!(served("api/all=false,apps/v1=true,apps/v1/deployments=false,apps/v1/daemonsets=0").len(), 3);
    let without = served("autoscaling/v1=false");
    assert!(!without.iter().any(|name| name.starts_with("autoscaling/v1/")));
    assert!(without.contains(&"autoscaling/v2/horizontalpodautoscalers".to_owned()));
    assert!(!served("api/alpha=false").iter().any(|name| name.contains("alpha")));
}

#[test]
fn what_upstream_refuses_is_refused_in_its_words() {
    for (text, why) in [
        ("api/all=false", "invalid runtime-config with only api/all=false"),
        ("api/all=1", "invalid value api/all=1"),
        ("v1=true", "runtime-config invalid key v1"),
        ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
        (
            "example.com/v1=true,other.example.com/v2",
            "unknown api groups example.com/v1,other.example.com/v2",
        ),
        ("apps/v7=true", "group version apps/v7 that has not been registered"),
        (
            "apps/v1=yes",
            "invalid value of apps/v1: yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax",
        ),
        (
            "apps/v1/Deployments=true",
            "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \"Deployments\"",
        ),
    ] {
        assert_eq!(Enablement::parse(text), Err(why.to_owned()));
    }
}
