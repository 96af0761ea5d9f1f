use super::*;
use crate::tree::json;

const TO: ServicePort<'_> = ServicePort { namespace: "n", name: "hook", port: 443 };

fn map(value: Value) -> ObjectMap {
    value.as_object().expect("an object").clone()
}

#[test]
fn cluster_addresses_are_found_as_upstream_does() {
    let of = |spec: Value| cluster_address(&map(json!({"spec": spec})), TO);
    let ports = json!([{"port": 80}, {"port": 443}]);
    for (kind, ip, address) in [
        ("ClusterIP", "10.0.0.7", "10.0.0.7:443"),
        ("NodePort", "10.0.0.7", "10.0.0.7:443"),
        ("LoadBalancer", "fd00::7", "[fd00::7]:443"),
    ] {
        assert_eq!(of(json!({"type": kind, "clusterIP": ip, "ports": ports})).as_deref(), Ok(address));
    }
    let external = json!({"type": "ExternalName", "externalName": "hook.example"});
    assert_eq!(of(external).as_deref(), Ok("hook.example:443"));
    for (spec, why) in [
        (
            json!({"type": "ClusterIP", "clusterIP": "None"}),
            "cannot route to service with ClusterIP \"None\"",
        ),
        (json!({"clusterIP": "10.0.0.7", "ports": []}), "no service port 443 found for service \"hook\""),
        (json!({"type": "Odd"}), "unsupported service type \"Odd\""),
    ] {
        assert_eq!(of(spec).expect_err("no address"), why);
    }
}

fn slice(family: &str, ports: Value, endpoints: Value) -> ObjectMap {
    map(json!({"addressType": family, "ports": ports, "endpoints": endpoints}))
}

#[test]
fn endpoints_are_ready_ones_of_the_port_s_name_and_of_the_first_family_first() {
    let service = json!({"spec": {"type": "ClusterIP", "clusterIP": "None", "ipFamilies": ["IPv6", "IPv4"],
        "ports": [{"name": "metrics", "port": 80}, {"name": "https", "port": 443}]}});
    let service = map(service);
    let ports = json!([{"name": "metrics", "port": 9}, {"name": "https", "port": 9443}]);
    let slices = [
        slice("IPv4", ports.clone(), json!([{"addresses": ["10.1.0.1"]}])),
        slice(
            "IPv6",
            ports.clone(),
            json!([
                {"addresses": ["fd00::1", "fd00::9"], "conditions": {"ready": true}},
                {"addresses": ["fd00::2"], "conditions": {"ready": false}},
                {"addresses": ["fd00::3"], "conditions": {"serving": false}}
            ]),
        ),
        slice("IPv4", json!([{"name": "https"}, {"port": 1}]), json!([{"addresses": ["10.1.0.2"]}])),
    ];
    let of = |service: &ObjectMap, slices: &[ObjectMap]| {
        endpoints(service, TO, slices, |addresses| addresses.reverse())
    };
    let expected = ["[fd00::3]:9443", "[fd00::1]:9443", "10.1.0.1:9443"].map(str::to_owned);
    assert_eq!(of(&service, &slices), Ok(expected.to_vec()));
    let none = Err("no endpoints available for service \"hook\"".to_owned());
    assert_eq!(of(&service, &slices[2..]), none);
    assert_eq!(of(&service, &[]), none);
    let unnamed = map(json!({"spec": {"ports": [{"port": 443}]}}));
    let slices = [slice("IPv4", json!([{"name": "", "port": 8}]), json!([{"addresses": ["10.1.0.3"]}]))];
    assert_eq!(of(&unnamed, &slices), Ok(vec!["10.1.0.3:8".to_owned()]));
    for (spec, why) in [
        (json!({"type": "ExternalName", "externalName": "e"}), "unsupported service type \"ExternalName\""),
        (json!({"ports": [{"port": 80}]}), "no service port 443 found for service \"hook\""),
    ] {
        assert_eq!(of(&map(json!({"spec": spec})), &slices).expect_err("no address"), why);
    }
}

#[test]
fn fixed_addresses_are_by_number_then_by_name_then_for_all_ports() {
    let texts = ["n/hook=h:1", "n/hook:443=h:2", "n/hook:https=[::1]:3", "n/other:https=h:4"];
    let fixed = FixedAddresses::new(texts.map(|text| parse_fixed(text).expect("an address")));
    let service = map(json!({"spec": {"ports": [{"name": "https", "port": 444}]}}));
    let of = |name, port, service| fixed.get(ServicePort { namespace: "n", name, port }, service);
    assert_eq!(of("hook", 443, None), Some("h:2"));
    assert_eq!(of("hook", 444, Some(&service)), Some("[::1]:3"));
    assert_eq!(of("hook", 444, None), Some("h:1"));
    assert_eq!(of("other", 444, Some(&service)), Some("h:4"));
    assert_eq!(of("other", 443, Some(&service)), None);
    assert_eq!(of("missing", 443, None), None);
    for wrong in
        ["n/a", "a=h:1", "/a=h:1", "n/=h:1", "n/a:=h:1", "n/a=h", "n/a=:1", "n/a=h:0", "n/a=h:x", "n/a=::1:1"]
    {
        assert!(parse_fixed(wrong).is_err(), "{wrong}");
    }
}
