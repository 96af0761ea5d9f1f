// What upstream's RBAC and node authorizers say, as data that Rust tests replay: the policy that exists from the start,
// random policies with requests, and random Pods and volumes with requests of nodes.
//
//	go run . ../../../testdata/rbac
package main

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

func main() {
	// Its roles are here, too, since rowplane serves that API.
	check(utilfeature.DefaultMutableFeatureGate.Set("StorageVersionAPI=true"))
	dir := os.Args[1]
	write(filepath.Join(dir, "bootstrap.jsonl.gz"), bootstrap())
	write(filepath.Join(dir, "decisions.jsonl.gz"), decisions())
	write(filepath.Join(dir, "nodes.jsonl.gz"), nodes())
}

func write(path string, lines []any) {
	file, err := os.Create(path)
	check(err)
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	check(err)
	encoder := json.NewEncoder(packed)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		check(encoder.Encode(line))
	}
	check(packed.Close())
	check(file.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

type named struct {
	Kind      string
	Namespace string
	Name      string
	Object    any
}

func bootstrap() []any {
	var all []any
	add := func(kind, namespace, name string, object any) {
		all = append(all, named{kind, namespace, name, object})
	}
	for _, role := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		add("ClusterRole", "", role.Name, role)
	}
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		add("ClusterRoleBinding", "", binding.Name, binding)
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			add("Role", namespace, role.Name, role)
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			add("RoleBinding", namespace, binding.Name, binding)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		one, other := all[i].(named), all[j].(named)
		return one.Kind+one.Namespace+"/"+one.Name < other.Kind+other.Namespace+"/"+other.Name
	})
	return all
}
