// A stand-in for kubelets and kube-proxy, for tests: containers of images whose program is here run as processes, each
// Pod in a network namespace of its own; all others are only said to run.
//
//	kubelet node  --kubeconfig FILE --name NODE --address IP --pods CIDR --dir DIR --program IMAGE=FILE... --file IMAGE=FILE...
//	kubelet proxy --kubeconfig FILE --address IP,...
//
// The first is one Node, with the credentials of one; its Pods' addresses are of CIDR, on the bridge `pods`, whose first
// address is their gateway. The second listens on the addresses of Services, which have to be local, and on the ports of
// the nodes with these addresses. Both need root.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("kubelet node|proxy ...")
	}
	if os.Args[1] == "container" {
		log.Fatal(enterContainer(os.Args[2]))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	addresses := flags.String("address", "", "the address of the Node, or of all")
	name := flags.String("name", "", "the Node")
	pods := flags.String("pods", "", "the network that its Pods get their addresses from")
	programs := map[string]string{}
	flags.Func("program", "the last part of an image's name, and the program that it is", func(text string) error {
		image, file, _ := strings.Cut(text, "=")
		programs[image] = file
		return nil
	})
	files := map[string][]string{}
	flags.Func("file", "the last part of an image's name, and a file in the root of that image", func(text string) error {
		image, file, _ := strings.Cut(text, "=")
		files[image] = append(files[image], file)
		return nil
	})
	dir := flags.String("dir", "", "a directory for what belongs to Pods")
	flags.Parse(os.Args[2:])

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch os.Args[1] {
	case "node":
		_, network, err := net.ParseCIDR(*pods)
		check(err)
		node := &node{client: client, name: *name, address: *addresses, programs: programs, files: files, dir: *dir,
			free: &freeAddresses{network: network, taken: map[string]bool{}}}
		check(node.run(ctx))
	case "proxy":
		check(runProxy(ctx, client, strings.Split(*addresses, ",")))
	default:
		log.Fatalf("unknown: %s", os.Args[1])
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
