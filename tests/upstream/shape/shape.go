// Package shape makes random JSON of Go types: few fields at a time, from a small vocabulary, so that two objects of a
// kind meet in many places.
package shape

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is JSON as encoding/json decodes it.
type Object = map[string]any

// Maker makes values. Nulls and Odd are how often, of 1000 members, null or something of another type is taken.
type Maker struct {
	*rand.Rand
	Nulls int
	Odd   int
}

const maxDepth = 9

var words = []string{"a", "b", "c", "d"}

// keys are what elements of lists are told apart by.
var keys = map[string]bool{
	"name": true, "key": true, "type": true, "uid": true, "ip": true, "containerPort": true, "port": true,
	"protocol": true, "mountPath": true, "devicePath": true, "topologyKey": true, "whenUnsatisfiable": true,
	"containerName": true, "resourceName": true, "driver": true, "pool": true, "device": true, "request": true,
}

// Of makes an object of the type of value.
func (m *Maker) Of(value any) Object {
	kind := reflect.TypeOf(value)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	object := Object{}
	for _, field := range fields(kind) {
		switch field.name {
		case "apiVersion", "kind":
		case "metadata":
			object["metadata"] = m.metadata()
		default:
			if m.Intn(10) > 0 {
				object[field.name] = m.value(field.kind, field.mergeKey, 1)
			}
		}
	}
	return object
}

func (m *Maker) metadata() Object {
	metadata := Object{}
	for _, name := range []string{"labels", "annotations"} {
		if m.Intn(2) == 0 {
			metadata[name] = m.value(reflect.TypeFor[map[string]string](), "", 2)
		}
	}
	if m.Intn(3) == 0 {
		metadata["finalizers"] = m.set()
	}
	if m.Intn(5) == 0 {
		metadata["ownerReferences"] = m.value(reflect.TypeFor[[]meta.OwnerReference](), "uid", 2)
	}
	return metadata
}

func (m *Maker) set() []any {
	set := []any{}
	for _, at := range m.Perm(len(words))[:m.Intn(len(words))] {
		set = append(set, words[at])
	}
	if m.Odd > 0 && len(set) > 0 && m.Intn(50) == 0 {
		set = append(set, set[0])
	}
	return set
}

type field struct {
	name     string
	kind     reflect.Type
	mergeKey string
	strategy string
}

func fields(kind reflect.Type) []field {
	found := []field{}
	for at := range kind.NumField() {
		structField := kind.Field(at)
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		if name == "" && (structField.Anonymous || strings.Contains(options, "inline")) {
			inner := structField.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			found = append(found, fields(inner)...)
		} else if name != "" && name != "-" {
			tag := structField.Tag
			found = append(found, field{name, structField.Type, tag.Get("patchMergeKey"), tag.Get("patchStrategy")})
		}
	}
	return found
}

func (m *Maker) value(kind reflect.Type, mergeKey string, depth int) any {
	if m.Intn(1000) < m.Odd {
		return []any{"a", 1.0, true, Object{"a": "b"}, []any{"a"}}[m.Intn(5)]
	}
	if value, known := m.special(kind); known {
		return value
	}
	switch kind.Kind() {
	case reflect.Pointer:
		return m.value(kind.Elem(), mergeKey, depth)
	case reflect.Bool:
		return m.Intn(2) == 0
	case reflect.Int, reflect.Int32, reflect.Int64:
		return float64(m.Intn(4))
	case reflect.Float64:
		return float64(m.Intn(4)) / 2
	case reflect.String:
		return m.text(kind)
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Uint8 {
			return []string{"YQ==", "Yg=="}[m.Intn(2)]
		}
		return m.list(kind.Elem(), mergeKey, depth)
	case reflect.Map:
		object := Object{}
		for range m.Intn(3) {
			object[words[m.Intn(len(words))]] = m.value(kind.Elem(), "", depth+1)
		}
		return object
	case reflect.Struct:
		return m.members(kind, depth)
	}
	panic(fmt.Sprintf("no value of %s", kind))
}

func (m *Maker) text(kind reflect.Type) string {
	if kind.Name() == "Protocol" {
		return []string{"TCP", "UDP"}[m.Intn(2)]
	}
	return words[m.Intn(len(words))]
}

func (m *Maker) special(kind reflect.Type) (any, bool) {
	switch kind.String() {
	case "v1.Time":
		return []string{"2001-01-01T00:00:00Z", "2002-02-02T00:00:00Z"}[m.Intn(2)], true
	case "v1.MicroTime":
		return []string{"2001-01-01T00:00:00.000000Z", "2002-02-02T00:00:00.000000Z"}[m.Intn(2)], true
	case "v1.Duration":
		return []string{"1s", "2s"}[m.Intn(2)], true
	case "resource.Quantity":
		return []string{"1", "2", "500m", "1Gi"}[m.Intn(4)], true
	case "intstr.IntOrString":
		return []any{1.0, 2.0, "a", "50%"}[m.Intn(4)], true
	case "runtime.RawExtension":
		return Object{"kind": "X", "apiVersion": "y/v1", words[m.Intn(2)]: words[m.Intn(2)]}, true
	case "v1.FieldsV1":
		return Object{"f:a": Object{}}, true
	case "v1.JSON":
		return words[m.Intn(2)], true
	}
	return nil, false
}

func (m *Maker) list(element reflect.Type, mergeKey string, depth int) []any {
	list := []any{}
	length := m.Intn(4)
	if depth > maxDepth {
		length = 0
	}
	for range length {
		list = append(list, m.value(element, "", depth+1))
	}
	if m.Odd > 0 && m.Intn(100) == 0 {
		return list
	}
	return Distinct(list)
}

// Distinct has one element of each key.
func Distinct(list []any) []any {
	seen := map[string]bool{}
	left := []any{}
	for _, element := range list {
		identity := identity(element)
		if !seen[identity] {
			seen[identity] = true
			left = append(left, element)
		}
	}
	return left
}

func identity(element any) string {
	object, isObject := element.(Object)
	if !isObject {
		text, _ := json.Marshal(element)
		return string(text)
	}
	found := Object{}
	for name, value := range object {
		if keys[name] {
			found[name] = value
		}
	}
	// Which of the names is the key depends on the list; one that tells them apart is enough for most.
	for _, name := range []string{"name", "key", "uid", "ip", "mountPath", "devicePath", "type"} {
		if value, has := found[name]; has {
			return fmt.Sprint(name, value)
		}
	}
	if _, has := found["protocol"]; !has {
		found["protocol"] = "TCP"
	}
	text, _ := json.Marshal(found)
	return string(text)
}

func (m *Maker) members(kind reflect.Type, depth int) Object {
	object := Object{}
	if depth > maxDepth {
		return object
	}
	all := fields(kind)
	wanted := 1 + m.Intn(4)
	for _, field := range all {
		chance := float64(wanted) / float64(len(all))
		switch {
		case keys[field.name]:
			chance = 0.9
		case field.mergeKey != "" || field.name == "template" || field.name == "spec":
			chance = max(0.5, chance)
		}
		if m.Float64() < chance {
			object[field.name] = m.value(field.kind, field.mergeKey, depth+1)
			if !keys[field.name] && m.Intn(1000) < m.Nulls {
				object[field.name] = nil
			}
		}
	}
	if m.Intn(1000) < m.Odd {
		object["nobodyKnows"] = 1.0
	}
	return object
}
