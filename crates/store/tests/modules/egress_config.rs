//! Tests of `egress::config`. The texts are kube-apiserver v1.37.2's.

use rowplane_store::egress::Network;
use rowplane_store::egress::config::{Connection, TlsFiles, Transport, load, parse};

fn of(selections: &str) -> String {
    format!(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n{selections}\n"
    )
}

#[test]
fn files_that_are_refused() {
    let read = "failed to read egress selector config: ";
    let rules = "failed to validate egress selector configuration: ";
    for (text, why) in [
        (
            of("- {name: cluster, foo: 1, connection: {proxyProtocol: Foo}}"),
            format!("{read}strict decoding error: unknown field \"egressSelections[0].foo\""),
        ),
        (
            "{apiVersion: apiserver.k8s.io/v1, kind: EgressSelectorConfiguration}".to_owned(),
            format!(
                "{read}no kind \"EgressSelectorConfiguration\" is registered for version \"apiserver.k8s.io/v1\""
            ),
        ),
        (
            of("- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 5}}}}"),
            format!(
                "{read}json: cannot unmarshal number into Go struct field \
                 TCPTransport.egressSelections.connection.transport.tcp.url of type string"
            ),
        ),
        (
            of("- {name: cluster, connection: {proxyProtocol: Foo}}"),
            format!(
                "{rules}service.connection.protocol: Unsupported value: \"Foo\": supported values: \"Direct\", \
                 \"HTTPConnect\", \"GRPC\""
            ),
        ),
        (
            of(
                "- {name: Cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a'}, uds: {udsName: ''}}}}\n\
                - {name: cluster, connection: {proxyProtocol: GRPC, transport: {tcp: {url: 'http://a'}}}}\n\
                - {name: other, connection: {proxyProtocol: Direct, transport: {uds: {udsName: ''}}}}\n\
                - {name: master, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', \
                tlsConfig: {caBundle: /no, clientCert: /no}}}}}",
            ),
            format!(
                "{rules}[service.connection.tcp: Invalid value: {{\"URL\":\"http://a\",\"TLSConfig\":null}}: TCP and \
                 UDS cannot both be set, service.connection.uds: Required value: UDS must be set with GRPC, \
                 service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect, \
                 service.connection.tlsConfig.caBundle: Invalid value: \"/no\": TLS config ca bundle does not exist, \
                 service.connection.tlsConfig.clientCert: Invalid value: \"/no\": TLS client cert does not exist, \
                 service.connection.tlsConfig.clientKey: Invalid value: \"nil\": Using TLS requires requires clientKey, \
                 service.connection[1]: Duplicate value: \"cluster\", \
                 service.connection: Unsupported value: \"other\": supported values: \"cluster\", \"controlplane\", \"etcd\"]"
            ),
        ),
    ] {
        assert_eq!(parse(text.as_bytes()), Err(why), "{text}");
    }
    let why =
        "unable to read egress selector configuration from \"/no\" [open /no: no such file or directory]";
    assert_eq!(load("/no".as_ref()), Err(format!("{read}{why}")));
}

#[test]
fn the_ways_to_networks() {
    let read = of("- {name: Cluster, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /s}}}}\n\
        - {name: master, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://[::1]/x', \
        tlsConfig: {clientCert: /dev/null, clientKey: /dev/zero}}}}}\n\
        - {name: etcd, connection: {proxyProtocol: Direct, transport: }}");
    let tls = TlsFiles {
        authorities: None,
        client_certificate: "/dev/null".into(),
        client_key: "/dev/zero".into(),
        server_name: String::new(),
    };
    let tcp = Transport::Tcp { address: "[::1]:443".to_owned(), tls: Some(tls) };
    assert_eq!(
        parse(read.as_bytes()).expect("good").selections,
        [
            (Network::Cluster, Connection::Grpc("/s".to_owned())),
            (Network::ControlPlane, Connection::HttpConnect(tcp)),
            (Network::Etcd, Connection::Direct),
        ]
    );
}
