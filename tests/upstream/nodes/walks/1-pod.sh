# One Pod, and what kubectl does with it. Sourced by ../walk.
in_namespace walk-pod
apply pod.yaml
in_pod() { kubectl exec pod -c main -- sh -c "$1"; }
server_pod=/api/v1/namespaces/walk-pod/pods/pod
becomes "Pod with init container, sidecar and probes is ready" True \
    kubectl get pod pod -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'
is "log" 1 sh -c "kubectl logs pod -c main | grep -c 'Started HTTP server on port 8080'"
is "environment" "$(kubectl get pod pod -o jsonpath='{.spec.nodeName} {.status.podIP}') 1 x-one" \
    in_pod 'echo $NODE $ADDRESS $CPU $EXPANDED'
is "exit code of exec" 42 \
    sh -c "kubectl exec pod -c main -- sh -c 'exit 42' >/dev/null 2>&1; echo \$?"
is "standard input of exec" "$(seq 20000 | md5sum)" \
    sh -c "seq 20000 | kubectl exec -i pod -c main -- cat | md5sum"
is "Secret volume and its mode" "one 400" in_pod 'echo $(cat /secret/key) $(stat -L -c %a /secret/key)'
is "labels in a volume" 'app="pod"' in_pod 'cat /labels/labels'
is "the API with the Pod's own token" 200 in_pod 'cd /var/run/secrets/kubernetes.io/serviceaccount &&
    curl -s -o /dev/null -w %{http_code} --cacert ca.crt -H "Authorization: Bearer $(cat token)" \
    https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT'$server_pod
is "a token of another audience is refused" 401 in_pod \
    'curl -sk -o /dev/null -w %{http_code} -H "Authorization: Bearer $(cat /token/token)" \
    https://kubernetes.default.svc'$server_pod
echo hello >"$scratch/file"
is "cp to the Pod" hello \
    sh -c "kubectl cp $scratch/file pod:/tmp/file -c main && kubectl exec pod -c main -- cat /tmp/file"
is "cp from the Pod" hello sh -c "kubectl cp pod:/tmp/file $scratch/back -c main >/dev/null; cat $scratch/back"
is "attach" typed \
    sh -c "echo typed | kubectl run attached -i --rm --quiet --restart=Never --image $busybox -- cat"

kubectl port-forward pod :8080 >"$scratch/forward" 2>&1 &
forward=$!
until grep -q Forwarding "$scratch/forward" || ! kill -0 "$forward" 2>/dev/null; do sleep 0.2; done
port=$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' "$scratch/forward" | head -1)
is "port-forward" pod curl -s "http://127.0.0.1:$port/hostname"
kill "$forward" 2>/dev/null || true

for node in node-a node-b; do
    is "proxy to the kubelet of $node" ok kubectl get --raw "/api/v1/nodes/$node/proxy/healthz"
done
is "proxy to the Pod" pod kubectl get --raw "/api/v1/namespaces/walk-pod/pods/pod:8080/proxy/hostname"
kubectl expose pod pod --port 80 --target-port 8080 >/dev/null
becomes "Service by its address" pod \
    curl -s -m 5 "http://$(kubectl get service pod -o jsonpath='{.spec.clusterIP}')/hostname"
becomes "Service by its name, in the Pod" pod in_pod 'curl -s -m 5 http://pod.walk-pod.svc.cluster.local/hostname'
becomes "proxy to the Service" pod kubectl get --raw /api/v1/namespaces/walk-pod/services/pod/proxy/hostname
kubectl debug pod --image "$busybox" --profile general -c debugger -- echo debugged >/dev/null 2>&1 || true
becomes "ephemeral container of debug" debugged kubectl logs pod -c debugger
kubectl patch configmap config -p '{"data":{"key":"two"}}' >/dev/null
kubectl patch secret secret -p '{"stringData":{"key":"two"}}' >/dev/null
kubectl label pod pod more=yes >/dev/null
becomes "volumes follow their objects" $'two two app="pod"\nmore="yes"' \
    in_pod 'echo "$(cat /config/key) $(cat /secret/key) $(cat /labels/labels)"'
kubectl patch pod pod --subresource resize \
    -p '{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"600m"}}}]}}' >/dev/null
becomes "resize in place" 600m kubectl get pod pod -o jsonpath='{.status.containerStatuses[0].resources.limits.cpu}'
is "events of the kubelet" yes \
    sh -c "kubectl get events -o jsonpath='{.items[*].reason}' | grep -qw Started && echo yes"
is "delete waits for the end" 'pod "pod" deleted from walk-pod namespace' kubectl delete pod pod
kubectl delete namespace walk-pod --wait=false >/dev/null
