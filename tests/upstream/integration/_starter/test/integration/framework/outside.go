package framework

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
	"k8s.io/kubernetes/test/integration/outside"
)

// StartTestServer starts a server as a process of its own, in the place of upstream's function of that name.
func StartTestServer(ctx context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	dir, err := os.MkdirTemp("", "outside")
	if err != nil {
		t.Fatal(err)
	}
	asked := outside.Options{Dir: dir, Clients: true, FrontNames: []string{"kube-aggregator"}}
	asFlags(t, setup, &asked)
	server, err := outside.Start(t, asked)
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config
	if config.CAData != nil {
		config.CAData, config.CAFile = nil, server.Certificate
	}
	made := client.NewForConfigOrDie(config)
	return made, config, func() {
		if !setup.DisableInvariantChecks && ctx.Err() == nil {
			if err := metrics.CheckMetricInvariants(ctx, made, false); err != nil {
				t.Errorf("metrics: %v", err)
			}
		}
		server.Stop()
		os.RemoveAll(dir)
	}
}

// asFlags says in flags what a setup changes of the options and of the configuration; where flags cannot, the test is left out.
func asFlags(t testing.TB, setup TestServerSetup, asked *outside.Options) {
	changed := options.NewServerRunOptions()
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gate.EmulationVersion())
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gate); err != nil {
		t.Fatal(err)
	}
	changed.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	named := changed.Flags()
	before := values(named.FlagSets)
	changed.ServiceClusterIPRanges = "10.0.0.0/24"
	changed.Authentication.APIAudiences = []string{"https://foo.bar.example.com"}
	changed.Authorization.Modes = []string{"Node", "RBAC"}
	changed.Authentication.ClientCert.ClientCA, changed.Authentication.RequestHeader.ClientCAFile = asked.Authorities()
	changed.ServiceAccountSigningKeyFile = asked.AccountsKey()
	changed.Authentication.ServiceAccounts.KeyFiles = []string{changed.ServiceAccountSigningKeyFile}
	changed.Authentication.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	changed.Authentication.RequestHeader.AllowedNames = asked.FrontNames
	changed.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	changed.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	changed.Authentication.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	changed.Etcd.StorageConfig.Prefix = uuid.New().String() + "/registry"
	changed.Etcd.StorageConfig.Transport.ServerList = []string{GetEtcdURL()}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(changed)
	}
	asked.EtcdPrefix, asked.EtcdServers = changed.Etcd.StorageConfig.Prefix, changed.Etcd.StorageConfig.Transport.ServerList
	var flags []string
	for name, value := range values(named.FlagSets) {
		if before[name] != value && !strings.HasPrefix(name, "etcd-") && name != "cert-dir" && name != "secure-port" && name != "feature-gates" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	for feature := range gate.GetAll() {
		if on := gate.Enabled(feature); on != utilfeature.DefaultFeatureGate.Enabled(feature) {
			flags = append(flags, fmt.Sprintf("--feature-gates=%s=%v", feature, on))
		}
	}
	if setup.ModifyServerConfig != nil {
		served, expressible := tried(setup.ModifyServerConfig)
		if !expressible {
			outside.Leave(t, "the server's process inside: ModifyServerConfig")
		}
		if len(served) > 0 {
			flags = append(flags, "--runtime-config="+strings.Join(served, ","))
		}
	}
	asked.Flags = flags
}

func values(sets map[string]*pflag.FlagSet) map[string]string {
	values := map[string]string{}
	for _, set := range sets {
		set.VisitAll(func(flag *pflag.Flag) {
			values[flag.Name] = flag.Value.String()
			if list, ok := flag.Value.(pflag.SliceValue); ok {
				values[flag.Name] = strings.Join(list.GetSlice(), ",")
			}
		})
	}
	return values
}

// tried tells what a function does to an empty configuration: which APIs it serves or not, and whether that is all.
func tried(modify func(*controlplane.Config)) (served []string, expressible bool) {
	defer func() {
		if recover() != nil {
			expressible = false
		}
	}()
	empty := func() *controlplane.Config {
		return &controlplane.Config{ControlPlane: controlplaneapiserver.Config{Generic: &genericapiserver.Config{}}}
	}
	config := empty()
	modify(config)
	config.Extra.EndpointReconcilerType = "" // an outside server's is "none" anyway
	if source, ok := config.ControlPlane.Extra.APIResourceConfigSource.(*serverstorage.ResourceConfig); ok {
		usual := controlplane.DefaultAPIResourceConfigSource()
		for version, on := range source.GroupVersionConfigs {
			if usual.GroupVersionConfigs[version] != on {
				served = append(served, fmt.Sprintf("%s=%v", version, on))
			}
		}
		for resource, on := range source.ResourceConfigs {
			if usual.ResourceConfigs[resource] != on {
				served = append(served, fmt.Sprintf("%s/%s=%v", resource.GroupVersion(), resource.Resource, on))
			}
		}
	}
	config.ControlPlane.Extra.APIResourceConfigSource = nil
	return served, reflect.DeepEqual(config, empty())
}

func startEtcd(logger klog.Logger, another bool) (func(), error) {
	if !outside.Upstream() {
		return func() {}, nil
	}
	return insidestartEtcd(logger, another)
}

var etcds atomic.Int32

// RunCustomEtcd is upstream's where there is an etcd. Elsewhere the URL is a name for data of its own.
func RunCustomEtcd(logger klog.Logger, dir string, flags []string) (url string, stop func(), err error) {
	if !outside.Upstream() {
		return fmt.Sprintf("http://127.0.0.1:1/%d", etcds.Add(1)), func() {}, nil
	}
	return insideRunCustomEtcd(logger, dir, flags)
}

// goleakFindRetry finds nothing: goroutines of clients live as long as the connections to a server outside.
func goleakFindRetry(...goleak.Option) error { return nil }
