//! Tests of `traces::config`. The texts are kube-apiserver v1.37.2's.

use rowplane_store::traces::config::{Configuration, Endpoint, parse};

fn read(content: &str) -> Result<Configuration, String> {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";
    parse(format!("{head}{content}").as_bytes())
}

#[test]
fn addresses_of_collectors() {
    for (content, endpoint, rate) in [
        ("", Endpoint::Tcp("localhost:4317".to_owned()), 0),
        ("endpoint: a:1\nsamplingRatePerMillion: 7", Endpoint::Tcp("a:1".to_owned()), 7),
        ("endpoint: dns:///a:1", Endpoint::Tcp("a:1".to_owned()), 0),
        ("endpoint: unix:///run/a", Endpoint::Unix("/run/a".to_owned()), 0),
        ("endpoint: unix-abstract://a", Endpoint::Unix("@a".to_owned()), 0),
    ] {
        assert_eq!(read(content), Ok(Configuration { endpoint, rate }), "{content}");
    }
}

#[test]
fn files_that_are_refused() {
    let (decode, rules) = (
        "failed to read tracing config: unable to decode tracing configuration data: ",
        "failed to validate tracing configuration: ",
    );
    for (content, why) in [
        ("foo: 1", format!("{decode}strict decoding error: unknown field \"foo\"")),
        (
            "samplingRatePerMillion: x",
            format!(
                "{decode}json: cannot unmarshal string into Go struct field \
                 TracingConfiguration.TracingConfiguration.samplingRatePerMillion of type int32"
            ),
        ),
        (
            "samplingRatePerMillion: -1",
            format!("{rules}samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"),
        ),
        (
            "samplingRatePerMillion: 1000001\nendpoint: http://a",
            format!(
                "{rules}[samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or \
                 equal to one million, endpoint: Invalid value: \"http://a\": unsupported scheme: http.  Options are none, \
                 dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md]"
            ),
        ),
    ] {
        assert_eq!(read(content), Err(why), "{content}");
    }
}
