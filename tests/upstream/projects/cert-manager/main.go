// The three programs of cert-manager that its chart runs, made of its published Go module, whose `main` packages are
// modules of their own that are not published. The name that this program is called by says which one it is, and its
// flags are those that the chart gives. Only issuers that need nothing outside of the cluster are built in: self-signed
// and CA.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the flags of all three programs.
type options struct {
	resourceNamespace, leaderNamespace string
	securePort                         int32
	secretNamespace, secretName        string
	dnsNames                           []string
}

func main() {
	var options options
	pflag.StringVar(&options.resourceNamespace, "cluster-resource-namespace", "kube-system", "")
	pflag.StringVar(&options.leaderNamespace, "leader-election-namespace", "kube-system", "")
	pflag.Int32Var(&options.securePort, "secure-port", 6443, "")
	pflag.StringVar(&options.secretNamespace, "dynamic-serving-ca-secret-namespace", "", "")
	pflag.StringVar(&options.secretName, "dynamic-serving-ca-secret-name", "", "")
	pflag.StringSliceVar(&options.dnsNames, "dynamic-serving-dns-names", nil, "")
	// These change nothing here.
	for _, name := range []string{"v", "acme-http01-solver-image", "max-concurrent-challenges"} {
		pflag.String(name, "", "")
	}
	pflag.Parse()
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	var err error
	switch name := filepath.Base(os.Args[0]); name {
	case "cert-manager-controller":
		err = runController(ctx, options)
	case "cert-manager-webhook":
		err = runWebhook(ctx, options)
	case "cert-manager-cainjector":
		err = runInjector(ctx, options)
	default:
		log.Fatalf("no program of cert-manager is called %s", name)
	}
	if err != nil {
		log.Fatal(err)
	}
}
