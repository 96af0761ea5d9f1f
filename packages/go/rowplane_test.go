package rowplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rowplane "github.com/rowplane/rowplane/packages/go"
)

// Every test has a fork of a base that is made once.
var base *rowplane.Snapshot

func TestMain(m *testing.M) {
	server, err := rowplane.Start()
	if err == nil {
		err = server.Put(configMap("seeded"))
	}
	if err == nil {
		base, err = server.TakeSnapshot()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	server.Stop()
	os.Exit(status)
}

const maps = "/api/v1/namespaces/default/configmaps"

func configMap(name string) map[string]any {
	metadata := map[string]any{"name": name, "namespace": "default"}
	return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
}

func create(t *testing.T, cluster *rowplane.Cluster, name string) (int, object) {
	t.Helper()
	return ask(t, cluster, "POST", maps, configMap(name))
}

func names(t *testing.T, cluster *rowplane.Cluster) string {
	t.Helper()
	code, list := ask(t, cluster, "GET", maps, nil)
	if code != 200 {
		t.Fatal(code)
	}
	var found []string
	for _, item := range list.Items {
		if item.Metadata.Name != "kube-root-ca.crt" {
			found = append(found, item.Metadata.Name)
		}
	}
	return strings.Join(found, " ")
}

func is[T comparable](t *testing.T, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("%v instead of %v", found, wanted)
	}
}

func TestEveryTestHasAForkOfItsOwn(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := base.Fork(t)
			is(t, names(t, cluster), "seeded")
			_, _ = create(t, cluster, "mine")
			_, _ = ask(t, cluster, "DELETE", maps+"/seeded", nil)
			is(t, names(t, cluster), "mine")
			kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
			if err != nil || !strings.Contains(string(kubeconfig), "server: "+cluster.URL+"\n") {
				t.Fatal(string(kubeconfig), err)
			}
		})
	}
}

func TestReset(t *testing.T) {
	cluster := base.Fork(t)
	_, _ = create(t, cluster, "new")
	cluster.Reset(t, base)
	is(t, names(t, cluster), "seeded")
	cluster.Seed(t, configMap("later"))
	later := cluster.Snapshot(t)
	cluster.Reset(t, base)
	cluster.Reset(t, later)
	is(t, names(t, cluster), "later seeded")
	is(t, names(t, later.Fork(t)), "later seeded")
	is(t, names(t, cluster.Fork(t)), "later seeded")
}

func TestObjectsOfFiles(t *testing.T) {
	cluster := base.Fork(t)
	file := filepath.Join(t.TempDir(), "objects.yaml")
	content := "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: of-a-file\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.SeedFile(t, file)
	is(t, names(t, cluster), "of-a-file seeded")
	var refused *rowplane.Error
	err := cluster.Put(map[string]any{"kind": "Nothing", "apiVersion": "v1"})
	if !errors.As(err, &refused) || refused.Code != 400 {
		t.Fatal(err)
	}
}

func TestTime(t *testing.T) {
	cluster := base.Fork(t)
	cluster.Freeze(t, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster.Advance(t, time.Hour)
	_, made := create(t, cluster, "a")
	is(t, made.Metadata.CreationTimestamp, "2030-01-01T01:00:00Z")
	cluster.Unfreeze(t)
	_, made = create(t, cluster, "b")
	is(t, made.Metadata.CreationTimestamp < "2030", true)
}

func TestFaultsAndRequests(t *testing.T) {
	cluster := base.Fork(t)
	cluster.RecordRequests(t)
	cluster.Fault(t, rowplane.Fault{Match: rowplane.Match{Verb: "create", Resource: "configmaps"}, Code: 409, Count: 1})
	code, _ := create(t, cluster, "a")
	is(t, code, 409)
	code, _ = create(t, cluster, "a")
	is(t, code, 201)
	cluster.Fault(t, rowplane.Fault{Match: rowplane.Match{Verb: "list"}, Code: 500})
	code, _ = ask(t, cluster, "GET", maps, nil)
	is(t, code, 500)
	cluster.ClearFaults(t)
	cluster.Fault(t, rowplane.Fault{Delay: time.Millisecond, Count: 1})
	is(t, names(t, cluster), "a seeded")
	made := cluster.Requests(t, rowplane.Filter{Verb: "create"})
	is(t, len(made), 2)
	is(t, fmt.Sprintf("%d %d %s", made[0].Code, made[1].Code, made[1].Name), "409 201 a")
	sent, _ := json.Marshal(made[1].Request["metadata"])
	is(t, string(sent), `{"name":"a","namespace":"default"}`)
	cluster.Quiet(t)
	cluster.ExpireWatches(t)
	is(t, cluster.CloseWatches(t, ""), 0)
}

func TestAServerThatDoesNotStart(t *testing.T) {
	_, err := rowplane.Start(rowplane.Flags("--wrong"))
	if err == nil || !strings.Contains(err.Error(), "unexpected argument '--wrong'") {
		t.Fatal(err)
	}
	_, err = rowplane.Start(rowplane.CRDs("no-such-folder"))
	if err == nil || !strings.Contains(err.Error(), "No such file") {
		t.Fatal(err)
	}
}
