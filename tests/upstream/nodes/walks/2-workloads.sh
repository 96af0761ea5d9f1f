# Controllers, Services over both nodes, static Pods and a drain. Sourced by ../walk.
in_namespace walk-workloads
rollout() { kubectl rollout status "$1" --timeout="${WAIT:-120}s" | tail -1; }
rolled_out='deployment "web" successfully rolled out'
web_is_on() { kubectl get pods -l app=web --no-headers -o custom-columns=:.spec.nodeName | sort -u | paste -sd ' '; }
node_port() { kubectl get service ported -o jsonpath='{.spec.ports[0].nodePort}'; }
status_of() { curl -s -m 5 -o /dev/null -w '%{http_code}' "$1"; }
kubectl create deployment web --image "$nginx" --replicas 4 >/dev/null
is "Deployment" "$rolled_out" rollout deployment/web
is "its Pods are on both nodes" "node-a node-b" web_is_on
kubectl expose deployment web --port 80 >/dev/null
kubectl expose deployment web --name ported --type NodePort --port 80 >/dev/null
for address in 10.3.0.1 10.3.0.2; do becomes "NodePort at $address" 200 status_of "http://$address:$(node_port)/"; done
kubectl set env deployment/web COLOUR=blue >/dev/null
is "rolling update" "$rolled_out" rollout deployment/web
kubectl rollout undo deployment/web >/dev/null
is "undo of the update" "$rolled_out" rollout deployment/web
kubectl create job job --image "$busybox" -- echo done >/dev/null
becomes "Job completes" 1 kubectl get job job -o jsonpath='{.status.succeeded}'
is "log of the Job" done kubectl logs job/job
kubectl create cronjob cron --image "$busybox" --schedule '* * * * *' -- true >/dev/null
apply workloads.yaml
is "DaemonSet" 'daemon set "daemon" successfully rolled out' rollout daemonset/daemon
is "on both nodes" 2 kubectl get daemonset daemon -o jsonpath='{.status.numberReady}'
rollout statefulset/stateful >/dev/null || true
becomes "name of a StatefulSet's Pod" 200 kubectl exec stateful-0 -- \
    curl -s -m 5 -o /dev/null -w '%{http_code}' http://stateful-1.stateful.walk-workloads.svc.cluster.local/
becomes "image that is always pulled" pulled kubectl logs always

manifest=/etc/kubernetes/manifests/static.yaml
cat >"$manifest" <<MANIFEST
apiVersion: v1
kind: Pod
metadata: {name: static, namespace: walk-workloads}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "$busybox", command: [sleep, "99999"]}]}
MANIFEST
mirror() { kubectl get pod static-node-a --ignore-not-found -o jsonpath="$1"; }
becomes "mirror of a static Pod" "Running file" \
    mirror '{.status.phase} {.metadata.annotations.kubernetes\.io/config\.source}'
uid=$(mirror '{.metadata.uid}')
kubectl delete pod static-node-a --wait=false >/dev/null
another_mirror() { [ -n "$(mirror '{.metadata.uid}')" ] && [ "$(mirror '{.metadata.uid}')" != "$uid" ] && echo yes; }
becomes "the mirror comes back" yes another_mirror
rm "$manifest"
becomes "the mirror goes with its file" "" mirror '{.metadata.name}'

drain() {
    local options=(--ignore-daemonsets --delete-emptydir-data --force --timeout "${WAIT:-120}s")
    kubectl drain "$1" "${options[@]}" >"$scratch/drain" 2>&1 || cat "$scratch/drain"
}
is "drain respects the PodDisruptionBudget" "" drain node-b
becomes "its Pods are on the other node" node-a web_is_on
kubectl uncordon node-b >/dev/null
becomes "CronJob" yes sh -c "kubectl get jobs -o name | grep -q /cron- && echo yes"
kubectl delete namespace walk-workloads --wait=false >/dev/null
