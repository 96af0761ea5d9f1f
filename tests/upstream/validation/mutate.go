package main

import (
	"sort"
	"strconv"
	"strings"
)

// A mutation puts a value at a path of an object, or takes the path out.
type mutation struct {
	Path string `json:"path"`
	// Nothing means: take it out.
	To *any `json:"to,omitempty"`
}

// What stands in the way of a valid object, by what it replaces.
var (
	texts   = []any{"", "Wrong Value!", "a.b/c", "-1", "/abs/../x", strings.Repeat("a", 64)}
	numbers = []any{0, -1, 1, 101, 70000, 4294967296}
)

// mutations are all that may be done to an object, one at a time.
func mutations(object map[string]any) []mutation {
	var found []mutation
	put := func(path string, value any) { found = append(found, mutation{path, &value}) }
	var walk func(path string, value any)
	walk = func(path string, value any) {
		if skip(path) {
			return
		}
		if path != "" && path != "/metadata" {
			found = append(found, mutation{Path: path})
		}
		switch value := value.(type) {
		case string:
			for _, text := range texts {
				put(path, text)
			}
		case float64:
			for _, number := range numbers {
				put(path, number)
			}
		case bool:
			put(path, !value)
		case []any:
			put(path, []any{})
			if len(value) > 0 {
				put(path, append(append([]any{}, value...), value[0]))
			}
			for i, item := range value {
				walk(path+"/"+strconv.Itoa(i), item)
			}
		case map[string]any:
			if path != "" && path != "/metadata" {
				put(path, map[string]any{})
			}
			for _, key := range keys(value) {
				walk(path+"/"+escape(key), value[key])
			}
			if open(path) {
				put(path+"/Bad Key!", "x")
			}
		}
	}
	walk("", object)
	return found
}

func keys(members map[string]any) []string {
	var names []string
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// What is not the kind's own, or is the server's.
func skip(path string) bool {
	switch path {
	case "/apiVersion", "/kind", "/metadata/name", "/metadata/uid", "/metadata/creationTimestamp", "/metadata/resourceVersion",
		"/metadata/generation", "/metadata/namespace", "/metadata/managedFields":
		return true
	}
	return false
}

// What a server fills in before it asks the strategy, which cannot be seen from here: addresses and ports of services.
func filledIn(kind string, m mutation) bool {
	if kind != "Service" {
		return false
	}
	empty := m.To == nil
	if !empty {
		switch value := (*m.To).(type) {
		case []any:
			empty = len(value) == 0
		case map[string]any:
			empty = len(value) == 0
		case int:
			empty = value == 0
		}
	}
	switch m.Path {
	case "/spec", "/spec/clusterIPs", "/spec/clusterIPs/0", "/spec/clusterIP", "/spec/ipFamilies", "/spec/ipFamilies/0", "/spec/healthCheckNodePort":
		return empty
	}
	return false
}

// Maps whose keys are free.
func open(path string) bool {
	for _, name := range []string{"/labels", "/annotations", "/matchLabels", "/nodeSelector", "/data", "/limits", "/requests", "/hard", "/capacity", "/parameters"} {
		if strings.HasSuffix(path, name) {
			return true
		}
	}
	return false
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

func unescape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
}

// apply leaves the object itself as it is.
func (m mutation) apply(object map[string]any) map[string]any {
	parts := strings.Split(m.Path, "/")[1:]
	return change(object, parts, m.To).(map[string]any)
}

func change(value any, path []string, to *any) any {
	if len(path) == 0 {
		return *to
	}
	key := unescape(path[0])
	last := len(path) == 1
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range value {
			out[name] = member
		}
		if last && to == nil {
			delete(out, key)
		} else {
			out[key] = change(value[key], path[1:], to)
		}
		return out
	case []any:
		index, _ := strconv.Atoi(key)
		if last && to == nil {
			return append(append([]any{}, value[:index]...), value[index+1:]...)
		}
		out := append([]any{}, value...)
		out[index] = change(value[index], path[1:], to)
		return out
	}
	return value
}
