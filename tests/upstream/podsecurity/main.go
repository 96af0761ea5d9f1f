// What upstream's Pod security checks say about Pods: those of its own fixtures, and random ones. Each line of the output
// is a Pod, and for both levels what each version forbids, where that differs from the version before.
//
//	go run . FIXTURES ../../../testdata/podsecurity/cases.jsonl.gz
//
// FIXTURES is `test/testdata` in the module k8s.io/pod-security-admission.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

const newest = 38

type line struct {
	Pod       json.RawMessage `json:"pod"`
	Forbidden []verdict       `json:"forbidden"`
}

// From this version on, until the next of its level.
type verdict struct {
	Level  string `json:"level"`
	Since  int    `json:"since"`
	Detail string `json:"detail"`
}

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	check(err)
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	check(err)
	pods := append(fixtures(os.Args[1]), random(1500)...)
	for _, pod := range pods {
		text, err := json.Marshal(pod)
		check(err)
		out, err := json.Marshal(line{Pod: text, Forbidden: verdicts(evaluator, pod)})
		check(err)
		_, err = zip.Write(append(out, '\n'))
		check(err)
	}
	check(zip.Close())
	check(os.MkdirAll(filepath.Dir(os.Args[2]), 0o755))
	check(os.WriteFile(os.Args[2], packed.Bytes(), 0o644))
	fmt.Println(len(pods), "pods,", packed.Len(), "bytes")
}

func verdicts(evaluator policy.Evaluator, pod *corev1.Pod) []verdict {
	found := []verdict{}
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		last := ""
		for minor := 0; minor <= newest; minor++ {
			lv := api.LevelVersion{Level: level, Version: api.MajorMinorVersion(1, minor)}
			if minor == newest {
				lv.Version = api.LatestVersion()
			}
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(lv, &pod.ObjectMeta, &pod.Spec))
			if detail := result.ForbiddenDetail(); detail != last {
				found = append(found, verdict{string(level), minor, detail})
				last = detail
			}
		}
	}
	return found
}

func fixtures(root string) []*corev1.Pod {
	texts := map[string]bool{}
	check(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			text, err := os.ReadFile(path)
			check(err)
			texts[string(text)] = true
		}
		return err
	}))
	sorted := []string{}
	for text := range texts {
		sorted = append(sorted, text)
	}
	sort.Strings(sorted)
	pods := []*corev1.Pod{}
	for _, text := range sorted {
		pod := &corev1.Pod{}
		check(yaml.Unmarshal([]byte(text), pod))
		pods = append(pods, pod)
	}
	return pods
}

type object = map[string]any

// Settings of a security context that Pods and containers share.
var shared = []object{
	{"runAsNonRoot": true}, {"runAsNonRoot": false}, {"runAsUser": 0}, {"runAsUser": 1000},
	{"seccompProfile": object{"type": "RuntimeDefault"}}, {"seccompProfile": object{"type": "Unconfined"}},
	{"seccompProfile": object{"type": "Localhost", "localhostProfile": "x"}}, {"seccompProfile": object{}},
	{"seLinuxOptions": object{"type": "container_t"}}, {"seLinuxOptions": object{"type": "container_engine_t"}},
	{"seLinuxOptions": object{"type": "x", "user": "u"}}, {"seLinuxOptions": object{"role": "r"}},
	{"appArmorProfile": object{"type": "Unconfined"}}, {"appArmorProfile": object{"type": "RuntimeDefault"}},
	{"appArmorProfile": object{"type": "a\"b"}},
	{"windowsOptions": object{"hostProcess": true}}, {"windowsOptions": object{"hostProcess": false}},
}

var ofContainers = []object{
	{"allowPrivilegeEscalation": false}, {"allowPrivilegeEscalation": false}, {"allowPrivilegeEscalation": true},
	{"privileged": true}, {"privileged": false}, {"procMount": "Default"}, {"procMount": "Unmasked"},
	{"procMount": "x"}, {"capabilities": object{"drop": []any{"ALL"}}},
	{"capabilities": object{"drop": []any{"ALL"}, "add": []any{"NET_BIND_SERVICE"}}},
	{"capabilities": object{"add": []any{"NET_ADMIN", "CHOWN", "ALL"}}}, {"capabilities": object{"drop": []any{"KILL"}}},
}

var sysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem", "net.ipv4.tcp_notsent_lowat",
	"net.ipv4.tcp_slow_start_after_idle", "kernel.x", "a",
}

var volumes = []string{
	"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
	"hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume",
	"cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk",
	"portworxVolume", "scaleIO", "storageos",
}

func random(number int) []*corev1.Pod {
	r := rand.New(rand.NewSource(7))
	pods := []*corev1.Pod{}
	for range number {
		text, err := json.Marshal(makePod(r))
		check(err)
		pod := &corev1.Pod{}
		check(json.Unmarshal(text, pod))
		pods = append(pods, pod)
	}
	return pods
}

func some(r *rand.Rand, lists ...[]object) object {
	context := object{}
	for _, list := range lists {
		for range r.Intn(4) {
			for name, value := range list[r.Intn(len(list))] {
				context[name] = value
			}
		}
	}
	return context
}

func makePod(r *rand.Rand) object {
	spec := object{}
	names := []string{"a", "b", "c"}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers := []any{}
		for range r.Intn(3) {
			containers = append(containers, makeContainer(r, list[:1]+names[len(containers)%3]))
		}
		if len(containers) > 0 {
			spec[list] = containers
		}
	}
	context := some(r, shared)
	if r.Intn(4) == 0 {
		set := []any{}
		for range 1 + r.Intn(3) {
			set = append(set, object{"name": sysctls[r.Intn(len(sysctls))], "value": "1"})
		}
		context["sysctls"] = set
	}
	if len(context) > 0 || r.Intn(2) == 0 {
		spec["securityContext"] = context
	}
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC", "hostUsers"} {
		if r.Intn(5) == 0 {
			spec[name] = name != "hostUsers" || r.Intn(3) == 0
		}
	}
	if r.Intn(6) == 0 {
		spec["os"] = object{"name": []string{"windows", "linux"}[r.Intn(2)]}
	}
	if r.Intn(2) == 0 {
		set := []any{}
		for range 1 + r.Intn(3) {
			volume := object{"name": fmt.Sprint("v", len(set))}
			if r.Intn(20) > 0 {
				volume[volumes[r.Intn(len(volumes))]] = object{}
			}
			set = append(set, volume)
		}
		spec["volumes"] = set
	}
	annotations := object{}
	keys := []string{
		"container.apparmor.security.beta.kubernetes.io/ca", "container.apparmor.security.beta.kubernetes.io/x",
		"seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/ca",
		"container.seccomp.security.alpha.kubernetes.io/nobody", "other",
	}
	values := []string{"runtime/default", "localhost/x", "unconfined", "", "docker/default", "a\"b\n"}
	for range r.Intn(3) {
		annotations[keys[r.Intn(len(keys))]] = values[r.Intn(len(values))]
	}
	return object{"metadata": object{"name": "p", "annotations": annotations}, "spec": spec}
}

func makeContainer(r *rand.Rand, name string) object {
	container := object{"name": name}
	if context := some(r, shared, ofContainers); len(context) > 0 || r.Intn(2) == 0 {
		container["securityContext"] = context
	}
	if r.Intn(4) == 0 {
		ports := []any{}
		for range 1 + r.Intn(2) {
			ports = append(ports, object{"containerPort": 80, "hostPort": []int{0, 9, 80, 443}[r.Intn(4)]})
		}
		container["ports"] = ports
	}
	handler := func() object {
		kind := []string{"httpGet", "tcpSocket", "exec"}[r.Intn(3)]
		host := []string{"", "h", "127.0.0.1"}[r.Intn(3)]
		if kind == "exec" {
			return object{kind: object{}}
		}
		return object{kind: object{"port": 1, "host": host}}
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if r.Intn(8) == 0 {
			container[probe] = handler()
		}
	}
	if r.Intn(8) == 0 {
		container["lifecycle"] = object{[]string{"postStart", "preStop"}[r.Intn(2)]: handler()}
	}
	return container
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
