package outside

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// run starts the process and waits until it serves, or ends.
func (s *Server) run(t T, flags []string, unready bool) error {
	log := &output{}
	args := flags
	if !Upstream() {
		args = append([]string{"kube-apiserver"}, flags...)
	}
	command := exec.Command(os.Getenv("SERVER"), args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begun, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the child is killed when the thread that has started it ends
		err := command.Start()
		begun <- err
		if err == nil {
			command.Wait()
		}
		close(ended)
	}()
	if err := <-begun; err != nil {
		return err
	}
	s.Stop = sync.OnceFunc(func() {
		command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(3 * time.Second):
			command.Process.Kill()
			<-ended
		}
		log.append()
	})
	t.Logf("process %d: %s", command.Process.Pid, strings.Join(command.Args, " "))
	if err := s.wait(t, log, ended, unready); err != nil {
		s.Stop()
		return err
	}
	return nil
}

func (s *Server) wait(t T, log *output, ended chan struct{}, unready bool) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	paths := []string{"/healthz", "/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"}
	if unready {
		paths = []string{"/version"}
	}
	for until := time.Now().Add(90 * time.Second); len(paths) > 0; time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			last := log.last()
			if !Upstream() && strings.Contains(last, "is not supported yet") {
				Leave(t, "the server's process inside: %s", last)
			}
			return fmt.Errorf("the server has ended: %s", last)
		default:
		}
		if time.Now().After(until) {
			return fmt.Errorf("the server does not get ready (%s): %s", paths[0], log.last())
		}
		for len(paths) > 0 && s.serves(client, paths[0], unready) {
			paths = paths[1:]
		}
	}
	return nil
}

func (s *Server) serves(client *http.Client, path string, whatever bool) bool {
	request, err := http.NewRequest(http.MethodGet, s.Config.Host+path, nil)
	must(err)
	request.Header.Set("Authorization", "Bearer "+s.Config.BearerToken)
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	return whatever || answer.StatusCode == http.StatusOK
}

// output keeps the first MiB of what a server writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() < 1<<20 {
		o.text.Write(data)
	}
	return len(data), nil
}

func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(o.text.String()), "\n")
	return lines[len(lines)-1]
}

// append adds all of it to the file SERVER_LOG, if there is to be one.
func (o *output) append() {
	path := os.Getenv("SERVER_LOG")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	defer file.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	file.Write(o.text.Bytes())
}
