# Part of `run`: what a platform gives to a team, and what the team can make of it.
soon k apply -f "$here/platform.yaml"
k apply -f - <<'END' >/dev/null
apiVersion: platform.example.com/v1
kind: Rule
metadata: {name: team, namespace: team}
replicas: 3
END
says "unchanged" k apply -f "$here/platform.yaml"

# The team: a token, and nothing else.
token=$(k -n team create token deployer)
t() { "$KUBECTL" --kubeconfig "$work/team" -n team "$@"; }
{
    k config --kubeconfig "$work/team" set-cluster c --server "$(k config view -o jsonpath='{.clusters[0].cluster.server}')" --embed-certs \
        --certificate-authority "$data/pki/ca.crt"
    k config --kubeconfig "$work/team" set-credentials deployer --token "$token"
    k config --kubeconfig "$work/team" set-context c --cluster c --user deployer
    k config --kubeconfig "$work/team" use-context c
} >/dev/null
says "system:serviceaccount:team:deployer" t auth whoami
says yes t auth can-i create deployments
says no t auth can-i create resourcequotas
says 'cannot list resource "secrets" in API group "" in the namespace "kube-system"' t -n kube-system get secrets
soon t get rules
says "web created" t apply -f "$here/web.yaml"
soon t rollout status deployment/web --timeout=60s
# The Service leads to a Pod, whose limits, priority and token are those that the platform gives.
address=$(t get service web -o jsonpath='{.spec.clusterIP}')
soon curl -sf --max-time 5 "http://$address/hostname"
says "100m 128Mi 1000 3607" t get pods -l app=web -o jsonpath='{.items[0].spec.containers[0].resources.requests.cpu} {.items[0].spec.containers[0].resources.limits.memory} {.items[0].spec.priority} {.items[0].spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds}'
says "2 200m 256Mi" t get resourcequota team -o jsonpath="{.status.used.pods} {.status.used.requests\.cpu} {.status.used.limits\.memory}"

# What the platform forbids.
says "ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: at most 3 replicas, not 9" \
    t scale deployment/web --replicas=9
says "at most 3 replicas, not 4" t patch deployment web -p '{"spec":{"replicas":4}}'
says 'violates PodSecurity "restricted:latest"' t run bad --image=registry.k8s.io/pause:3.10
says "maximum cpu usage per Container is 500m, but limit is 2" t create -f - <<'END'
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": {
 "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
 "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"limits": {"cpu": "2"}},
  "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}
END
says "exceeded quota: team, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0" \
    t create service nodeport n --tcp=80
for n in 1 2; do says created t create configmap "c$n"; done
says "exceeded quota: team, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3" t create configmap c3
# A second Deployment does not fit, and says so; it fits once the first one is smaller.
sed 's/web/other/g; s/replicas: 2/replicas: 3/' "$here/web.yaml" | t apply -f - >/dev/null
soon t wait --for jsonpath='{.status.conditions[?(@.type=="ReplicaFailure")].status}'=True deployment/other --timeout=1s
says "exceeded quota: team" t get deployment other -o jsonpath='{.status.conditions[?(@.type=="ReplicaFailure")].message}'
says scaled t scale deployment/web --replicas=1
soon t rollout status deployment/other --timeout=5s
says "4" t get resourcequota team -o jsonpath='{.status.used.pods}'

# helm and Python, with the team's token.
h() { "$HELM" --kubeconfig "$work/team" -n team "$@"; }
says "STATUS: deployed" h install settings "$here/chart"
says "REVISION: 2" h upgrade settings "$here/chart" --set color=blue
says blue t get secret settings -o go-template='{{.data.color | base64decode}}'
says uninstalled h uninstall settings
says "python: all right" "$PYTHON" "$here/team.py" "$work/team"
k delete -f "$here/platform.yaml" --timeout=120s >/dev/null
says "not found" k get namespace team
