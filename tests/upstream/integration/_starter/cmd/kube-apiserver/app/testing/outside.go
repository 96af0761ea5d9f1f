package testing

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
	"k8s.io/kubernetes/test/integration/outside"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// StartTestServer starts a server as a process of its own, in the place of upstream's function of that name.
func StartTestServer(t ktesting.TB, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) (result TestServer, err error) {
	if o == nil {
		o = NewDefaultTestServerOptions()
	}
	if o.StorageVersionWrapFunc != nil || o.BinaryVersion != "" {
		outside.Leave(t, "the server's process inside: StorageVersionWrapFunc, BinaryVersion")
	}
	if result.TmpDir, err = os.MkdirTemp("", "outside"); err != nil {
		return result, err
	}
	features := outside.GatesIn(flags)
	server, err := outside.Start(t, asked(o, result.TmpDir, flags, storage))
	if err != nil {
		os.RemoveAll(result.TmpDir)
		return result, err
	}
	if len(features) > 0 {
		featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, features)
	}
	result.ClientConfig = server.Config
	result.ServerOpts = parsed(t, flags, storage, server, result.TmpDir)
	result.EtcdStoragePrefix = storage.Prefix
	if outside.Upstream() {
		result.EtcdClient, _, err = GetEtcdClients(storage.Transport)
	} else if result.EtcdClient, err = clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}}); err == nil {
		result.EtcdClient.Close() // each of its calls fails at once
	}
	if err != nil {
		server.Stop()
		return result, err
	}
	dir, etcd, client := result.TmpDir, result.EtcdClient, kubernetes.NewForConfigOrDie(server.Config)
	result.TearDownFn = func() {
		if !o.DisableInvariantChecks {
			if err := metrics.CheckMetricInvariants(context.Background(), client, false); err != nil {
				t.Errorf("metrics: %v", err)
			}
		}
		server.Stop()
		if outside.Upstream() {
			etcd.Close()
		}
		os.RemoveAll(dir)
	}
	return result, nil
}

func asked(o *TestServerInstanceOptions, dir string, flags []string, storage *storagebackend.Config) outside.Options {
	asked := outside.Options{
		Dir: dir, Flags: flags, EtcdServers: storage.Transport.ServerList, EtcdPrefix: storage.Prefix,
		Clients: o.EnableCertAuth, FrontNames: []string{"misty", "ash", "brock"}, Unready: o.SkipHealthzCheck,
	}
	if o.EnableCertAuth {
		asked.Flags = append([]string{"--requestheader-uid-headers=X-Remote-Uid"}, asked.Flags...)
	}
	if o.RequestTimeout > 0 {
		asked.Flags = append([]string{"--request-timeout=" + o.RequestTimeout.String()}, asked.Flags...)
	}
	if o.ProxyCA != nil {
		asked.Front = &outside.Authority{Certificate: o.ProxyCA.ProxySigningCert, Key: o.ProxyCA.ProxySigningKey}
	}
	return asked
}

// parsed are upstream's options with a test's flags, which the test may read.
func parsed(t ktesting.TB, flags []string, storage *storagebackend.Config, server *outside.Server, dir string) *options.ServerRunOptions {
	read := options.NewServerRunOptions()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	named := read.Flags()
	for _, set := range named.FlagSets {
		all.AddFlagSet(set)
	}
	var left []string
	for _, flag := range flags {
		// These change the process's own features.
		if !strings.HasPrefix(flag, "--feature-gates") && !strings.HasPrefix(flag, "--emulat") {
			left = append(left, flag)
		}
	}
	if err := all.Parse(left); err != nil {
		t.Logf("flags: %v", err)
	}
	read.Etcd.StorageConfig = *storage
	read.SecureServing.BindPort = server.Port
	read.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	read.SecureServing.ServerCert.CertDirectory = dir
	read.SecureServing.ServerCert.CertKey.CertFile = server.Certificate
	if len(read.GenericServerRunOptions.AdvertiseAddress) == 0 {
		read.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	}
	return read
}

// GetEtcdClients are upstream's where there is an etcd.
func GetEtcdClients(transport storagebackend.TransportConfig) (*clientv3.Client, clientv3.KV, error) {
	if !outside.Upstream() {
		return nil, nil, fmt.Errorf("OUTSIDE: there is no etcd")
	}
	return insideGetEtcdClients(transport)
}
