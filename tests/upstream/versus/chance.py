"""Random rights, quotas, limits, webhooks, policies and levels of Pod security, each with writes that they decide about."""

import random

PROBES = 40
VERBS = ["get", "list", "create", "update", "patch", "delete", "deletecollection", "watch", "*"]
GROUPS = ["", "apps", "*", "rbac.authorization.k8s.io", "coordination.k8s.io"]
RESOURCES = ["configmaps", "secrets", "deployments", "deployments/scale", "*/scale", "*", "*/status", "pods", "pods/log", "roles", "rolebindings", "leases"]
NAMES = ["a", "b", "c"]
URLS = ["/healthz", "/healthz/*", "/metrics", "/*", "*", "/api*", "/apis/*", "/version/"]
POLICIES = "validatingadmissionpolicies"


def scenarios(seed, count):
    chosen = random.Random(seed)
    makers = [rights, quotas, webhooks, policies, security]
    for number in range(-(-count // PROBES)):
        maker = makers[number % len(makers)]
        yield f"random {maker.__name__} {number}", list(maker(chosen))


def some(chosen, values, most=3):
    return chosen.sample(values, chosen.randint(1, min(most, len(values))))


# Rights.


def rule(chosen):
    made = {"apiGroups": some(chosen, GROUPS, 2), "resources": some(chosen, RESOURCES), "verbs": some(chosen, VERBS)}
    if chosen.random() < 0.3:
        made["resourceNames"] = some(chosen, NAMES, 2)
    return made


def cluster_rule(chosen):
    return {"nonResourceURLs": some(chosen, URLS, 2), "verbs": some(chosen, ["get", "post", "*"], 1)} if chosen.random() < 0.3 else rule(chosen)


def subject(chosen):
    return chosen.choice([
        {"kind": "User", "name": "u-{ns}"}, {"kind": "Group", "name": "g-{ns}"}, {"kind": "User", "name": "v-{ns}"},
        {"kind": "ServiceAccount", "name": "sa", "namespace": "{ns}"}, {"kind": "Group", "name": "system:serviceaccounts:{ns}"},
    ])


ASKERS = ["u-{ns}", "v-{ns}", ["w-{ns}", "g-{ns}"], "system:serviceaccount:{ns}:sa", ["u-{ns}", "g-{ns}", "other"]]


def rights(chosen):
    roles = chosen.randint(1, 3)
    for n in range(roles):
        yield {f"POST roles": {"metadata": {"name": f"r{n}"}, "rules": [rule(chosen) for _ in range(chosen.randint(1, 2))]}}
        name = f"{{ns}}-c{n}"
        yield {f"POST clusterroles": {"metadata": {"name": name}, "rules": [cluster_rule(chosen) for _ in range(chosen.randint(1, 2))]}}
    bind = lambda kind, name: {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}, "subjects": [subject(chosen)]}
    for n in range(roles):
        yield {"POST rolebindings": {"metadata": {"name": f"b{n}"}, **bind("Role", f"r{n}")}}
        whole = chosen.random() < 0.5
        yield {f"POST {'clusterrolebindings' if whole else 'rolebindings'}": {"metadata": {"name": f"{{ns}}-c{n}"}, **bind("ClusterRole", f"{{ns}}-c{n}")}}
    for name in NAMES[:2]:
        yield {"POST configmaps": {"metadata": {"name": name}}}
        yield {"POST secrets": {"metadata": {"name": name}}}
    for _ in range(PROBES):
        yield {**right(chosen), "as": chosen.choice(ASKERS)}


def right(chosen):
    resource, name = chosen.choice(["configmaps", "secrets", "leases", "deployments", "roles", "rolebindings"]), chosen.choice(NAMES)
    one = f"{resource}/{name}"
    return chosen.choice([
        lambda: {f"GET {resource}": None},
        lambda: {f"GET {resource}?fieldSelector=metadata.name%3D{name}": None},
        lambda: {f"GET {one}": None},
        lambda: {f"GET {one}": None},
        lambda: {f"POST {resource}?dryRun=All": {"metadata": {"name": name}}},
        lambda: {f"PUT {one}?dryRun=All": {"metadata": {"name": name}}},
        lambda: {f"MERGE {one}?dryRun=All": {"metadata": {"labels": {"x": "y"}}}},
        lambda: {f"APPLY {one}?dryRun=All&fieldManager=a": {"metadata": {"name": name}}},
        lambda: {f"DELETE {one}?dryRun=All": None},
        lambda: {f"DELETE {resource}?dryRun=All": None},
        lambda: {f"GET deployments/{name}/scale": None},
        lambda: {f"GET {chosen.choice(['/healthz', '/metrics', '/version', '/version/', '/healthz/ping', '/apis/apps', '/x'])}": None},
        lambda: {"POST roles?dryRun=All": {"metadata": {"name": "made"}, "rules": [rule(chosen)]}},
        lambda: {"POST clusterroles?dryRun=All": {"metadata": {"name": "{ns}-made"}, "rules": [cluster_rule(chosen)]}},
        lambda: {"POST rolebindings?dryRun=All": {"metadata": {"name": "made"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"r{chosen.randint(0, 2)}"}}},
        lambda: access(chosen, resource, name),
        lambda: access(chosen, resource, name),
        lambda: {"POST selfsubjectrulesreviews": {"spec": {"namespace": "{ns}"}}},
    ])()


def access(chosen, resource, name):
    attributes = {"verb": chosen.choice(VERBS), "resource": chosen.choice([resource, "*", "pods"]), "group": chosen.choice(GROUPS)}
    for key, value in [("name", name), ("namespace", "{ns}"), ("subresource", chosen.choice(["scale", "status", "*"]))]:
        if chosen.random() < 0.5:
            attributes[key] = value
    return {"POST selfsubjectaccessreviews": {"spec": {"resourceAttributes": attributes}}}


# Quotas and limits.


def amount(chosen, of):
    return chosen.choice({"cpu": ["50m", "100m", "0.25", "1", "1500m", 2], "memory": ["10Mi", "128Mi", "1Gi", "1e8", 1000, "0"], "ephemeral-storage": ["1Gi", "5M"]}[of])


def amounts(chosen):
    return {of: amount(chosen, of) for of in some(chosen, ["cpu", "memory", "ephemeral-storage"])} if chosen.random() < 0.8 else {}


def resources(chosen):
    return {part: amounts(chosen) for part in some(chosen, ["requests", "limits"], 2)} if chosen.random() < 0.8 else {}


def container(chosen, name):
    return {"name": name, "image": "i", "resources": resources(chosen)}


def pod(chosen, n):
    spec = {"containers": [container(chosen, f"c{i}") for i in range(chosen.randint(1, 2))]}
    if chosen.random() < 0.3:
        spec["initContainers"] = [{**container(chosen, "init"), **chosen.choice([{}, {"restartPolicy": "Always"}])}]
    if chosen.random() < 0.2:
        spec["activeDeadlineSeconds"] = 9
    if chosen.random() < 0.2:
        spec["priorityClassName"] = chosen.choice(["system-cluster-critical", "none"])
    if chosen.random() < 0.1:
        spec["resources"] = resources(chosen)
    return {"metadata": {"name": f"p{n}"}, "spec": spec}


def claim(chosen, n):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": chosen.choice(["1Gi", "500Mi", "3G"])}}}
    if chosen.random() < 0.5:
        spec["storageClassName"] = chosen.choice(["gold", "tin"])
    return {"metadata": {"name": f"v{n}"}, "spec": spec}


def service(chosen, n):
    return {"metadata": {"name": f"s{n}"}, "spec": {"type": chosen.choice(["ClusterIP", "NodePort", "LoadBalancer"]), "ports": [{"port": 80 + i, "name": f"p{i}"} for i in range(chosen.randint(1, 2))]}}


HARD = {
    "pods": "5", "cpu": "2", "requests.cpu": "2", "limits.cpu": "3", "memory": "2Gi", "requests.memory": "1Gi", "limits.memory": "2Gi", "count/pods": "9",
    "requests.ephemeral-storage": "9Gi", "limits.ephemeral-storage": "9Gi", "services": "3", "services.nodeports": "3", "services.loadbalancers": "1",
    "persistentvolumeclaims": "3", "requests.storage": "4Gi", "gold.storageclass.storage.k8s.io/requests.storage": "2Gi", "configmaps": "2",
    "count/configmaps": "3", "count/deployments.apps": "1", "secrets": "0",
}
SCOPES = [["BestEffort"], ["NotBestEffort"], ["Terminating"], ["NotTerminating"], ["Terminating", "NotBestEffort"]]


def quotas(chosen):
    for n in range(chosen.randint(1, 3)):
        if chosen.random() < 0.3:
            spec = {"hard": {"pods": "2"}, "scopes": chosen.choice(SCOPES)}
        elif chosen.random() < 0.2:
            operator = chosen.choice([{"operator": "In", "values": ["system-cluster-critical"]}, {"operator": "Exists"}, {"operator": "DoesNotExist"}])
            spec = {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", **operator}]}}
        else:
            spec = {"hard": {key: HARD[key] for key in some(chosen, list(HARD), 6)}}
        yield {f"QUOTA q{n}": spec}
    if chosen.random() < 0.5:
        yield {"POST limitranges": {"metadata": {"name": "l"}, "spec": {"limits": [limit(chosen) for _ in range(chosen.randint(1, 2))]}}}
    for n in range(PROBES - 3):
        dry = chosen.choice(["", "", "", "?dryRun=All"])
        yield chosen.choice([
            lambda: {f"POST pods{dry}": pod(chosen, n)},
            lambda: {f"POST pods{dry}": pod(chosen, n)},
            lambda: {f"POST pods{dry}": pod(chosen, n)},
            lambda: {f"POST persistentvolumeclaims{dry}": claim(chosen, n)},
            lambda: {f"POST services{dry}": service(chosen, n)},
            lambda: {f"MERGE services/s{n - chosen.randint(1, 5)}{dry}": {"spec": {"type": chosen.choice(["NodePort", "LoadBalancer"])}}},
            lambda: {f"POST configmaps{dry}": {"metadata": {"name": f"m{n}"}}},
            lambda: {f"POST secrets{dry}": {"metadata": {"name": f"m{n}"}}},
            lambda: {f"POST deployments{dry}": {"metadata": {"name": f"d{n}"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
        ])()
    for n in range(3):
        yield {f"GET resourcequotas/q{n}": None}


def limit(chosen):
    kind = chosen.choice(["Container", "Container", "Pod", "PersistentVolumeClaim"])
    if kind == "PersistentVolumeClaim":
        return {"type": kind, "min": {"storage": "700Mi"}, "max": {"storage": "2Gi"}}
    made = {"type": kind}
    for part, values in [("min", {"cpu": "60m", "memory": "20Mi"}), ("max", {"cpu": "1", "memory": "512Mi"}), ("maxLimitRequestRatio", {"cpu": "4", "memory": "3"})]:
        if chosen.random() < 0.5:
            made[part] = {key: values[key] for key in some(chosen, list(values), 2)}
    if kind == "Container" and chosen.random() < 0.6:
        made["default"] = {"cpu": "800m", "memory": "256Mi"}
        made["defaultRequest"] = {"cpu": chosen.choice(["100m", "300m"])}
    return made if len(made) > 1 else {**made, "max": {"cpu": "2"}}


# Webhooks and policies.

CONDITIONS = [
    "object != null && object.metadata.name.startsWith('a')", "request.operation == 'CREATE'", "request.operation != 'DELETE'", "object.data.a == 'x'",
    "has(object.data) && 'a' in object.data", "request.userInfo.username == 'admin'", "'system:masters' in request.userInfo.groups",
    "oldObject == null", "request.dryRun == true", "request.resource.resource == 'configmaps'", "!has(request.subResource)", "request.kind.kind == 'ConfigMap'",
    "request.name == 'a'", "request.options.?fieldManager.orValue('') == 'm'", "object.metadata.labels.exists(k, k == 'x')",
    "authorizer.group('').resource('pods').check('create').allowed()",
]
ANSWERS = ["allow", "label", "count", "refuse", "refuse-message", "refuse-reason", "refuse-code", "warn", "error", "half", "spoil", "unfit", "missing", "rename", "annotate", "empty-patch"]
OWN = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}


def rules(chosen):
    operations = some(chosen, ["CREATE", "UPDATE", "DELETE"]) if chosen.random() < 0.7 else ["*"]
    made = {"apiGroups": ["", "apps"] if chosen.random() < 0.7 else ["*"], "apiVersions": ["*"], "operations": operations}
    made["resources"] = some(chosen, ["configmaps", "secrets", "deployments", "deployments/scale", "deployments/status"], 4) if chosen.random() < 0.7 else [chosen.choice(["*", "*/*", "*/scale"])]
    if chosen.random() < 0.2:
        made["scope"] = chosen.choice(["Namespaced", "*", "Cluster"])
    return [made]


def conditions(chosen):
    return [{"name": f"c{n}", "expression": expression} for n, expression in enumerate(some(chosen, CONDITIONS, 2))] if chosen.random() < 0.5 else []


def selector(chosen):
    return chosen.choice([{"matchLabels": {"x": "1"}}, {"matchExpressions": [{"key": "x", "operator": chosen.choice(["Exists", "DoesNotExist"])}]}])


def webhook(chosen, n, changes):
    answers = ANSWERS if changes else [a for a in ANSWERS if a not in ("label", "count", "spoil", "unfit", "rename", "empty-patch")]
    made = {
        "name": f"w{n}.ex.io", "admissionReviewVersions": chosen.choice([["v1"], ["v1beta1"], ["v2", "v1"]]), "sideEffects": "None",
        "clientConfig": {"url": f"$hook/{chosen.choice(answers)}/{'m' if changes else 'v'}{n}", "caBundle": "$ca"},
        "rules": rules(chosen), "namespaceSelector": OWN, "matchConditions": conditions(chosen),
        "failurePolicy": chosen.choice(["Fail", "Ignore"]), "matchPolicy": chosen.choice(["Exact", "Equivalent"]),
    }
    if chosen.random() < 0.3:
        made["objectSelector"] = selector(chosen)
    if changes:
        made["reinvocationPolicy"] = chosen.choice(["Never", "IfNeeded"])
    return made


def webhooks(chosen):
    changing = [webhook(chosen, n, True) for n in range(chosen.randint(0, 3))]
    # Of several that refuse, the reference tells whichever came first.
    judging = [webhook(chosen, 0, False)]
    yield {"POST mutatingwebhookconfigurations": {"metadata": {"name": "{ns}"}, "webhooks": changing}}
    yield {"POST validatingwebhookconfigurations": {"metadata": {"name": "{ns}"}, "webhooks": judging}}
    for n in range(PROBES // 2):
        yield write(chosen)
        yield {"SEEN hook": None}
    yield {"DELETE mutatingwebhookconfigurations/{ns}": None}
    yield {"DELETE validatingwebhookconfigurations/{ns}": None}


def write(chosen):
    name = chosen.choice(["a", "ab", "b"])
    body = {"metadata": {"name": name, **({"labels": {"x": chosen.choice(["1", "2"])}} if chosen.random() < 0.5 else {})}}
    data = {"data": chosen.choice([{"a": "x"}, {"a": "eA=="}, {"b": "eA=="}])} if chosen.random() < 0.6 else {}
    query = chosen.choice(["", "?fieldManager=m", "?dryRun=All", ""])
    force = ("&" if query else "?") + "force=true" + ("" if "fieldManager" in query else "&fieldManager=f")
    labels = {"metadata": {"labels": {"x": chosen.choice(["1", "2", None])}}}
    spec = {"replicas": chosen.randint(0, 9), "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}
    return chosen.choice([
        lambda: {f"POST configmaps{query}": {**body, **data}},
        lambda: {f"POST configmaps{query}": {**body, **data}},
        lambda: {f"PUT configmaps/{name}{query}": {**body, **data}},
        lambda: {f"MERGE configmaps/{name}{query}": {**labels, **data}},
        lambda: {f"APPLY configmaps/{name}{query}{force}": {**body, **data}},
        lambda: {f"DELETE configmaps/{name}{query.replace('?fieldManager=m', '')}": None},
        lambda: {f"POST deployments{query}": {**body, "spec": spec}},
        lambda: {f"MERGE deployments/{name}{query}": {"spec": {"replicas": chosen.randint(0, 9)}}},
        lambda: {f"MERGE deployments/{name}/scale{query}": {"spec": {"replicas": chosen.randint(0, 9)}}},
        lambda: {f"MERGE deployments/{name}/status{query}": {"status": {"replicas": chosen.randint(0, 9)}}},
        lambda: {f"POST secrets{query}": body},
    ])()


VALIDATIONS = CONDITIONS + [
    "size(object.metadata.name) < 2", "variables.n < 2", "variables.team == 'x'", "object.spec.replicas < 5", "!has(object.data) || object.data.all(k, k != 'b')",
    "oldObject == null || oldObject.metadata.resourceVersion != ''", "namespaceObject.metadata.name == request.namespace", "params == null",
    "object.metadata.name.matches('^a+$')", "has(object.metadata.labels) ? object.metadata.labels['x'] == '1' : true", "string(object.metadata.generation) == '1'",
    "[1, 2, 3].exists(i, i == size(object.metadata.name))", "request.options.kind in ['CreateOptions', 'UpdateOptions', 'PatchOptions']",
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))", "object.metadata.name.find('[a-c]+') == object.metadata.name", "variables.broken == 1",
]
VARIABLES = [{"name": "n", "expression": "size(object.metadata.name)"}, {"name": "team", "expression": "object.metadata.labels.x"}, {"name": "broken", "expression": "int(object.metadata.name)"}]


def validation(chosen):
    made = {"expression": chosen.choice(VALIDATIONS)}
    if chosen.random() < 0.4:
        made["message"] = chosen.choice(["no", "never ever"])
    if chosen.random() < 0.3:
        made["messageExpression"] = chosen.choice(["'name ' + object.metadata.name", "string(object.spec.replicas)", "''", "'a\\nb'", "request.operation"])
    if chosen.random() < 0.3:
        made["reason"] = chosen.choice(["Invalid", "Forbidden", "Unauthorized", "RequestEntityTooLarge"])
    return made


def policies(chosen):
    # Of several policies that refuse, the reference tells whichever its maps have first.
    matching = {"namespaceSelector": OWN, "resourceRules": rules(chosen)}
    if chosen.random() < 0.2:
        matching["objectSelector"] = selector(chosen)
    if chosen.random() < 0.2:
        matching["excludeResourceRules"] = rules(chosen)
    spec = {
        "failurePolicy": chosen.choice(["Fail", "Ignore"]), "matchConstraints": matching, "matchConditions": conditions(chosen), "variables": VARIABLES,
        "validations": [validation(chosen) for _ in range(chosen.randint(1, 3))],
    }
    yield {f"POST {POLICIES}": {"metadata": {"name": "{ns}"}, "spec": spec}}
    actions = chosen.choice([["Deny"], ["Deny"], ["Deny", "Audit"], ["Warn"], ["Warn", "Audit"]])
    yield {"POST validatingadmissionpolicybindings": {"metadata": {"name": "{ns}"}, "spec": {"policyName": "{ns}", "validationActions": actions}}}
    for _ in range(PROBES):
        yield write(chosen)
    yield {"DELETE validatingadmissionpolicybindings/{ns}": None}
    yield {f"DELETE {POLICIES}/{{ns}}": None}


# Pod security.


def security(chosen):
    labels = {f"pod-security.kubernetes.io/{mode}": chosen.choice(["privileged", "baseline", "restricted"]) for mode in some(chosen, ["enforce", "warn", "audit"])}
    if chosen.random() < 0.4:
        labels["pod-security.kubernetes.io/enforce-version"] = chosen.choice(["latest", "v1.0", "v1.20", "v1.35"])
    yield {"MERGE namespaces/{ns}": {"metadata": {"labels": labels}}}
    for n in range(PROBES):
        spec = secured(chosen)
        if chosen.random() < 0.3:
            template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
            yield {"POST deployments?dryRun=All": {"metadata": {"name": f"d{n}"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}}
        else:
            yield {f"POST pods{chosen.choice(['', '?dryRun=All'])}": {"metadata": {"name": f"p{n}"}, "spec": spec}}
    yield {"MERGE namespaces/{ns}": {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": chosen.choice(["baseline", "restricted"])}}}}


CONTEXT = [
    {"privileged": True}, {"allowPrivilegeEscalation": False}, {"capabilities": {"drop": ["ALL"]}}, {"capabilities": {"add": ["NET_ADMIN"]}}, {"runAsNonRoot": True},
    {"runAsUser": 0}, {"seccompProfile": {"type": "RuntimeDefault"}}, {"seccompProfile": {"type": "Unconfined"}}, {"procMount": "Default"},
    {"capabilities": {"add": ["CHOWN"], "drop": ["ALL"]}}, {"seLinuxOptions": {"type": "spc_t"}}, {"appArmorProfile": {"type": "Unconfined"}},
    {"windowsOptions": {"hostProcess": True}},
]


def context(chosen):
    merged = {}
    for part in some(chosen, CONTEXT, 4):
        merged.update(part)
    return merged


def secured(chosen):
    containers = [{"name": f"c{i}", "image": "i", "securityContext": context(chosen)} for i in range(chosen.randint(1, 3))]
    spec = {"containers": containers}
    pod_context = {key: value for key, value in context(chosen).items() if key in ("runAsNonRoot", "runAsUser", "seccompProfile", "seLinuxOptions", "appArmorProfile")}
    if chosen.random() < 0.5:
        spec["securityContext"] = pod_context
    if chosen.random() < 0.1:
        spec["securityContext"] = {**pod_context, "sysctls": [{"name": "kernel.msgmax", "value": "1"}]}
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if chosen.random() < 0.1:
            spec[field] = True
    if chosen.random() < 0.2:
        containers[0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if chosen.random() < 0.2:
        spec["volumes"] = [{"name": "v", **chosen.choice([{"hostPath": {"path": "/"}}, {"emptyDir": {}}, {"nfs": {"server": "s", "path": "/"}}])}]
    if chosen.random() < 0.2:
        spec["initContainers"] = [{"name": "init", "image": "i", "securityContext": context(chosen)}]
    return spec
