// Makes the golden file of crates/objects/src/kinds/behavior/conversion/tests.rs: random objects of the kinds that are served in two versions that
// differ, and what upstream makes of each in the other version, and of that in the first.
//
//	go run ./conversions > ../../../crates/objects/src/kinds/behavior/conversion/upstream.jsonl
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	"sigs.k8s.io/randfill"
)

const count = 20

var pairs = [][2]schema.GroupVersionKind{
	{{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}, {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}},
	{{Version: "v1", Kind: "Event"}, {Group: "events.k8s.io", Version: "v1", Kind: "Event"}},
}

func main() {
	log.SetFlags(0)
	random := rand.New(rand.NewSource(37))
	filler := newFiller(random)
	for _, pair := range pairs {
		for _, way := range [][2]schema.GroupVersionKind{pair, {pair[1], pair[0]}} {
			for range count {
				if err := print(filler, way[0], way[1]); err != nil {
					log.Fatalf("%s: %v", way[0], err)
				}
			}
		}
	}
}

func print(filler *randfill.Filler, from, to schema.GroupVersionKind) error {
	object, err := legacyscheme.Scheme.New(from)
	if err != nil {
		return err
	}
	filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(from)
	there, err := converted(object, to)
	if err != nil {
		return err
	}
	back, err := converted(there, from)
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"from": object, "to": there, "back": back})
	if err == nil {
		fmt.Println(string(line))
	}
	return err
}

// converted goes by way of the internal version, as servers do. Conversions may change what they are given.
func converted(object runtime.Object, to schema.GroupVersionKind) (runtime.Object, error) {
	internal, err := legacyscheme.Scheme.UnsafeConvertToVersion(object.DeepCopyObject(), runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	other, err := legacyscheme.Scheme.UnsafeConvertToVersion(internal, to.GroupVersion())
	if err != nil {
		return nil, err
	}
	other.GetObjectKind().SetGroupVersionKind(to)
	return other, nil
}

var texts = []string{"", "a", "b", "web", "cpu", "memory", "a<b"}

func newFiller(random *rand.Rand) *randfill.Filler {
	at := time.Unix(1_700_000_000, 0).UTC()
	return randfill.New().RandSource(random).NilChance(0.4).NumElements(0, 2).Funcs(
		func(text *string, fill randfill.Continue) { *text = texts[fill.Intn(len(texts))] },
		func(*metav1.TypeMeta, randfill.Continue) {},
		func(metadata *metav1.ObjectMeta, fill randfill.Continue) {
			metadata.Name = "a"
			fill.Fill(&metadata.Labels)
			fill.Fill(&metadata.Annotations)
		},
		func(quantity *resource.Quantity, fill randfill.Continue) {
			all := []string{"0", "1", "1500m", "1Gi", "0.5", "123456789n"}
			*quantity = resource.MustParse(all[fill.Intn(len(all))])
		},
		func(time *metav1.Time, fill randfill.Continue) {
			if fill.Bool() {
				*time = metav1.NewTime(at)
			}
		},
		func(time *metav1.MicroTime, fill randfill.Continue) {
			if fill.Bool() {
				*time = metav1.NewMicroTime(at.Add(123_456_000))
			}
		},
		fillSpec, fillStatus,
	)
}

// fillSpec fills the source that the type names.
func fillSpec(metric *autoscalingv2.MetricSpec, fill randfill.Continue) {
	switch fill.Intn(5) {
	case 0:
		metric.Type, metric.Object = autoscalingv2.ObjectMetricSourceType, &autoscalingv2.ObjectMetricSource{}
		fill.Fill(metric.Object)
	case 1:
		metric.Type, metric.Pods = autoscalingv2.PodsMetricSourceType, &autoscalingv2.PodsMetricSource{}
		fill.Fill(metric.Pods)
		metric.Pods.Target.AverageValue = resource.NewQuantity(fill.Int63n(9), resource.DecimalSI)
	case 2:
		metric.Type, metric.Resource = autoscalingv2.ResourceMetricSourceType, &autoscalingv2.ResourceMetricSource{}
		fill.Fill(metric.Resource)
	case 3:
		metric.Type, metric.ContainerResource = autoscalingv2.ContainerResourceMetricSourceType, &autoscalingv2.ContainerResourceMetricSource{}
		fill.Fill(metric.ContainerResource)
	case 4:
		metric.Type, metric.External = autoscalingv2.ExternalMetricSourceType, &autoscalingv2.ExternalMetricSource{}
		fill.Fill(metric.External)
	}
}

func fillStatus(metric *autoscalingv2.MetricStatus, fill randfill.Continue) {
	average := resource.NewQuantity(fill.Int63n(9), resource.DecimalSI)
	switch fill.Intn(5) {
	case 0:
		metric.Type, metric.Object = autoscalingv2.ObjectMetricSourceType, &autoscalingv2.ObjectMetricStatus{}
		fill.Fill(metric.Object)
		metric.Object.Current.Value = average
	case 1:
		metric.Type, metric.Pods = autoscalingv2.PodsMetricSourceType, &autoscalingv2.PodsMetricStatus{}
		fill.Fill(metric.Pods)
		metric.Pods.Current.AverageValue = average
	case 2:
		metric.Type, metric.Resource = autoscalingv2.ResourceMetricSourceType, &autoscalingv2.ResourceMetricStatus{}
		fill.Fill(metric.Resource)
		metric.Resource.Current.AverageValue = average
	case 3:
		metric.Type, metric.ContainerResource = autoscalingv2.ContainerResourceMetricSourceType, &autoscalingv2.ContainerResourceMetricStatus{}
		fill.Fill(metric.ContainerResource)
		metric.ContainerResource.Current.AverageValue = average
	case 4:
		metric.Type, metric.External = autoscalingv2.ExternalMetricSourceType, &autoscalingv2.ExternalMetricStatus{}
		fill.Fill(metric.External)
		metric.External.Current.Value = average
	}
}
