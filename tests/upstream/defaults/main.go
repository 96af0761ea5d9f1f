// Makes the golden file of crates/objects/tests/modules/schema_defaults.rs: random, mostly empty objects of every kind, and what
// upstream makes of each by decoding, storing and reading it.
//
//	go run . > ../../../crates/objects/src/schema/types/defaults/upstream.jsonl.gz
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// Objects of each kind; more of those with many rules.
const (
	few  = 12
	many = 60
)

var groupVersions = []schema.GroupVersion{
	{Version: "v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1"},
	{Group: "apps", Version: "v1"},
	{Group: "autoscaling", Version: "v1"},
	{Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1"},
	{Group: "certificates.k8s.io", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"},
	{Group: "discovery.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"},
	{Group: "node.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "resource.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1"},
}

var often = map[string]bool{
	"Pod": true, "PodTemplate": true, "Deployment": true, "StatefulSet": true, "DaemonSet": true, "Job": true, "CronJob": true,
	"Service": true, "ReplicationController": true, "HorizontalPodAutoscaler": true, "PersistentVolume": true,
}

func main() {
	out := gzip.NewWriter(os.Stdout)
	for _, gv := range groupVersions {
		var kinds []string
		for kind, t := range legacyscheme.Scheme.KnownTypes(gv) {
			_, object := t.FieldByName("ObjectMeta")
			if object && kind != "PodStatusResult" && !strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery") {
				kinds = append(kinds, kind)
			}
		}
		sort.Strings(kinds)
		for _, kind := range kinds {
			random := rand.New(rand.NewSource(int64(len(kind)) + int64(kind[0])<<8))
			count := few
			if often[kind] {
				count = many
			}
			for i := 0; i < count; i++ {
				if err := write(out, gv.WithKind(kind), &filler{random}); err != nil {
					log.Fatalf("%v: %v", gv.WithKind(kind), err)
				}
			}
		}
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}

func write(out *gzip.Writer, gvk schema.GroupVersionKind, fill *filler) error {
	object, err := legacyscheme.Scheme.New(gvk)
	if err != nil {
		return err
	}
	fill.value(reflect.ValueOf(object).Elem(), "", 0)
	if gvk.Group == "autoscaling" && gvk.Version == "v1" {
		// Much of it is kept in annotations, which is the conversion's business.
		reflect.ValueOf(object).Elem().FieldByName("Status").SetZero()
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	sent, err := json.Marshal(object)
	if err != nil {
		return err
	}
	codec := legacyscheme.Codecs.LegacyCodec(gvk.GroupVersion())
	internal, err := runtime.Decode(codec, sent)
	if err != nil {
		return fmt.Errorf("%w of %s", err, sent)
	}
	serializer := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	storage := legacyscheme.Codecs.CodecForVersions(serializer, serializer, gvk.GroupVersion(), runtime.InternalGroupVersioner)
	stored, err := runtime.Encode(storage, internal)
	if err != nil {
		return err
	}
	read, err := runtime.Decode(storage, stored)
	if err != nil {
		return err
	}
	printed, err := runtime.Encode(codec, read)
	if err != nil {
		return err
	}
	line, err := json.Marshal([]json.RawMessage{sent, printed})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}
