// Package rowplane starts Kubernetes API servers for tests: kube-apiserver's API without etcd, in memory, ready in 0.2 s.
//
//	func TestController(t *testing.T) {
//		server := rowplane.New(t, rowplane.CRDs("config/crd"))
//		config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
//		…
//	}
//
// It runs the program rowplane, which ROWPLANE_PROGRAM names or which is on the PATH, and needs nothing but Go's library.
package rowplane

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// How long a server may take to end after its standard input has, before it is killed.
const stopTimeout = 15 * time.Second

// Server is a server in memory, on a free port of 127.0.0.1. It ends with the process that started it, also when that is killed.
type Server struct {
	*Cluster
	directory string
	process   *exec.Cmd
	input     io.Closer
	stop      sync.Once
}

// Option is a setting of a server.
type Option func(*options)

type options struct{ flags []string }

// CRDs has CustomResourceDefinitions of files and folders served from the start on.
func CRDs(paths ...string) Option {
	return func(o *options) {
		for _, path := range paths {
			o.flags = append(o.flags, "--crds", path)
		}
	}
}

// Flags are more flags of rowplane serve, such as --cluster-controllers=false.
func Flags(flags ...string) Option {
	return func(o *options) { o.flags = append(o.flags, flags...) }
}

// New starts a server, which is stopped with the test.
func New(t testing.TB, settings ...Option) *Server {
	t.Helper()
	server, err := Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Start starts a server, for TestMain: Stop ends it. The error has the program's own words.
func Start(settings ...Option) (*Server, error) {
	var chosen options
	for _, set := range settings {
		set(&chosen)
	}
	directory, err := os.MkdirTemp("", "rowplane-")
	if err != nil {
		return nil, err
	}
	server := &Server{directory: directory}
	if err := server.start(chosen.flags); err != nil {
		server.Stop()
		return nil, err
	}
	return server, nil
}

func program() string {
	if named := os.Getenv("ROWPLANE_PROGRAM"); named != "" {
		return named
	}
	return "rowplane"
}

func (s *Server) start(flags []string) error {
	log, err := os.Create(filepath.Join(s.directory, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(program(), append([]string{"serve", "--exit-with-stdin", "--data-dir", s.directory}, flags...)...)
	// In the environment, so that flags can say otherwise. Clients that are still connected at the end are not waited for.
	process.Env = append(os.Environ(), "ROWPLANE_DATASTORE=memory:", "ROWPLANE_SECURE_PORT=0",
		"ROWPLANE_SHUTDOWN_GRACE_PERIOD=0s", "ROWPLANE_TEST_ENDPOINTS=true", "ROWPLANE_MAX_BRANCHES=10000")
	process.Stderr = log
	input, err := process.StdinPipe()
	if err != nil {
		return err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return fmt.Errorf("cannot run %s: %w", program(), err)
	}
	s.process, s.input = process, input
	url, reader := announced(output)
	if url == "" {
		_ = process.Wait()
		s.process = nil
		return s.reason(process.ProcessState.ExitCode())
	}
	// Further output is read and dropped, since a full pipe would halt the server.
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	ca := filepath.Join(s.directory, "pki", "ca.crt")
	connection, err := connect(url, ca)
	if err != nil {
		return err
	}
	s.Cluster = &Cluster{
		URL:        url,
		CA:         ca,
		Kubeconfig: filepath.Join(s.directory, "admin.kubeconfig"),
		connection: connection,
		directory:  s.directory,
	}
	return nil
}

// The URL that the server tells once it is ready; empty if it ends before.
func announced(output io.Reader) (string, io.Reader) {
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadString('\n')
		if word, value, found := strings.Cut(strings.TrimSpace(line), " "); found && word == "url" {
			return strings.TrimSpace(value), reader
		}
		if err != nil {
			return "", reader
		}
	}
}

// The program's own last words.
func (s *Server) reason(status int) error {
	log, err := os.ReadFile(filepath.Join(s.directory, "log"))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for place := len(lines) - 1; place >= 0; place-- {
		if said, found := strings.CutPrefix(lines[place], "rowplane: "); found {
			return errors.New(said)
		}
	}
	return fmt.Errorf("rowplane ended with status %d: %s", status, strings.TrimSpace(string(log)))
}

// Stop ends the server at once, watches and all, and removes its files. Nothing happens the second time.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.process != nil {
			_ = s.input.Close()
			kill := time.AfterFunc(stopTimeout, func() { _ = s.process.Process.Kill() })
			_ = s.process.Wait()
			kill.Stop()
		}
		_ = os.RemoveAll(s.directory)
	})
}
