package main

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var objects = []json.RawMessage{
	json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"t","labels":{"app":"web","tier":"a"}},"spec":{"containers":[{"name":"main","image":"i:1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"args":["x"],"ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1"}}},{"name":"side","image":"s:2"}],"tolerations":[{"key":"k","operator":"Exists"}],"nodeSelector":{"n":"1"},"volumes":[{"name":"v","emptyDir":{}}]}}`),
	json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bare","namespace":"t"},"spec":{"containers":[{"name":"main","image":"i"}],"hostAliases":[{"ip":"1.2.3.4","hostnames":["a"]}],"imagePullSecrets":[{"name":"s"}],"securityContext":{"runAsUser":7}}}`),
	json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"twice","namespace":"t","annotations":{"a":"b"},"finalizers":["f/a","f/b"]},"spec":{"containers":[{"name":"main","image":"i","env":[{"name":"A","value":"1"},{"name":"A","value":"2"},{"name":"C","value":"3"}]}],"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}]}}`),
	json.RawMessage(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"t"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"main","image":"i"}]}}}}`),
	json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"t","labels":{"l":"1"}},"data":{"k":"v","n":"12"}}`),
	json.RawMessage(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"t"},"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":8080},{"name":"x","port":81,"protocol":"TCP","targetPort":"web"}],"selector":{"app":"web"}}}`),
}

// A tree of fields: a struct's fields, a list of structs, or texts of which one is chosen.
type fields map[string]any
type items struct{ of fields }

var container = fields{
	"name": []string{"'main'", "'side'", "'new'", "object.metadata.name"}, "image": []string{"'j'", "'i:' + object.metadata.name"},
	"env":   items{fields{"name": []string{"'A'", "'B'", "'D'"}, "value": []string{"'x'", "string(1 + 2)", "''"}}},
	"ports": items{fields{"containerPort": []string{"80", "81", "80 + 1"}, "protocol": []string{"'TCP'", "'UDP'"}}},
	"args":  []string{"['a', 'b']", "[]"}, "stdin": []string{"true", "1 < 2", "'yes'"},
	"resources":       fields{"limits": []string{"{'cpu': '2'}", "{'memory': '1Gi', 'cpu': '3'}"}, "requests": []string{"{}"}},
	"securityContext": fields{"runAsUser": []string{"1", "10000000000", "1.0", "1.5"}, "privileged": []string{"false"}, "capabilities": fields{"drop": []string{"['ALL']"}}},
}

var podSpec = fields{
	"containers": items{container}, "initContainers": items{container}, "hostNetwork": []string{"true", "false"},
	"serviceAccountName": []string{"'a'", "1"}, "terminationGracePeriodSeconds": []string{"5", "5u", "'5'"},
	"nodeSelector": []string{"{'a': 'b'}"}, "tolerations": items{fields{"key": []string{"'t'"}}},
	"hostAliases": items{fields{"ip": []string{"'1.2.3.4'", "'::1'"}, "hostnames": []string{"['b']"}}},
	"volumes":     items{fields{"name": []string{"'v'", "'w'"}, "emptyDir": fields{"medium": []string{"'Memory'"}}}},
	"topologySpreadConstraints": items{fields{"topologyKey": []string{"'z'", "'y'"}, "maxSkew": []string{"2"},
		"whenUnsatisfiable": []string{"'DoNotSchedule'", "'ScheduleAnyway'"}}},
	"imagePullSecrets": items{fields{"name": []string{"'s'", "'u'"}}}, "securityContext": fields{"fsGroup": []string{"3"}},
	"readinessGates": items{fields{"conditionType": []string{"'x'"}}}, "nope": []string{"1"},
}

var metadata = fields{
	"labels":      []string{"{'app': 'x'}", "{'l': object.metadata.name, 'm': 'n'}", "{}", "{'n': 1}"},
	"annotations": []string{"{'a': 'c', 'd': 'e'}", "{'t': string(size(object.metadata.name))}"},
	"finalizers":  []string{"['f/c']", "['f/a', 'f/d']"}, "generation": []string{"4"},
	"ownerReferences": items{fields{"uid": []string{"'u1'", "'u2'"}, "name": []string{"'o'"}, "kind": []string{"'K'"}, "apiVersion": []string{"'v1'"}}},
}

var trees = map[string]fields{
	"Pod":        {"metadata": metadata, "spec": podSpec, "kind": []string{"'Other'"}},
	"Deployment": {"metadata": metadata, "spec": fields{"replicas": []string{"3", "object.spec.replicas + 1", "'3'"}, "paused": []string{"true"}, "strategy": fields{"type": []string{"'Recreate'"}}, "selector": fields{"matchLabels": []string{"{'a': 'b'}"}}, "template": fields{"metadata": metadata, "spec": podSpec}}},
	"ConfigMap":  {"metadata": metadata, "data": []string{"{'k': 'w'}", "{'z': 'y', 'k': object.data.k + '!'}", "object.data", "{'b': object.data}"}, "immutable": []string{"true"}, "binaryData": []string{"{'x': b'abc'}", "{'x': 'YWJj'}"}},
	"Service": {"metadata": metadata, "spec": fields{"type": []string{"'NodePort'"}, "selector": []string{"{'a': 'b'}"}, "externalIPs": []string{"['1.1.1.1']"},
		"ports": items{fields{"port": []string{"80", "82"}, "protocol": []string{"'TCP'"}, "name": []string{"'q'"}, "targetPort": []string{"'w'", "9"}}}}},
}

func (l *lab) one(of []string) string { return of[l.random.Intn(len(of))] }

func (l *lab) chance(percent int) bool { return l.random.Intn(100) < percent }

func (l *lab) configuration(of int) (string, []variable) {
	kind := l.objects[of].GetObjectKind().GroupVersionKind().Kind
	made := l.structure("Object", trees[kind])
	var variables []variable
	if l.chance(20) {
		variables = []variable{{"v", "object.metadata.name + '-v'"}, {"w", "size(variables.v)"}}
		made = strings.Replace(made, "'x'", "variables.v", 1)
		made = strings.Replace(made, "81", "variables.w", 1)
	}
	if l.chance(10) {
		made = fmt.Sprintf("has(object.spec) && object.metadata.name != 'x' ? %s : Object{}", made)
	}
	return made, variables
}

// Go's maps have no order, so that names are sorted first.
func (l *lab) structure(path string, tree fields) string {
	var parts []string
	for _, name := range sorted(tree) {
		if !l.chance(110 / (len(tree) + 1)) {
			continue
		}
		value := l.value(path+"."+name, tree[name])
		switch {
		case l.chance(4):
			parts = append(parts, fmt.Sprintf("?%s: optional.of(%s)", name, value))
		case l.chance(4):
			parts = append(parts, fmt.Sprintf("?%s: optional.none()", name))
		default:
			parts = append(parts, name+": "+value)
		}
	}
	if l.chance(1) {
		path += "Wrong"
	}
	return path + "{" + strings.Join(parts, ", ") + "}"
}

func (l *lab) value(path string, of any) string {
	switch of := of.(type) {
	case []string:
		return l.one(of)
	case fields:
		return l.structure(path, of)
	case items:
		var made []string
		for n := l.random.Intn(3); n >= 0; n-- {
			made = append(made, l.structure(path, of.of))
		}
		return "[" + strings.Join(made, ", ") + "]"
	}
	panic(path)
}

func sorted(tree fields) []string {
	var names []string
	for name := range tree {
		names = append(names, name)
	}
	for i := range names {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

var paths = []string{"/metadata/labels", "/metadata/labels/app", "/metadata/labels/new", "/metadata/annotations", "/metadata/name",
	"/metadata/annotations/' + jsonpatch.escapeKey('ex.io/~a') + '", "/spec", "/spec/containers/0/image", "/spec/containers/-",
	"/spec/containers/5", "/spec/containers/-1", "/spec/containers/x", "/spec/containers/0/env/0", "/spec/containers/0/env/-",
	"/spec/replicas", "/data/k", "/data/new", "/data", "/spec/ports/0", "/spec/ports/1/targetPort", "/spec/tolerations", "/spec/nope",
	"/nope", "/nope/nope", "", "metadata", "/metadata/finalizers/0", "/kind", "/spec/template/spec/containers/0/args", "/metadata/ownerReferences"}

var values = []string{"'x'", "1", "true", "null", "2.5", "{'a': 'b'}", "['a']", "[]", "{}", "object.metadata.name", "object.metadata",
	"Object.spec.containers{name: 'n', image: 'i'}", "[Object.spec.containers{name: 'n', image: 'i', ports: [Object.spec.containers.ports{containerPort: 4}]}]",
	"Object.metadata{name: 'z', labels: {'q': 'r'}}", "9007199254740993", "duration('90s')", "timestamp('2024-01-02T03:04:05Z')", "b'abc'",
	"Object.spec{containers: Object.spec.wrong{}}", "{'a': {'b': ['c']}}", "{1: 'a'}", "1.0", "12u", "'i:' + string(size(object.metadata.name))",
	"optional.of('o')", "object.metadata.?labels.orValue({'none': 'y'})"}

func (l *lab) operations(int) (string, []variable) {
	var made []string
	for n := l.random.Intn(3); n >= 0; n-- {
		op := l.one([]string{"add", "add", "add", "replace", "replace", "remove", "test", "copy", "move", "frob"})
		parts := []string{"op: '" + op + "'", "path: '" + l.one(paths) + "'"}
		if op == "copy" || op == "move" || l.chance(3) {
			parts = append(parts, "from: '"+l.one(paths)+"'")
		}
		if op == "add" || op == "replace" || op == "test" || l.chance(5) {
			parts = append(parts, "value: "+l.one(values))
		}
		if l.chance(2) {
			parts = parts[:len(parts)-1]
		}
		made = append(made, "JSONPatch{"+strings.Join(parts, ", ")+"}")
	}
	whole := "[" + strings.Join(made, ", ") + "]"
	if l.chance(10) {
		whole = "object.kind == 'Pod' ? " + whole + " : []"
	}
	return whole, nil
}

var truths = []string{"object.metadata.name == 'web'", "has(object.metadata.labels) && 'app' in object.metadata.labels",
	"object.spec.containers.all(c, c.image.contains(':'))", "object.spec.replicas < 3", "oldObject == null", "request.operation == 'UPDATE'",
	"request.userInfo.username == 'alice'", "'devs' in request.userInfo.groups", "has(request.namespace)", "request.dryRun", "namespaceObject == null",
	"object.data.exists(k, k == 'n')", "variables.a > 2", "variables.b", "variables.c", "object.metadata.labels.app == 'web' || true",
	"object.spec.containers.exists(c, c.name == 'side')", "false", "true", "1 / size(object.metadata.name) > 0", "object.spec.nope == 1",
	"variables.long.contains(variables.long + variables.long)", "variables.long.contains(variables.long)", "quantity(object.spec.containers[0].resources.limits.cpu).isGreaterThan(quantity('500m'))",
	"object.metadata.name.matches('^[a-z]+$')", "size(object.metadata) > 1 && variables.a == 4"}

var texts = []string{"'the name is ' + object.metadata.name", "string(variables.a)", "' '", "'a\\nb'", "object.spec.nope", "'x'.replace('x', 'yy')", "variables.c ? 'a' : 'b'"}

func (l *lab) validatingSpec() admissionv1.ValidatingAdmissionPolicySpec {
	policy := admissionv1.Fail
	if l.chance(25) {
		policy = admissionv1.Ignore
	}
	spec := admissionv1.ValidatingAdmissionPolicySpec{FailurePolicy: &policy, Variables: []admissionv1.Variable{
		{Name: "a", Expression: "size(object.metadata.name)"}, {Name: "b", Expression: "variables.a < 4"},
		{Name: "c", Expression: "object.spec.missing == variables.a"},
		{Name: "long", Expression: "lists.range(950).map(n, 'abcdefghij').join()"}}}
	reasons := []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge}
	if l.chance(4) {
		// Each is cheap enough, and all of them together are not.
		for n := 8 + l.random.Intn(6); n > 0; n-- {
			spec.Validations = append(spec.Validations, admissionv1.Validation{Expression: "variables.long.contains(variables.long)"})
		}
	}
	for n := l.random.Intn(4); n >= 0; n-- {
		one := admissionv1.Validation{Expression: l.one(truths)}
		if l.chance(40) {
			one.Message = l.one([]string{"m", " padded ", "long message"})
		}
		if l.chance(40) {
			one.MessageExpression = l.one(texts)
		}
		if l.chance(40) {
			one.Reason = &reasons[l.random.Intn(3)]
		}
		spec.Validations = append(spec.Validations, one)
	}
	for n := l.random.Intn(3); n > 0; n-- {
		spec.AuditAnnotations = append(spec.AuditAnnotations, admissionv1.AuditAnnotation{Key: fmt.Sprintf("k%d", n),
			ValueExpression: l.one([]string{"'v ' + object.metadata.name", "''", "object.metadata.name == 'web' ? 'w' : null", "object.spec.nope", "string(variables.a)"})})
	}
	return spec
}

var typed = map[string][]string{
	"":           {"object.metadata.name == 1", "object.metadata.nope", "object.metadata.labels['a'] > 2", "object.metadata.creationTimestamp < timestamp('2024-01-01T00:00:00Z')", "object.kind + 1", "oldObject.spec.nope", "variables.n == 'x'", "variables.l.all(k, k == 1)", "request.nope", "params.x", "authorizer.allowed()", "authorizer.requestResource.check('get').allowed()", "namespaceObject.metadata.name == 2", "object.metadata.ownerReferences.exists(o, o.controller == 'x')", "object.metadata.managedFields[0].fieldsV1.x"},
	"Pod":        {"object.spec.containers.all(c, c.image == 1)", "object.spec.nope == 1", "object.spec.containers[0].resources.limits.cpu == '1'", "object.spec.hostNetwork && object.spec.priority == 'x'", "object.spec.containers.exists(c, c.env.exists(e, e.nope))", "object.status.startTime == 'x'", "object.spec.nodeSelector.x == 1", "object.spec.containers[0].livenessProbe.httpGet.port == 'x'"},
	"Deployment": {"object.spec.replicas > 'x'", "object.spec.template.spec.nope", "object.spec.strategy.rollingUpdate.maxSurge == 'x'", "object.spec.replicas == 1"},
	"ConfigMap":  {"object.data.x == 1", "object.binaryData.x == 'x'", "object.binaryData.x == b'x'", "object.immutable == 1"},
	"Service":    {"object.spec.ports[0].targetPort == 'x'", "object.spec.ports[0].port == 'x'", "object.spec.sessionAffinityConfig.clientIP.timeoutSeconds == 'a'"},
}

func (l *lab) typedSpec(kind string) admissionv1.ValidatingAdmissionPolicySpec {
	spec := admissionv1.ValidatingAdmissionPolicySpec{Variables: []admissionv1.Variable{
		{Name: "n", Expression: "object.metadata.generation"}, {Name: "l", Expression: "object.metadata.labels"}}}
	if l.chance(30) {
		spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: l.one([]string{"ConfigMap", "Secret", "None"})}
	}
	for n := l.random.Intn(3); n >= 0; n-- {
		one := admissionv1.Validation{Expression: l.one(append(append([]string{}, typed[""]...), typed[kind]...))}
		if l.chance(30) {
			one.MessageExpression = l.one([]string{"object.metadata.nope", "'x' + 1", "'fine'", "params.data.x + 1"})
		}
		spec.Validations = append(spec.Validations, one)
	}
	return spec
}
