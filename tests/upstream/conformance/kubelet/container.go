package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// runContainer runs a container until ctx ends or the policy lets it rest, and returns whether it succeeded. One of an
// image that is not here is said to run, or, before the others, to have succeeded.
func (p *pod) runContainer(ctx context.Context, object *v1.Pod, container *v1.Container, policy v1.RestartPolicy) bool {
	if p.node.program(container.Image) == "" {
		return p.pretend(ctx, object, container, policy)
	}
	for {
		code := p.runOnce(ctx, object, container)
		if ctx.Err() != nil || !restarts(policy, code) {
			return code == 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

func (p *pod) pretend(ctx context.Context, object *v1.Pod, container *v1.Container, policy v1.RestartPolicy) bool {
	// Tests name images without a registry that are nowhere.
	if !strings.Contains(container.Image, "/") {
		p.set(container, func(status *v1.ContainerStatus) {
			status.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull",
				Message: "pull access denied, repository does not exist"}}
		})
		<-ctx.Done()
		return false
	}
	now := metav1.Now()
	if comesFirst(object, container) && policy != v1.RestartPolicyAlways {
		p.set(container, func(status *v1.ContainerStatus) {
			status.Ready, status.Started = true, ptr.To(false)
			status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed",
				StartedAt: now, FinishedAt: now}}
		})
		return true
	}
	p.set(container, func(status *v1.ContainerStatus) {
		status.Ready, status.Started = true, ptr.To(true)
		status.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}
	})
	<-ctx.Done()
	return true
}

func comesFirst(object *v1.Pod, container *v1.Container) bool {
	return slices.ContainsFunc(object.Spec.InitContainers, func(one v1.Container) bool { return one.Name == container.Name })
}

// runOnce runs the container's process once and returns its exit code.
func (p *pod) runOnce(ctx context.Context, object *v1.Pod, container *v1.Container) int32 {
	command, err := p.command(ctx, object, container)
	var started *process
	if err == nil {
		started, err = p.start(command, container)
	}
	if err != nil {
		log.Printf("%s/%s, %s: %v", object.Namespace, object.Name, container.Name, err)
		p.set(container, func(status *v1.ContainerStatus) {
			status.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CreateContainerError",
				Message: err.Error()}}
		})
		return 128
	}
	begun := metav1.Now()
	p.set(container, func(status *v1.ContainerStatus) {
		status.Ready, status.Started = container.ReadinessProbe == nil, ptr.To(true)
		status.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: begun}}
	})
	ran, over := context.WithCancel(ctx)
	defer over()
	if container.ReadinessProbe != nil {
		go p.probe(ran, container)
	}
	go p.end(ctx, ran, object, command.Process.Pid)
	code := exitCode(command.Wait())
	started.output.end()
	p.set(container, func(status *v1.ContainerStatus) {
		status.Ready, status.Started = code == 0 && comesFirst(object, container), ptr.To(false)
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: reason(code),
			StartedAt: begun, FinishedAt: metav1.Now()}}
		if ctx.Err() == nil && restarts(object.Spec.RestartPolicy, code) {
			status.RestartCount++
			status.LastTerminationState = status.State
		}
	})
	return code
}

// start starts the process; what it prints goes to a file of the container's.
func (p *pod) start(command *exec.Cmd, container *v1.Container) (*process, error) {
	output, err := newOutput(p.dir(), container.Name)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr, command.WaitDelay = output, output, time.Second
	started := &process{output: output, once: container.StdinOnce}
	if container.Stdin {
		if started.stdin, err = command.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if err := command.Start(); err != nil {
		output.end()
		return nil, err
	}
	started.pid = command.Process.Pid
	p.mutex.Lock()
	p.processes[container.Name] = started
	p.mutex.Unlock()
	return started, nil
}

// end asks the process to end once ctx does, and ends it after the grace period unless `ran` is over before.
func (p *pod) end(ctx, ran context.Context, object *v1.Pod, pid int) {
	<-ran.Done()
	if ctx.Err() == nil {
		return
	}
	syscall.Kill(-pid, syscall.SIGTERM)
	grace := ptr.Deref(object.Spec.TerminationGracePeriodSeconds, 30)
	if now := p.current(); now.DeletionGracePeriodSeconds != nil {
		grace = *now.DeletionGracePeriodSeconds
	}
	time.AfterFunc(time.Duration(grace)*time.Second, func() { syscall.Kill(-pid, syscall.SIGKILL) })
}

func exitCode(err error) int32 {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok {
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
			return 128 + int32(status.Signal())
		}
		return int32(exit.ExitCode())
	}
	return 255
}

func reason(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}

// room is what a process needs to know to shut itself into a container.
type room struct {
	Root, Dir string
	Mounts    []mount
	// Copies of files of the image, which the container may move and change.
	Files   []string
	Command []string
}

type mount struct {
	Source, Target string
	ReadOnly       bool
}

// command is this program once more, within the Pod's network, which shuts itself into a directory and becomes the container's.
func (p *pod) command(ctx context.Context, object *v1.Pod, container *v1.Container) (*exec.Cmd, error) {
	environment, err := p.environment(ctx, object, container)
	if err != nil {
		return nil, err
	}
	inside := room{Root: filepath.Join(p.dir(), "containers", container.Name), Dir: container.WorkingDir}
	program := p.node.program(container.Image)
	inside.Mounts = []mount{{Source: program, Target: "/" + filepath.Base(program), ReadOnly: true}}
	inside.Files = p.node.files[nameOf(container.Image)]
	for _, volume := range container.VolumeMounts {
		inside.Mounts = append(inside.Mounts, mount{Source: filepath.Join(p.dir(), "volumes", volume.Name, volume.SubPath),
			Target: volume.MountPath, ReadOnly: volume.ReadOnly})
	}
	inside.Command = commandOf(container, filepath.Base(program), environment)
	text, err := json.Marshal(inside)
	if err != nil {
		return nil, err
	}
	self := []string{"/proc/self/exe", "container", string(text)}
	if self[0], err = os.Executable(); err != nil {
		return nil, err
	}
	if !object.Spec.HostNetwork {
		self = append([]string{"ip", "netns", "exec", networkName(object.UID)}, self...)
	}
	command := exec.Command(self[0], self[1:]...)
	command.Env = texts(environment)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
	return command, nil
}

// commandOf is what the container says, or what its image would: its program, which is `pause` for agnhost.
func commandOf(container *v1.Container, program string, environment []v1.EnvVar) (command []string) {
	words := append(append([]string{}, container.Command...), container.Args...)
	if len(words) == 0 && program == "agnhost" {
		words = []string{"pause"}
	}
	if len(container.Command) == 0 {
		words = append([]string{"/" + program}, words...)
	}
	for _, word := range words {
		command = append(command, expand(word, environment))
	}
	return command
}

// enterContainer binds the directories of a container into its root, makes that the root, and becomes its process.
func enterContainer(text string) error {
	var inside room
	if err := json.Unmarshal([]byte(text), &inside); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	of := []mount{{Source: "/proc", Target: "/proc"}, {Source: "/dev", Target: "/dev"}, {Source: "/sys", Target: "/sys"}}
	for _, tools := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/resolv.conf", "/etc/hosts", "/etc/passwd"} {
		if _, err := os.Stat(tools); err == nil {
			of = append(of, mount{Source: tools, Target: tools, ReadOnly: true})
		}
	}
	for _, one := range append(of, inside.Mounts...) {
		if err := one.bind(inside.Root); err != nil {
			return fmt.Errorf("%s on %s: %w", one.Source, one.Target, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(inside.Root, "tmp"), 0o777); err != nil {
		return err
	}
	for _, file := range inside.Files {
		if err := copyFile(file, filepath.Join(inside.Root, filepath.Base(file))); err != nil {
			return err
		}
	}
	syscall.Sethostname([]byte(os.Getenv("HOSTNAME")))
	if err := syscall.Chroot(inside.Root); err != nil {
		return err
	}
	if err := os.Chdir(filepath.Join("/", inside.Dir)); err != nil {
		return err
	}
	program, err := exec.LookPath(inside.Command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, inside.Command, os.Environ())
}

func copyFile(from, to string) error {
	about, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, about.Mode().Perm())
}

func (m mount) bind(root string) error {
	target := filepath.Join(root, m.Target)
	about, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	if about.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var file *os.File
		if file, err = os.OpenFile(target, os.O_CREATE, 0o644); err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return err
	}
	if err = syscall.Mount(m.Source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil || !m.ReadOnly {
		return err
	}
	return syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

func networkName(uid types.UID) string {
	return "pod-" + string(uid)
}

// addNetwork makes the Pod's network namespace: an end of a cable whose other end is in the bridge.
func addNetwork(uid types.UID, address string) error {
	name := networkName(uid)
	if _, err := os.Stat("/run/netns/" + name); err == nil {
		return nil
	}
	cable := "p" + string(uid)[:8]
	for _, words := range [][]string{
		{"netns", "add", name},
		{"link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name},
		{"link", "set", cable, "master", "pods"},
		{"link", "set", cable, "up"},
		{"-n", name, "link", "set", "lo", "up"},
		{"-n", name, "address", "add", address + "/16", "dev", "eth0"},
		{"-n", name, "link", "set", "eth0", "up"},
		{"-n", name, "route", "add", "default", "via", gateway},
	} {
		if output, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
			removeNetwork(uid)
			return fmt.Errorf("ip %v: %s", words, output)
		}
	}
	return nil
}

// gateway is the address of the bridge `pods`.
const gateway = "10.2.0.1"

func removeNetwork(uid types.UID) {
	if _, err := os.Stat("/run/netns/" + networkName(uid)); err == nil {
		exec.Command("ip", "netns", "delete", networkName(uid)).Run()
	}
}
