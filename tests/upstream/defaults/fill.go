package main

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The deepest struct that is filled by chance alone.
const maxDepth = 11

// Values that rules look at, by the JSON name of the field.
var texts = map[string][]string{
	"type": {"", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "RollingUpdate", "Recreate", "OnDelete",
		"Container", "Pod", "Opaque"},
	"image": {"", "nginx", "nginx:latest", "nginx:1.27", "Bad Image", "registry.example:5000/a/b", "a@sha256:" +
		strings.Repeat("0123456789abcdef", 4)},
	"reference":          {"", "oci", "oci:v1"},
	"sessionAffinity":    {"", "None", "ClientIP"},
	"kind":               {"", "User", "Group", "ServiceAccount"},
	"allocationMode":     {"", "ExactCount", "All"},
	"protocol":           {"", "TCP", "UDP"},
	"serviceAccountName": {"", "robot"},
	"serviceAccount":     {"", "old"},
	"podIP":              {"", "10.0.0.1"},
	"ip":                 {"", "10.0.0.1", "10.0.0.2"},
	"podCIDR":            {"", "10.0.0.0/24"},
	"phase":              {"", "Bound", "Active", "Running"},
}

var quantities = []string{"0", "1", "0.5", "100m", "100u", "1500m", "1Gi", "1.5Gi", "1024Ki", "1e3", "123456789n"}

type filler struct{ *rand.Rand }

func (f *filler) one(of []string) string { return of[f.Intn(len(of))] }

func (f *filler) value(v reflect.Value, name string, depth int) {
	switch at := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *metav1.ObjectMeta:
		f.metadata(at)
		return
	case *resource.Quantity:
		*at = resource.MustParse(f.one(quantities))
		return
	case *metav1.Time:
		if f.Intn(2) == 0 {
			*at = metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
		}
		return
	case *metav1.MicroTime:
		if f.Intn(2) == 0 {
			*at = metav1.NewMicroTime(time.Unix(1_700_000_000, 123_456_000).UTC())
		}
		return
	case *intstr.IntOrString:
		*at = []intstr.IntOrString{{}, intstr.FromInt32(8080), intstr.FromString("http"), intstr.FromString("")}[f.Intn(4)]
		return
	case *runtime.RawExtension:
		at.Raw = json.RawMessage(`{"a":1}`)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			field := v.Type().Field(i)
			if field.IsExported() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				f.value(v.Field(i), name, depth+1)
			}
		}
	case reflect.Pointer:
		// The spec's own pointers are few, the sources of a volume are many.
		// Absent, this one is the time of day.
		if name == "timeAdded" {
			now := metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
			v.Set(reflect.ValueOf(&now))
			return
		}
		if depth < maxDepth && f.Intn(10) < 3 {
			v.Set(reflect.New(v.Type().Elem()))
			f.value(v.Elem(), name, depth+1)
		}
	case reflect.Slice:
		f.slice(v, name, depth)
	case reflect.Map:
		if f.Intn(10) < 3 {
			v.Set(reflect.MakeMap(v.Type()))
			for _, key := range []string{"cpu", "memory", "hugepages-2Mi"}[:1+f.Intn(2)] {
				value := reflect.New(v.Type().Elem()).Elem()
				f.value(value, name, depth+1)
				v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
			}
		}
	case reflect.String:
		if pool, ok := texts[name]; ok {
			v.SetString(f.one(pool))
		} else if f.Intn(4) == 0 {
			v.SetString("some-" + name)
		}
	case reflect.Bool:
		v.SetBool(f.Intn(3) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 0, 1, -1, 7}[f.Intn(5)])
	case reflect.Float64:
		v.SetFloat(float64(f.Intn(3)) / 2)
	}
}

func (f *filler) slice(v reflect.Value, name string, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if f.Intn(3) == 0 {
			v.SetBytes([]byte("bytes"))
		}
		return
	}
	chance := 4
	if name == "containers" || name == "ports" || name == "volumes" || name == "subsets" {
		chance = 8
	}
	if depth >= maxDepth || f.Intn(10) >= chance {
		return
	}
	length := 1 + f.Intn(2)
	v.Set(reflect.MakeSlice(v.Type(), length, length))
	for i := 0; i < length; i++ {
		f.value(v.Index(i), name, depth+1)
	}
}

func (f *filler) metadata(at *metav1.ObjectMeta) {
	if f.Intn(2) == 0 {
		at.Name = "a"
	}
	if f.Intn(3) == 0 {
		at.Labels = map[string]string{"app": "a"}
	}
	if f.Intn(5) == 0 {
		at.Annotations = map[string]string{"note": "a", "pod.beta.kubernetes.io/init-containers": "[]"}
	}
}
