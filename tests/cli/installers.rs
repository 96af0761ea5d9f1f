//! 64 of `docs/spec/cluster.md`: the literal argument lists with which installers and test environments start
//! kube-apiserver. In them PKI stands for a directory of certificates, PORT for the server's port, ETCD for the
//! stand-in.

use std::net::TcpListener;

use tempfile::TempDir;

use crate::etcd::Running;
use crate::pki;

/// kubeadm v1.37.2, of an external etcd, without the flags that others share.
const KUBEADM: &str = "--advertise-address=192.0.2.7 --allow-privileged=true --authorization-mode=Node,RBAC \
    --enable-admission-plugins=NodeRestriction --etcd-servers=ETCD \
    --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-cluster-ip-range=10.96.0.0/12";

/// Files, and flags that go with them, as kubeadm, kamaji and vcluster pass them.
const FILES: &str = "--client-ca-file=PKI/ca.crt --enable-bootstrap-token-auth=true \
    --kubelet-client-certificate=PKI/apiserver-kubelet-client.crt \
    --kubelet-client-key=PKI/apiserver-kubelet-client.key --proxy-client-cert-file=PKI/front-proxy-client.crt \
    --proxy-client-key-file=PKI/front-proxy-client.key --requestheader-allowed-names=front-proxy-client \
    --requestheader-client-ca-file=PKI/front-proxy-ca.crt --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User --secure-port=PORT \
    --service-account-key-file=PKI/sa.pub --service-account-signing-key-file=PKI/sa.key \
    --tls-cert-file=PKI/apiserver.crt --tls-private-key-file=PKI/apiserver.key";

/// kubeadm's with what kubespray's defaults put in place of it or add.
const KUBESPRAY: &str = "--advertise-address=192.0.2.7 --enable-admission-plugins=NodeRestriction \
    --etcd-servers=ETCD --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --etcd-compaction-interval=5m0s --default-not-ready-toleration-seconds=300 \
    --default-unreachable-toleration-seconds=300 --anonymous-auth=True --authorization-mode=Node,RBAC \
    --bind-address=:: --apiserver-count=1 --endpoint-reconciler-type=lease --service-node-port-range=30000-32767 \
    --service-cluster-ip-range=10.233.0.0/18 \
    --kubelet-preferred-address-types=InternalDNS,InternalIP,Hostname,ExternalDNS,ExternalIP --profiling=False \
    --request-timeout=1m0s --enable-aggregator-routing=False --service-account-lookup=True --storage-backend=etcd3 \
    --allow-privileged=true --event-ttl=1h0m0s --kubelet-certificate-authority=PKI/ca.crt";

const KAMAJI: &str = "--advertise-address=192.0.2.7 --allow-privileged=true --authorization-mode=Node,RBAC \
    --enable-admission-plugins=ResourceQuota,LimitRanger --etcd-cafile=/nowhere/ca.crt \
    --etcd-certfile=/nowhere/server.crt --etcd-compaction-interval=0 --etcd-keyfile=/nowhere/server.key \
    --etcd-prefix=/tenant --etcd-servers=https://etcd:2379 \
    --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-cluster-ip-range=10.96.0.0/16";

const VCLUSTER: &str = "--service-cluster-ip-range=10.96.0.0/16 --bind-address=127.0.0.1 --allow-privileged=true \
    --authorization-mode=RBAC --etcd-servers=unix:///data/server/kine.sock --watch-cache=false \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local --profiling=false \
    --advertise-address=127.0.0.1 --endpoint-reconciler-type=none";

/// kwokctl's of the runtime `binary`, without authorization and admission.
const KWOKCTL: &str = "--etcd-prefix=/registry --allow-privileged=true --admission-control= \
    --max-requests-inflight=5000 --max-mutating-requests-inflight=5000 --etcd-servers=ETCD \
    --bind-address=127.0.0.1 --secure-port=PORT --tls-cert-file=PKI/admin.crt --tls-private-key-file=PKI/admin.key \
    --client-ca-file=PKI/ca.crt --service-account-key-file=PKI/admin.key \
    --service-account-signing-key-file=PKI/admin.key \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local --proxy-client-key-file=PKI/admin.key \
    --proxy-client-cert-file=PKI/admin.crt";

const ENVTEST: &str = "--allow-privileged=true --authorization-mode=RBAC --bind-address=127.0.0.1 --cert-dir=PKI \
    --client-ca-file=PKI/ca.crt --disable-admission-plugins=ServiceAccount --etcd-servers=ETCD --secure-port=PORT \
    --service-account-issuer=https://127.0.0.1:PORT/ --service-account-key-file=PKI/sa.crt \
    --service-account-signing-key-file=PKI/sa.key --service-cluster-ip-range=10.0.0.0/24";

const KUBE_API_TEST: &str = "--cert-dir PKI --secure-port PORT --etcd-servers ETCD --authorization-mode RBAC \
    --service-account-issuer https://localhost --service-account-signing-key-file PKI/sa.key \
    --service-account-signing-key-file PKI/sa.key --service-account-issuer PKI/apiserver.crt \
    --disable-admission-plugins ServiceAccount --client-ca-file PKI/ca.crt --service-cluster-ip-range 10.0.0.0/24 \
    --allow-privileged";

#[test]
fn cluster_64_the_flags_of_installers_start_the_server() {
    let dir = TempDir::new().unwrap();
    pki::write_all(dir.path());
    let free_port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let etcd = format!("http://127.0.0.1:{}", free_port());
    let stand_in = format!("etcd --listen-client-urls={etcd} --unsafe-no-fsync=true");
    let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let _etcd = Running::start(&split(&stand_in), "ready to serve client requests");
    // Those with an etcd of their own are told where state belongs instead.
    let (beside_etcd, instead) = ("", " --datastore=memory:");
    for (name, flags, datastore) in [
        ("kubeadm", format!("{KUBEADM} {FILES}"), beside_etcd),
        ("kubespray", format!("{KUBESPRAY} {FILES}"), beside_etcd),
        ("kamaji", format!("{KAMAJI} {FILES}"), instead),
        ("vcluster", format!("{VCLUSTER} {FILES}"), instead),
        ("kwokctl", KWOKCTL.to_owned(), beside_etcd),
        ("envtest", ENVTEST.to_owned(), beside_etcd),
        ("kube-api-test", KUBE_API_TEST.to_owned(), beside_etcd),
    ] {
        let flags = flags.replace("PKI", &dir.path().display().to_string());
        let flags = flags.replace("PORT", &free_port().to_string()).replace("ETCD", &etcd);
        // Tests do not listen for others.
        let mut flags = split(&format!("kube-apiserver {flags}{datastore} --bind-address=127.0.0.1"));
        if !flags.iter().any(|flag| flag.starts_with("--cert-dir")) {
            flags.push(format!("--cert-dir={}/{name}", dir.path().display()));
        }
        Running::start(&flags, " ready ");
    }
}
