# Part of `run`: cert-manager, from its chart to certificates.
chart=$dir/cert-manager-chart
"$HELM" install cert-manager "$chart" --namespace cert-manager --create-namespace --set crds.enabled=true \
    --set startupapicheck.enabled=false --set global.leaderElection.namespace=cert-manager >"$work/helm" || cat "$work/helm"
for one in cert-manager cert-manager-webhook cert-manager-cainjector; do
    soon k -n cert-manager rollout status "deployment/$one" --timeout=60s
done
k create namespace shop
# Until cainjector has given the webhook's CA to its configurations.
soon k -n shop apply -f "$here/certificates.yaml"
soon k -n shop wait --for condition=Ready certificate/ca certificate/shop --timeout=60s
key() { k -n shop get secret "$1" -o go-template="{{index .data \"$2\" | base64decode}}"; }
key shop-tls tls.crt >"$work/tls.crt"
key shop-tls ca.crt >"$work/ca.crt"
says "$work/tls.crt: OK" openssl verify -CAfile "$work/ca.crt" "$work/tls.crt"
says "DNS:shop.example.com" openssl x509 -in "$work/tls.crt" -noout -ext subjectAltName
# The hooks: one refuses, one notes who has asked, and a policy of the project's approves.
says 'admission webhook "webhook.cert-manager.io" denied the request: spec.issuerRef.name: Required value' \
    k -n shop patch certificate shop --type merge -p '{"spec":{"issuerRef":{"name":""}}}'
says "system:serviceaccount:cert-manager:cert-manager" \
    k -n shop get certificaterequests -o jsonpath='{.items[*].spec.username}'
says "Approved" k -n shop get certificaterequests -o jsonpath='{.items[*].status.conditions[*].type}'
# What is lost is issued again.
before=$(openssl x509 -in "$work/tls.crt" -noout -serial)
k -n shop delete secret shop-tls
again() { key shop-tls tls.crt >"$work/again" && [ "$(openssl x509 -in "$work/again" -noout -serial)" != "$before" ]; }
soon again
# And nothing stays behind.
k delete namespace shop --timeout=60s
"$HELM" uninstall cert-manager --namespace cert-manager --wait >/dev/null
k delete namespace cert-manager --timeout=60s
k delete crd -l app.kubernetes.io/name=cert-manager >/dev/null
says "No resources found" k get pods -n cert-manager
