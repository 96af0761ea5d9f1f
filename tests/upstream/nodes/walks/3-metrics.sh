# metrics-server behind the aggregation layer, as its own manifests install it, and what needs it. Sourced by ../walk.
in_namespace walk-metrics
metrics_server() {
    # Kubelets' certificates are verified.
    local more=--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    kubectl kustomize "$NODES_CACHE/bin/metrics-server-base" 2>"$scratch/kustomize" |
        sed -e 's|image: .*/metrics-server:.*|image: registry.k8s.io/metrics-server/metrics-server:latest|' \
            -e "s|^\( *\)- --metric-resolution=.*|&\n\1- $more|"
}
metrics_server | kubectl apply -f - >/dev/null
apply metrics.yaml
becomes "APIService of metrics-server is available" True \
    kubectl get apiservice v1beta1.metrics.k8s.io -o jsonpath='{.status.conditions[?(@.type=="Available")].status}'
becomes "top of both nodes" "node-a node-b" \
    sh -c "kubectl top nodes --no-headers | awk '\$2 ~ /m\$/ {print \$1}' | sort | paste -sd ' '"
becomes "top of a Pod" yes \
    sh -c "kubectl top pods -l app=busy --no-headers | awk '\$2 ~ /m\$/ {print \"yes\"}' | head -1"
becomes "HorizontalPodAutoscaler scales by the load" 3 kubectl get deployment busy -o jsonpath='{.spec.replicas}'
metrics_server | kubectl delete --wait=false -f - >/dev/null
kubectl delete namespace walk-metrics --wait=false >/dev/null
