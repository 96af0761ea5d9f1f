package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	controllers "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TestEnvtest is what a project made with kubebuilder does in its suite. Changed are the directory that KUBEBUILDER_ASSETS
// names and, where a test waits for the garbage collector, one flag.
func TestEnvtest(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS names no directory; `rowplane envtest-assets DIR` fills one")
	}
	plane := &envtest.Environment{}
	// With the controllers a namespace would get its ConfigMap, too, which the operator's tests do not count.
	plane.ControlPlane.GetAPIServer().Configure().Append("cluster-controllers", "true").Append("namespace-contents", "false")
	config := startPlane(t, plane)
	// It waits for all ConfigMaps and leaves none; the next one leaves one.
	t.Run("an operator of custom resources", func(t *testing.T) {
		if differences, err := custom(context.Background(), config); err != nil || differences > 0 {
			t.Fatalf("%d differences, %v", differences, err)
		}
	})
	t.Run("a controller reconciles", func(t *testing.T) { reconcile(t, config) })
	t.Run("users are told apart", func(t *testing.T) { users(t, plane) })
	t.Run("kubectl", func(t *testing.T) { kubectl(t, plane) })
	stopPlane(t, plane)
	t.Run("an operator with hooks", hooked)

	t.Run("the next plane is empty", func(t *testing.T) {
		next := &envtest.Environment{}
		config := startPlane(t, next)
		defer stopPlane(t, next)
		found := &core.ConfigMapList{}
		if err := dial(t, config).List(context.Background(), found, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		if len(found.Items) != 0 {
			t.Fatalf("found %v", found.Items)
		}
	})
}

func startPlane(t *testing.T, plane *envtest.Environment) *rest.Config {
	begun := time.Now()
	config, err := plane.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(begun).Round(time.Millisecond))
	return config
}

func stopPlane(t *testing.T, plane *envtest.Environment) {
	begun := time.Now()
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(begun).Round(time.Millisecond))
}

func dial(t *testing.T, config *rest.Config) client.Client {
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reconcile runs the controller of `operate` over some ConfigMaps, and waits for the Secrets that it makes.
func reconcile(t *testing.T, config *rest.Config) {
	manager, err := controllers.NewManager(config, controllers.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &mirror{manager.GetClient()}
	if err := controllers.NewControllerManagedBy(manager).For(&core.ConfigMap{}).Owns(&core.Secret{}).Complete(reconciler); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := c.Watch(ctx, &core.SecretList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer secrets.Stop()
	source := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"text": "x"}}
	if err := c.Create(ctx, source); err != nil {
		t.Fatal(err)
	}
	for event := range secrets.ResultChan() {
		if secret, ok := event.Object.(*core.Secret); ok && secret.Name == "a" && string(secret.Data["text"]) == "x" {
			return
		}
	}
	t.Fatal("the watch has ended without the Secret")
}

// users adds one who may everything and one who may nothing yet.
func users(t *testing.T, plane *envtest.Environment) {
	for name, groups := range map[string][]string{"root": {"system:masters"}, "alice": {"developers"}} {
		user, err := plane.AddUser(envtest.User{Name: name, Groups: groups}, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = dial(t, user.Config()).Get(context.Background(), client.ObjectKey{Name: "default"}, &core.Namespace{})
		if refused := errors.IsForbidden(err); refused != (name == "alice") || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func kubectl(t *testing.T, plane *envtest.Environment) {
	if _, err := os.Stat(os.Getenv("KUBEBUILDER_ASSETS") + "/kubectl"); err != nil {
		t.Skip("there is no kubectl among the assets")
	}
	user, err := plane.AddUser(envtest.User{Name: "root", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tool, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := tool.Run("get", "namespaces", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	text := new(strings.Builder)
	buffer := make([]byte, 1<<10)
	for {
		n, err := out.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	if !strings.Contains(text.String(), "namespace/kube-system") {
		t.Fatalf("kubectl says %q", text)
	}
}
