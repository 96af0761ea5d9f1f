# Part of `run`: Gatekeeper, from its manifests to what it refuses, changes and finds.
soon k apply -f "$dir/gatekeeper.yaml"
for one in gatekeeper-audit gatekeeper-controller-manager; do
    soon k -n gatekeeper-system rollout status "deployment/$one" --timeout=60s
done
k create namespace guarded
k -n guarded create configmap before
soon k apply -f "$here/gatekeeper.yaml"
soon k apply -f "$here/constraints.yaml"

# Its webhooks: one refuses, one changes.
refuses() { ! k -n guarded create configmap later --dry-run=server; }
soon refuses
says 'admission webhook "validation.gatekeeper.sh" denied the request: [team] labels are lacking: {"team"}' \
    k -n guarded create configmap later
says created k -n guarded create -f - <<'END'
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "labelled", "labels": {"team": "a"}}}
END
says "Always platform" k -n guarded run pause --image=registry.k8s.io/pause:3.10 --image-pull-policy=IfNotPresent \
    --dry-run=server -o jsonpath='{.spec.containers[0].imagePullPolicy} {.metadata.annotations.owner}'
says 'denied the request: invalid ConstraintTemplate' k create -f - <<'END'
{"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate", "metadata": {"name": "wrong"}, "spec": {
 "crd": {"spec": {"names": {"kind": "Other"}}},
 "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": "package wrong"}]}}
END

# A policy that it has made of a template, and that the server evaluates.
many() { k -n guarded create deployment many --image=registry.k8s.io/pause:3.10 --replicas="$1" --dry-run=server; }
refuses() { ! many 4; }
soon refuses
says "denied request: at most 3 replicas" many 4
says created many 3

# Its audit finds what was there before.
found() { k get requiredlabels team -o jsonpath='{.status.violations[*].name}' | grep before; }
soon found
k delete -f "$here/constraints.yaml" -f "$here/gatekeeper.yaml" --timeout=60s >/dev/null
k delete namespace guarded --timeout=60s
k delete -f "$dir/gatekeeper.yaml" --timeout=120s >/dev/null
says "not found" k get namespace gatekeeper-system
