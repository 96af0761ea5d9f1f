// Applies manifests with kubectl to two servers, and tells where they differ: in what kubectl prints, in what is
// stored, and in the Pods that are made of the templates of workloads.
//
//	manifests KUBECTL REFERENCE-KUBECONFIG OTHER-KUBECONFIG FILE...
//
// Documents of kinds that a CustomResourceDefinition would have to serve are left out.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
)

var kubectl string

// A side is one of the two servers.
type side struct{ kubeconfig string }

// An outcome is what one command printed.
type outcome struct{ Out, Err string }

func main() {
	log.SetFlags(0)
	if len(os.Args) < 5 {
		log.Fatal("usage: manifests KUBECTL REFERENCE-KUBECONFIG OTHER-KUBECONFIG FILE...")
	}
	kubectl = os.Args[1]
	sides := [2]side{{os.Args[2]}, {os.Args[3]}}
	dir, err := os.MkdirTemp("", "manifests")
	check(err)
	defer os.RemoveAll(dir)
	differences := 0
	for _, path := range os.Args[4:] {
		text, err := os.ReadFile(path)
		check(err)
		served := filepath.Join(dir, filepath.Base(path))
		documents := servedDocuments(string(text))
		check(os.WriteFile(served, []byte(strings.Join(documents, "\n---\n")), 0o600))
		check(os.WriteFile(served+".mortal", []byte(strings.Join(mortal(documents), "\n---\n")), 0o600))
		found := compareFile(sides, served, namespaces(string(text)))
		fmt.Printf("%-28s %3d documents, %d differences\n", filepath.Base(path), len(documents), found)
		differences += found
	}
	if differences > 0 {
		os.Exit(1)
	}
}

// compareFile goes through the life of the objects of a file.
func compareFile(sides [2]side, path string, namespaces []string) int {
	for _, namespace := range namespaces {
		for _, s := range sides {
			s.run("", "create", "namespace", namespace)
		}
	}
	found := 0
	step := func(name string, args ...string) {
		found += differ(path, name, sides, "", args...)
	}
	step("apply", "apply", "-f", path)
	found += compareStored(sides, path, "applied")
	step("apply again", "apply", "-f", path)
	step("diff", "diff", "-f", path)
	step("apply by the server", "apply", "--server-side", "-f", path)
	found += compareStored(sides, path, "migrated")
	found += comparePods(sides, path)
	step("delete", "delete", "--wait=false", "-f", path+".mortal")
	return found
}

// differ runs one command on both sides and tells if the answers are not the same.
func differ(path, name string, sides [2]side, input string, args ...string) int {
	reference, other := sides[0].run(input, args...), sides[1].run(input, args...)
	if reference == other {
		return 0
	}
	found := report(path+" "+name, lines(reference.Out), lines(other.Out))
	return found + report(path+" "+name+" (errors)", lines(reference.Err), lines(other.Err))
}

func compareStored(sides [2]side, path, when string) int {
	return compareObjects(path+" "+when, sides[0].objects(path), sides[1].objects(path))
}

func compareObjects(what string, reference, other map[string]any) int {
	found := 0
	names := map[string]bool{}
	for name := range reference {
		names[name] = true
	}
	for name := range other {
		names[name] = true
	}
	for _, name := range sorted(names) {
		for _, line := range difference("", reference[name], other[name]) {
			fmt.Printf("%s: %s %s\n", filepath.Base(what), name, line)
			found++
		}
	}
	return found
}

// comparePods makes a Pod of every template, as a controller would.
func comparePods(sides [2]side, path string) int {
	found := 0
	for name, object := range sides[0].objects(path) {
		template, _ := dig(object, "spec", "template").(map[string]any)
		if template == nil {
			continue
		}
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
		metadata := map[string]any{"name": "of-" + fmt.Sprint(dig(object, "metadata", "name")), "namespace": dig(object, "metadata", "namespace")}
		for _, member := range []string{"labels", "annotations"} {
			if value := dig(template, "metadata", member); value != nil {
				metadata[member] = value
			}
		}
		pod["metadata"] = metadata
		text, err := json.Marshal(pod)
		check(err)
		found += differ(path, "pod of "+name, sides, string(text), "create", "-f", "-")
		get := func(s side) map[string]any { return s.read(string(text), "get", "-o", "json", "-f", "-") }
		found += compareObjects(path+" pod of "+name, get(sides[0]), get(sides[1]))
		for _, s := range sides {
			s.run(string(text), "delete", "--wait=false", "-f", "-")
		}
	}
	return found
}

func (s side) run(input string, args ...string) outcome {
	command := exec.Command(kubectl, append([]string{"--kubeconfig", s.kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(input)
	var out, err bytes.Buffer
	command.Stdout, command.Stderr = &out, &err
	_ = command.Run()
	return outcome{out.String(), err.String()}
}

func (s side) objects(path string) map[string]any {
	return s.read("", "get", "--show-managed-fields", "-o", "json", "-f", path)
}

// read is what a command lists, by kind, namespace and name.
func (s side) read(input string, args ...string) map[string]any {
	var list map[string]any
	out := s.run(input, args...).Out
	if out == "" || json.Unmarshal([]byte(out), &list) != nil {
		return nil
	}
	items, isList := list["items"].([]any)
	if !isList {
		items = []any{list}
	}
	objects := map[string]any{}
	for _, item := range items {
		name := fmt.Sprint(dig(item, "kind"), " ", dig(item, "metadata", "namespace"), "/", dig(item, "metadata", "name"))
		objects[name] = settled(item)
	}
	return objects
}

// Addresses and what servers make of time and chance.
var givenByChance = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "time": true, "clusterIP": true, "clusterIPs": true,
	"controller-uid": true, "batch.kubernetes.io/controller-uid": true, "nodePort": true, "healthCheckNodePort": true, "lastTransitionTime": true, "deletionTimestamp": true,
}

// settled is the object without what is different every time. What the controllers of the reference say of it goes too.
func settled(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range value {
			if !givenByChance[name] {
				out[name] = settled(member)
			}
		}
		// The order tells who wrote in an earlier second.
		if entries, tracked := out["managedFields"].([]any); tracked {
			sort.Slice(entries, func(i, j int) bool { return shownOwner(entries[i]) < shownOwner(entries[j]) })
		}
		if kind := out["kind"]; kind == "CustomResourceDefinition" || kind == "APIService" {
			delete(out, "status")
			metadata, _ := out["metadata"].(map[string]any)
			kept := []any{}
			entries, _ := metadata["managedFields"].([]any)
			for _, entry := range entries {
				if dig(entry, "subresource") != "status" {
					kept = append(kept, entry)
				}
			}
			metadata["managedFields"] = kept
		}
		return out
	case []any:
		out := []any{}
		for _, item := range value {
			out = append(out, settled(item))
		}
		return out
	}
	return value
}

func shownOwner(entry any) string {
	return fmt.Sprint(dig(entry, "manager"), dig(entry, "operation"), dig(entry, "subresource"))
}

func difference(path string, reference, other any) []string {
	left, isObject := reference.(map[string]any)
	right, isOther := other.(map[string]any)
	if isObject && isOther {
		var found []string
		names := map[string]bool{}
		for name := range left {
			names[name] = true
		}
		for name := range right {
			names[name] = true
		}
		for _, name := range sorted(names) {
			found = append(found, difference(path+"."+name, left[name], right[name])...)
		}
		return found
	}
	leftList, isList := reference.([]any)
	rightList, isOther := other.([]any)
	if isList && isOther && len(leftList) == len(rightList) {
		var found []string
		for i := range leftList {
			found = append(found, difference(fmt.Sprintf("%s[%d]", path, i), leftList[i], rightList[i])...)
		}
		return found
	}
	if reflect.DeepEqual(reference, other) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s, but %s", path, shown(reference), shown(other))}
}

func shown(value any) string {
	text, err := json.Marshal(value)
	check(err)
	if len(text) > 300 {
		text = append(text[:300], "…"...)
	}
	return string(text)
}

func dig(value any, path ...string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

var (
	separator   = regexp.MustCompile(`(?m)^---.*$`)
	group       = regexp.MustCompile(`(?m)^apiVersion:\s*["']?([^\s"']+)`)
	ofObject    = regexp.MustCompile(`(?m)^\s+namespace:\s*["']?([a-z0-9-]+)`)
	ofNamespace = regexp.MustCompile(`(?m)^kind:\s*Namespace\s*$`)
	builtIn     = regexp.MustCompile(`^(v1|[a-z]+/.*|[a-z.]*\.k8s\.io/.*)$`)
	extensions  = regexp.MustCompile(`^(snapshot\.storage|gateway\.networking|metrics|custom\.metrics|external\.metrics)\.`)
)

func servedDocuments(text string) []string {
	var kept []string
	for _, document := range separator.Split(text, -1) {
		found := group.FindStringSubmatch(document)
		if found != nil && builtIn.MatchString(found[1]) && !extensions.MatchString(found[1]) {
			kept = append(kept, document)
		}
	}
	return kept
}

// mortal documents are all but namespaces, which nobody empties on the reference.
func mortal(documents []string) []string {
	var kept []string
	for _, document := range documents {
		if !ofNamespace.MatchString(document) {
			kept = append(kept, document)
		}
	}
	return kept
}

func namespaces(text string) []string {
	names := map[string]bool{}
	for _, found := range ofObject.FindAllStringSubmatch(text, -1) {
		names[found[1]] = true
	}
	return sorted(names)
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func report(what string, reference, other []string) int {
	if reflect.DeepEqual(reference, other) {
		return 0
	}
	missing, more := without(reference, other), without(other, reference)
	if len(missing)+len(more) == 0 {
		return 0
	}
	fmt.Printf("%s:\n  reference %q\n  other     %q\n", filepath.Base(what), missing, more)
	return 1
}

func without(lines, others []string) []string {
	known := map[string]bool{}
	for _, line := range others {
		known[line] = true
	}
	left := []string{}
	for _, line := range lines {
		if !known[line] && line != "" {
			left = append(left, line)
		}
	}
	return left
}

func sorted(names map[string]bool) []string {
	var list []string
	for name := range names {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
