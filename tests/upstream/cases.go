package main

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rowplane/tests/upstream/peer"
)

// caseKinds are those that show every way in which fields are merged.
var caseKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "PersistentVolume"}, {Version: "v1", Kind: "Node"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"},
}

// longest is what a case may have in characters, so that somebody can read it.
const longest = 1400

func sorted(object peer.Object) []string {
	return slices.Sorted(maps.Keys(object))
}

// applyCases prints files for testdata/apply on the standard output: writes and upstream's answers, parted by a line
// with the name of the file.
func applyCases(c *comparison) error {
	for _, kind := range caseKinds {
		fmt.Printf("### random-%s.yaml\n", strings.ToLower(kind.Kind))
		fmt.Printf("# Made by tests/upstream, with upstream's answers.\napi_version: %s\nkind: %s\ncases:\n", kind.GroupVersion(), kind.Kind)
		printed := 0
		for round := 0; printed < c.count; round++ {
			world, err := newWorld(kind, rand.New(rand.NewSource(c.seed+int64(round))))
			if err != nil {
				return err
			}
			for step := range 6 {
				line, err := world.caseOf(fmt.Sprintf("%d, write %d", round, step))
				if err != nil {
					return err
				}
				if line == "" || len(line) > longest {
					continue
				}
				fmt.Println("- " + line)
				printed++
				c.compared++
			}
		}
	}
	return nil
}

// caseOf makes one write and describes it; empty if there is nothing to tell.
func (w *world) caseOf(name string) (string, error) {
	next, err := w.next()
	if err != nil {
		return "", err
	}
	accessor, err := meta.Accessor(w.live)
	if err != nil {
		return "", err
	}
	if w.exists() && len(accessor.GetManagedFields()) == 0 {
		return "", nil
	}
	question, err := w.question(next, accessor.GetManagedFields())
	if err != nil {
		return "", err
	}
	made := peer.Object{"body": bareOf(next.config)}
	switch {
	case next.config == nil:
		made = peer.Object{"update": next.manager, "body": bareOf(question["new"].(peer.Object))}
	case next.force:
		made["force"] = next.manager
	default:
		made["apply"] = next.manager
	}
	described := peer.Object{
		"name":   name,
		"before": peer.Object{"object": bareOf(question["live"].(peer.Object)), "managers": sets(accessor.GetManagedFields())},
		"writes": []any{made},
	}
	result, refusal := w.write(next)
	if refusal != nil {
		text := refusal.Error()
		// Of several problems upstream tells in any order.
		if !strings.HasPrefix(text, "Apply failed") {
			return "", nil
		}
		made["refused"] = text
		return encodedCase(described)
	}
	object, err := bare(result)
	if err != nil {
		return "", err
	}
	if accessor, err = meta.Accessor(result); err != nil {
		return "", err
	}
	described["object"], described["managers"] = bareOf(object), sets(accessor.GetManagedFields())
	if err := w.accept(next, result); err != nil {
		return "", err
	}
	return encodedCase(described)
}

func encodedCase(described peer.Object) (string, error) {
	line, err := peer.Encode(described)
	return strings.TrimSpace(string(line)), err
}

// bareOf is the object without what the file says of all its cases.
func bareOf(object peer.Object) peer.Object {
	left := maps.Clone(object)
	delete(left, "kind")
	delete(left, "apiVersion")
	return left
}

func sets(entries []metav1.ManagedFieldsEntry) peer.Object {
	sets := peer.Object{}
	for _, entry := range entries {
		name := entry.Manager
		if entry.Operation == metav1.ManagedFieldsOperationUpdate {
			name += " (Update)"
		}
		sets[name] = entry.FieldsV1
	}
	return sets
}
