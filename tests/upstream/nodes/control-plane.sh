# The server, the controller manager and the scheduler of `cluster`, on node-a. It is sourced.
#
# Nobody is a member of system:masters but kubeadm's super-admin, who makes two bindings: the administrators' (the group
# of admin.conf) and the server's right to use kubelets.
data=$NODES_WORK/control-plane pki=$NODES_WORK/control-plane/pki
masters=$NODES_WORK/logs/masters.log

begin_control_plane() {
    mkdir -m 700 "$data"
    issue_certificates
    fill kubeadm.yaml >"$data/kubeadm.yaml"
    cp "$here/config/audit-policy.yaml" "$data/"
    if [ "${CONTROL-}" ]; then start_control; else start_rowplane; fi
    until_true "the server" on a curl -skf "$server/readyz"
    bind_users
    start_controllers
    prepare_for_joins
}

issue_certificates() {
    "$ROWPLANE" certs issue all super-admin --data-dir "$data" --server "$server" >"$NODES_WORK/logs/certs.log"
}

server_flags=(
    --bind-address "$server_address" --advertise-address "$server_address" --secure-port 6443
    --service-cluster-ip-range "$service_range" --enable-bootstrap-token-auth --enable-admission-plugins NodeRestriction
    --authorization-mode Node,RBAC --kubelet-preferred-address-types InternalIP
    --kubelet-client-certificate "$pki/apiserver-kubelet-client.crt"
    --kubelet-client-key "$pki/apiserver-kubelet-client.key" --kubelet-certificate-authority "$pki/ca.crt"
    --audit-policy-file "$data/audit-policy.yaml" --audit-log-path "$masters"
)

start_rowplane() {
    start a server "$ROWPLANE" serve --data-dir "$data" --datastore "${DATASTORE:-sqlite:$data/state.db}" \
        "${server_flags[@]}"
}

# kube-apiserver and etcd, with the certificates that kubeadm makes for them by the same CA.
start_control() {
    kubeadm init phase certs all --config "$data/kubeadm.yaml" >>"$NODES_WORK/logs/certs.log"
    start a etcd etcd --data-dir "$data/etcd" --listen-client-urls http://127.0.0.1:2379 \
        --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
    start a server kube-apiserver "${server_flags[@]}" --allow-privileged --etcd-servers http://127.0.0.1:2379 \
        --client-ca-file "$pki/ca.crt" \
        --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
        --service-account-issuer https://kubernetes.default.svc.cluster.local \
        --service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key" \
        --requestheader-client-ca-file "$pki/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
        --requestheader-extra-headers-prefix X-Remote-Extra- --requestheader-group-headers X-Remote-Group \
        --requestheader-username-headers X-Remote-User --proxy-client-cert-file "$pki/front-proxy-client.crt" \
        --proxy-client-key-file "$pki/front-proxy-client.key"
}

bind_users() {
    local super_admin=$data/super-admin.conf
    on a kubectl --kubeconfig "$super_admin" create clusterrolebinding kubeadm:cluster-admins \
        --clusterrole cluster-admin --group kubeadm:cluster-admins
    on a kubectl --kubeconfig "$super_admin" create clusterrolebinding kubeadm:apiserver-kubelet-client \
        --clusterrole system:kubelet-api-admin --user kube-apiserver-kubelet-client
    rm "$super_admin"
    masters_at_begin=$(requests_of_masters)
}

start_controllers() {
    start a kube-controller-manager kube-controller-manager --kubeconfig "$data/controller-manager.conf" \
        --authentication-kubeconfig "$data/controller-manager.conf" --bind-address 127.0.0.1 \
        --authorization-kubeconfig "$data/controller-manager.conf" --use-service-account-credentials \
        --controllers '*,bootstrapsigner,tokencleaner' --root-ca-file "$pki/ca.crt" \
        --service-account-private-key-file "$pki/sa.key" --cluster-signing-cert-file "$pki/ca.crt" \
        --cluster-signing-key-file "$pki/ca.key"
    start a kube-scheduler kube-scheduler --kubeconfig "$data/scheduler.conf" --bind-address 127.0.0.1 \
        --authentication-kubeconfig "$data/scheduler.conf" --authorization-kubeconfig "$data/scheduler.conf"
}

# What `kubeadm init` writes into a new cluster. CoreDNS' configuration is replaced before any node can run it:
# kubeadm's asks the node's resolver, and there is none.
prepare_for_joins() {
    local phase
    for phase in "upload-config all" bootstrap-token "addon coredns" "addon kube-proxy"; do
        on a kubeadm init phase $phase --config "$data/kubeadm.yaml" --kubeconfig "$KUBECONFIG" \
            >>"$NODES_WORK/logs/kubeadm.log" 2>&1 || fail "$(cat "$NODES_WORK/logs/kubeadm.log")"
    done
    on a kubectl -n kube-system create configmap coredns --from-file "$here/config/Corefile" --dry-run=client -o yaml |
        on a kubectl replace -f -
    ca_hash=$(on a kubeadm token create --print-join-command --ttl 1m | sed 's/.*sha256:\([0-9a-f]*\).*/\1/')
}

# kube-apiserver is a member itself, where it is a client of its own.
requests_of_masters() { awk '!/"username":"system:apiserver"/' "$masters" | wc -l; }

report_masters() {
    echo "requests of members of system:masters since the cluster was made:" \
        $(($(requests_of_masters) - masters_at_begin))
}
