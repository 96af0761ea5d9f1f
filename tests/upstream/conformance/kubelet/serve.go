package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	remotecommandconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// port is where servers reach kubelets.
const port = 10250

// Upstream's times of a kubelet.
const (
	idleTime     = 4 * time.Hour
	creationTime = 30 * time.Second
)

// process is a container's process, and what it prints.
type process struct {
	pid    int
	output *output
	// The process's standard input, if somebody may write to it, and whether the first who does closes it.
	stdin io.WriteCloser
	once  bool
}

// serve answers what servers ask a kubelet, with a certificate of its own, until ctx ends.
func (n *node) serve(ctx context.Context) error {
	certificate, err := n.certificate()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(n.address, strconv.Itoa(port)), &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.containerLogs)
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", n.exec)
	routes.HandleFunc("/attach/{namespace}/{pod}/{container}", n.attach)
	routes.HandleFunc("/portForward/{namespace}/{pod}", n.portForward)
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	server := &http.Server{Handler: routes}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := server.Serve(listener); ctx.Err() == nil {
			log.Fatal(err)
		}
	}()
	return nil
}

func (n *node) certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: n.name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(n.address)}, DNSNames: []string{n.name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// find is the Pod that a path names, or nothing.
func (n *node) find(request *http.Request) *pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, worker := range n.workers {
		object := worker.current()
		if object.Namespace == request.PathValue("namespace") && object.Name == request.PathValue("pod") {
			return worker
		}
	}
	return nil
}

// process is that of a container, also of one that has ended, or nothing.
func (p *pod) process(container string) *process {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.processes[container]
}

func (n *node) exec(w http.ResponseWriter, request *http.Request) {
	n.stream(w, request, func(found *pod, container string, options *remotecommand.Options) {
		remotecommand.ServeExec(w, request, executor{found}, request.PathValue("pod"), "", container,
			request.URL.Query()["command"], options, idleTime, creationTime, remotecommandconsts.SupportedStreamingProtocols)
	})
}

func (n *node) attach(w http.ResponseWriter, request *http.Request) {
	n.stream(w, request, func(found *pod, container string, options *remotecommand.Options) {
		remotecommand.ServeAttach(w, request, executor{found}, request.PathValue("pod"), "", container,
			options, idleTime, creationTime, remotecommandconsts.SupportedStreamingProtocols)
	})
}

func (n *node) stream(w http.ResponseWriter, request *http.Request, serve func(*pod, string, *remotecommand.Options)) {
	found := n.find(request)
	if found == nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	serve(found, request.PathValue("container"), options)
}

func (n *node) portForward(w http.ResponseWriter, request *http.Request) {
	found := n.find(request)
	if found == nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, request, executor{found}, request.PathValue("pod"), "", options, idleTime, creationTime,
		portforward.SupportedProtocols)
}

// executor runs and reaches what is in a Pod.
type executor struct{ *pod }

// running is the process of a container that has not ended.
func (e executor) running(container string) (*process, error) {
	found := e.process(container)
	if found == nil || found.output.hasEnded() {
		return nil, fmt.Errorf("container not found (%q)", container)
	}
	return found, nil
}

// ExecInContainer runs a command with the root, the network and the environment of the container's process. A terminal is
// nothing but pipes here.
func (e executor) ExecInContainer(ctx context.Context, _, _, container string, words []string, in io.Reader,
	out, errors io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	found, err := e.running(container)
	if err != nil {
		return err
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", found.pid))
	if err != nil {
		return err
	}
	inside := []string{"--target", strconv.Itoa(found.pid), "--mount", "--uts", "--net", "--root", "--wd", "--"}
	command := exec.CommandContext(ctx, "nsenter", append(inside, words...)...)
	command.Env = strings.Split(strings.TrimRight(string(environment), "\x00"), "\x00")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if out != nil {
		command.Stdout = out
	}
	if errors != nil {
		command.Stderr = errors
	}
	if in != nil {
		// Not `command.Stdin`, since `Wait` would wait for a client that goes on typing.
		stdin, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			io.Copy(stdin, in)
			stdin.Close()
		}()
	}
	if err := command.Start(); err != nil {
		return err
	}
	if code := exitCode(command.Wait()); code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: int(code)}
	}
	return nil
}

// AttachContainer passes on what is typed, and what the container prints: that which reads from its beginning.
func (e executor) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, errors io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize) error {
	found, err := e.running(container)
	if err != nil {
		return err
	}
	if in != nil && found.stdin != nil {
		go func() {
			io.Copy(found.stdin, in)
			if found.once {
				found.stdin.Close()
			}
		}()
	}
	if out == nil {
		if out = errors; out == nil {
			out = discard{}
		}
	}
	file, err := os.Open(logPath(e.dir(), container))
	if err != nil {
		return err
	}
	defer file.Close()
	if found.stdin == nil {
		file.Seek(0, io.SeekEnd)
	}
	copyLog(ctx, out, func() {}, file, logOptions{tail: -1, limit: -1}, func() bool { return !found.output.hasEnded() })
	return nil
}

type discard struct{}

func (discard) Write(text []byte) (int, error) { return len(text), nil }
func (discard) Close() error                   { return nil }

// PortForward connects a stream to a port of the Pod.
func (e executor) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(e.address, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		io.Copy(connection, stream)
		connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}
