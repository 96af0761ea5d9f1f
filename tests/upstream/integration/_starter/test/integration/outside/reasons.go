package outside

import (
	"os"
	"regexp"
	"runtime"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// etcdOwn matches what a test says that reads or writes etcd past the API server.
var etcdOwn = regexp.MustCompile(`EtcdClient\b|GetEtcdClients|\betcdClient\b|clientv3\.|\.EtcdStoragePrefix`)

// etcdInTest returns the first such word in the test's functions that are on the stack, or nothing.
func etcdInTest() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); strings.HasSuffix(frame.File, "_test.go") {
			if found := etcdOwn.FindString(functionAt(frame)); found != "" {
				return found
			}
		}
	}
	return ""
}

// functionAt is the text of the top-level function that a frame is in.
func functionAt(frame runtime.Frame) string {
	text, err := os.ReadFile(frame.File)
	if err != nil {
		return ""
	}
	lines := strings.SplitAfter(string(text), "\n")
	begin := min(frame.Line, len(lines)) - 1
	for begin > 0 && !strings.HasPrefix(lines[begin], "func ") {
		begin--
	}
	end := begin + 1
	for end < len(lines) && !strings.HasPrefix(lines[end], "func ") {
		end++
	}
	return strings.Join(lines[begin:end], "")
}

// switchable are the features that rowplane can switch (docs/features.md).
var switchable = map[string]bool{"APIServerIdentity": true, "StorageVersionAPI": true, "AllAlpha": true, "AllBeta": true}

// elsewhere are features that no code of an API server reads, but the scheduler, controllers and kubelets.
var elsewhere = map[string]bool{
	"CloudControllerManagerWatchBasedRoutesReconciliation": true, "InterPodAffinityHostnameFastPath": true,
	"KubeletCrashLoopBackOffMax": true, "NominatedNodeNameForExpectation": true, "SchedulerAsyncAPICalls": true, "SchedulerAsyncPreemption": true,
	"StaleControllerConsistencyDaemonSet": true,
}

// gatesIn are the features that flags set, and the other flags.
func gatesIn(flags []string) (gates map[string]bool, rest []string) {
	gates = map[string]bool{}
	for at := 0; at < len(flags); at++ {
		value, found := strings.CutPrefix(flags[at], "--feature-gates=")
		if !found && flags[at] == "--feature-gates" && at+1 < len(flags) {
			at++
			value, found = flags[at], true
		}
		if !found {
			rest = append(rest, flags[at])
			continue
		}
		for _, pair := range strings.Split(value, ",") {
			if name, on, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(pair), "kube:"), "="); ok {
				gates[strings.TrimSpace(name)] = strings.TrimSpace(on) == "true"
			}
		}
	}
	return gates, rest
}

// GatesIn are the features that flags set otherwise than they are in the test's own process.
func GatesIn(flags []string) map[featuregate.Feature]bool {
	changed := map[featuregate.Feature]bool{}
	gates, _ := gatesIn(flags)
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name, on := range gates {
		feature := featuregate.Feature(name)
		// All of a stage would let the test's clients speak CBOR.
		if _, ok := known[feature]; ok && !strings.HasPrefix(name, "All") && utilfeature.DefaultFeatureGate.Enabled(feature) != on {
			changed[feature] = on
		}
	}
	return changed
}

// wanted are the features that the test wants otherwise than they are by default: by flags, or in its own process.
func wanted(byFlags map[string]bool) map[string]bool {
	usual := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	gates := map[string]bool{}
	for feature := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		name := string(feature)
		on, given := byFlags[name]
		if !given {
			on = utilfeature.DefaultMutableFeatureGate.Enabled(feature)
		}
		if on != usual.Enabled(feature) && (given || name != "AllAlpha" && name != "AllBeta") {
			gates[name] = on
		}
	}
	for name, on := range byFlags { // those of other components, which this process has not
		if _, known := utilfeature.DefaultMutableFeatureGate.GetAll()[featuregate.Feature(name)]; !known {
			gates[name] = on
		}
	}
	return gates
}
