//! The flags of kube-apiserver v1.37 that `rowplane serve` lacks or takes otherwise, and their effects here.

/// How a flag is written, and what its repetition means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--name` alone means true.
    Bool,
    /// The last value counts; an empty one is as good as none.
    Scalar,
    /// The last value counts, and must not be empty: a number, a duration, a range of ports.
    Number,
    /// All values count, and commas separate more of them.
    List,
    /// All values count, each by itself.
    Each,
}

/// The effect of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Handled by `kube_apiserver` itself.
    Own,
    /// No effect, for this reason.
    Ignored(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    pub form: Form,
    pub effect: Effect,
}

const fn flag(name: &'static str, form: Form, effect: Effect) -> Flag {
    Flag { name, form, effect }
}

use Effect::{Ignored, Own};
use Form::{Bool, List, Number, Scalar};

const NO_ETCD: &str = "there is no etcd here";
const CACHE: &str = "the watch cache sizes itself";
const NO_READER: &str = "nothing reads it, in kube-apiserver either";
const NO_LEADERS: &str = "leadership is not coordinated here";
const LOADING: &str = "requests are refused until objects are loaded";
const NO_PEERS: &str = "all replicas serve the same resources";
const NO_GO: &str = "there is no Go runtime to look into";
const LOGS: &str = "logs are written at once, in one stream";
const METRICS: &str = "all metrics are shown as they are";
const SHUTDOWN: &str = "connections that stand are served until they end, in their grace period";

/// The flags under kube-apiserver's headings. Its others are flags of `rowplane serve`.
pub const FLAGS: &[(&str, &[Flag])] = &[
    (
        "Generic flags",
        &[
            flag("emulated-version", List, Own),
            flag("emulation-forward-compatible", Bool, Ignored("one version is served")),
            flag("external-hostname", Scalar, Ignored("documents name the address that is bound")),
            flag("feature-gates", List, Own),
            flag("livez-grace-period", Number, Ignored("the server is alive from its first request on")),
            flag("min-compatibility-version", List, Own),
            flag("runtime-config-emulation-forward-compatible", Bool, Ignored("one version is served")),
            flag("shutdown-send-retry-after", Bool, Ignored(SHUTDOWN)),
            flag("shutdown-watch-termination-grace-period", Number, Ignored(SHUTDOWN)),
            flag("storage-initialization-timeout", Number, Ignored(LOADING)),
        ],
    ),
    (
        "Etcd flags",
        &[
            flag("default-watch-cache-size", Scalar, Ignored(CACHE)),
            flag("delete-collection-workers", Number, Ignored("collections are deleted without workers")),
            flag("etcd-cafile", Scalar, Own),
            flag("etcd-certfile", Scalar, Own),
            flag("etcd-count-metric-poll-period", Number, Ignored(NO_ETCD)),
            flag("etcd-db-metric-poll-interval", Number, Ignored(NO_ETCD)),
            flag("etcd-healthcheck-timeout", Number, Ignored(NO_ETCD)),
            flag("etcd-keyfile", Scalar, Own),
            flag("etcd-prefix", Scalar, Ignored(NO_ETCD)),
            flag("etcd-readycheck-timeout", Number, Ignored(NO_ETCD)),
            flag("etcd-servers", List, Own),
            flag("etcd-servers-overrides", List, Ignored(NO_ETCD)),
            flag("lease-reuse-duration-seconds", Number, Ignored(NO_ETCD)),
            flag("storage-backend", Scalar, Own),
            flag("watch-cache", Bool, Ignored("there is always a watch cache")),
            flag("watch-cache-sizes", List, Ignored(CACHE)),
        ],
    ),
    (
        "Secure serving flags",
        &[
            flag("cert-dir", Scalar, Own),
            flag("permit-address-sharing", Bool, Ignored("the port is this server's alone")),
            flag("permit-port-sharing", Bool, Ignored("the port is this server's alone")),
            flag("secure-port", Number, Own),
        ],
    ),
    (
        "Features flags",
        &[
            flag("contention-profiling", Bool, Ignored(NO_GO)),
            flag("debug-socket-path", Scalar, Ignored(NO_GO)),
            flag("profiling", Bool, Ignored(NO_GO)),
        ],
    ),
    ("Authentication flags", &[flag("service-account-lookup", Bool, Ignored("tokens are always looked up"))]),
    ("Admission flags", &[flag("admission-control", List, Own)]),
    (
        "Metrics flags",
        &[
            flag("disabled-metrics", List, Ignored(METRICS)),
            flag("show-hidden-metrics-for-version", Scalar, Ignored(METRICS)),
        ],
    ),
    (
        "Logs flags",
        &[
            flag("log-flush-frequency", Number, Ignored(LOGS)),
            flag("log-json-info-buffer-size", Scalar, Ignored(LOGS)),
            flag("log-json-split-stream", Bool, Ignored(LOGS)),
            flag("log-text-info-buffer-size", Scalar, Ignored(LOGS)),
            flag("log-text-split-stream", Bool, Ignored(LOGS)),
            flag("vmodule", List, Ignored(LOGS)),
        ],
    ),
    (
        "Misc flags",
        &[
            flag("allow-privileged", Bool, Ignored("privileged containers are not forbidden")),
            flag("apiserver-count", Scalar, Ignored("replicas count themselves")),
            flag("coordinated-leadership-lease-duration", Number, Ignored(NO_LEADERS)),
            flag("coordinated-leadership-renew-deadline", Number, Ignored(NO_LEADERS)),
            flag("coordinated-leadership-retry-period", Number, Ignored(NO_LEADERS)),
            flag("enable-logs-handler", Bool, Ignored("logs are not served")),
            flag("kubelet-read-only-port", Scalar, Ignored(NO_READER)),
            flag("kubelet-timeout", Number, Ignored(NO_READER)),
            flag("kubernetes-service-node-port", Number, Ignored("the Service has no port on nodes")),
            flag("peer-advertise-ip", Scalar, Ignored(NO_PEERS)),
            flag("peer-advertise-port", Scalar, Ignored(NO_PEERS)),
            flag("peer-ca-file", Scalar, Ignored(NO_PEERS)),
        ],
    ),
];
