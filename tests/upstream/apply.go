package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rowplane/tests/upstream/peer"
	"rowplane/tests/upstream/shape"
)

// before is the time of all entries when a write begins.
var before = metav1.NewTime(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))

// A world is a kind, upstream's managers of it, and an object as upstream left it.
type world struct {
	*shape.Maker
	kind     schema.GroupVersionKind
	upstream *managedfields.FieldManager
	live     runtime.Object
	configs  map[string]peer.Object
}

// A write is what one manager does.
type write struct {
	manager string
	force   bool
	// Exactly one of these.
	config peer.Object
	new    peer.Object
}

func newWorld(kind schema.GroupVersionKind, random *rand.Rand) (*world, error) {
	status := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	reset := map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(status),
	}
	all := scheme.Scheme
	upstream, err := managedfields.NewDefaultFieldManager(
		applyconfigurations.NewTypeConverter(all), runtime.UnsafeObjectConvertor(all), all, all, kind, kind.GroupVersion(), "", reset)
	if err != nil {
		return nil, err
	}
	live, err := all.New(kind)
	if err != nil {
		return nil, err
	}
	live.GetObjectKind().SetGroupVersionKind(kind)
	maker := &shape.Maker{Rand: random, Nulls: 4, Odd: 0}
	return &world{maker, kind, upstream, live, map[string]peer.Object{}}, nil
}

func (w *world) exists() bool {
	accessor, err := meta.Accessor(w.live)
	return err == nil && accessor.GetUID() != ""
}

func (w *world) random() peer.Object {
	object := w.Of(w.live)
	object["apiVersion"], object["kind"] = w.kind.GroupVersion().String(), w.kind.Kind
	if metadata, has := object["metadata"].(peer.Object); has {
		metadata["name"] = "n"
	}
	return object
}

// next is a write that has to do with what is there.
func (w *world) next() (write, error) {
	next := write{manager: []string{"a", "b", "c"}[w.Intn(3)], force: w.Intn(2) == 0}
	live, err := bare(w.live)
	if err != nil {
		return next, err
	}
	w.Odd = 0
	if w.Intn(3) == 0 {
		w.Nulls = 0
		wanted := w.Mixed(w.Without(live, 4), w.random())
		if w.Intn(3) == 0 {
			wanted = w.Without(live, 15)
		}
		typed, err := w.typed(wanted)
		if err != nil {
			return next, err
		}
		next.new, err = asMap(typed)
		return next, err
	}
	w.Nulls = w.Intn(2) * 8
	if w.Intn(20) == 0 {
		w.Odd = 15
	}
	switch config := w.configs[next.manager]; {
	case config != nil && w.Intn(3) == 0:
		next.config = w.Without(config, 12)
	case config != nil && w.Intn(3) == 0:
		next.config = w.Mixed(config, w.random())
	case config != nil && w.Intn(4) == 0:
		next.config = config
	case w.exists() && w.Intn(4) == 0:
		next.config = w.Without(live, 30)
	default:
		next.config = w.random()
	}
	delete(next.config, "status")
	return next, nil
}

// apply runs random writes one after the other; each starts, for both, from what upstream made of the one before.
func apply(c *comparison) error {
	for _, kind := range applied() {
		for round := range c.count {
			world, err := newWorld(kind, rand.New(rand.NewSource(c.seed+int64(round))))
			if err != nil {
				return err
			}
			for range 8 {
				if err := c.step(world); err != nil {
					return fmt.Errorf("%s: %w", kind, err)
				}
			}
		}
	}
	return nil
}

// applied are the kinds of stable versions that upstream has apply configurations for.
func applied() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{}
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		_, hasMeta := reflect.New(goType).Interface().(metav1.Object)
		stable := kind.Version == "v1" || kind.Version == "v2"
		shared := strings.HasSuffix(goType.PkgPath(), "/meta/v1")
		review := strings.HasSuffix(kind.Kind, "Review") || kind.Kind == "Binding" || kind.Kind == "Eviction" || kind.Kind == "Scale"
		other := strings.HasSuffix(kind.Kind, "Request") && kind.Group == "authentication.k8s.io" || kind.Kind == "PodStatusResult" || kind.Kind == "RangeAllocation" || kind.Group == "imagepolicy.k8s.io"
		if hasMeta && stable && !shared && !review && !other {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(one, other schema.GroupVersionKind) int { return strings.Compare(one.String(), other.String()) })
	return kinds
}

func (c *comparison) step(w *world) error {
	next, err := w.next()
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(w.live)
	if err != nil {
		return err
	}
	managers := accessor.GetManagedFields()
	for at := range managers {
		if managers[at].Time != nil {
			managers[at].Time = before.DeepCopy()
		}
	}
	// What nobody tracks is for the server, not for the sets.
	if w.exists() && len(managers) == 0 {
		return nil
	}
	accessor.SetManagedFields(managers)
	question, err := w.question(next, managers)
	if err != nil {
		return err
	}
	result, refusal := w.write(next)
	if refusal != nil && strings.HasPrefix(refusal.Error(), "failed to convert") {
		// Of values that the kind's types refuse before there is anything to own.
		return nil
	}
	answer, err := c.peer.Ask(question)
	if err != nil {
		return err
	}
	c.compared++
	what := fmt.Sprintf("%s %s", w.kind.Kind, question["ask"])
	if refusal != nil || answer.Refused != "" {
		ours, theirs := lines(answer.Refused), []string{}
		for range tries {
			if refusal != nil {
				theirs = lines(refusal.Error())
			}
			if slices.Equal(ours, theirs) {
				return nil
			}
			_, refusal = w.write(next)
		}
		c.differ(what, question, theirs, ours)
		return nil
	}
	if err := c.judge(w, what, question, result, answer); err != nil {
		return err
	}
	return w.accept(next, result)
}

// accept goes on with what upstream made.
func (w *world) accept(next write, result runtime.Object) error {
	if next.config != nil {
		w.configs[next.manager] = next.config
	}
	accessor, err := meta.Accessor(result)
	if err != nil {
		return err
	}
	accessor.SetUID("u")
	w.live, err = w.stored(result)
	return err
}

func (w *world) question(next write, managers []metav1.ManagedFieldsEntry) (peer.Object, error) {
	live, err := bare(w.live)
	if err != nil {
		return nil, err
	}
	if next.config != nil && !w.exists() {
		live = peer.Object{"apiVersion": live["apiVersion"], "kind": live["kind"]}
	}
	if managers == nil {
		managers = []metav1.ManagedFieldsEntry{}
	}
	question := peer.Object{"live": live, "managers": managers, "manager": next.manager}
	if next.config != nil {
		question["ask"], question["config"], question["force"] = "apply", next.config, next.force
		return question, nil
	}
	updated, err := w.typed(next.new)
	if err != nil {
		return nil, err
	}
	question["ask"] = "update"
	question["new"], err = bare(updated)
	return question, err
}

// write lets upstream do it.
func (w *world) write(next write) (runtime.Object, error) {
	if next.config != nil {
		patch := &unstructured.Unstructured{Object: integral(shape.Copy(next.config)).(peer.Object)}
		return w.upstream.Apply(w.live.DeepCopyObject(), patch, next.manager, next.force)
	}
	updated, err := w.typed(next.new)
	if err != nil {
		return nil, err
	}
	return w.upstream.Update(w.live.DeepCopyObject(), updated, next.manager)
}

func (c *comparison) judge(w *world, what string, question peer.Object, result runtime.Object, answer *peer.Answer) error {
	accessor, err := meta.Accessor(result)
	if err != nil {
		return err
	}
	theirs, err := classified(accessor.GetManagedFields())
	if err != nil {
		return err
	}
	ours, err := classified(answer.Managers)
	if err != nil {
		return err
	}
	if theirs != ours {
		c.differ(what+": managers", question, json.RawMessage(theirs), json.RawMessage(ours))
	}
	if answer.Object == nil {
		return nil
	}
	wanted, err := bare(result)
	if err != nil {
		return err
	}
	typed, err := w.typed(answer.Object)
	if err != nil {
		c.differ(what+": object", question, wanted, answer.Object)
		return nil
	}
	found, err := bare(typed)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(wanted, found) {
		c.differ(what+": object", question, wanted, found)
	}
	return nil
}

func (w *world) typed(object peer.Object) (runtime.Object, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	typed, err := scheme.Scheme.New(w.kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(w.kind)
	return typed, nil
}

// stored is the object as it comes back from a store: there, empty is absent.
func (w *world) stored(object any) (runtime.Object, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	decoded := peer.Object{}
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, err
	}
	return w.typed(decoded)
}

// bare is the object's JSON without managers.
func bare(object runtime.Object) (peer.Object, error) {
	object = object.DeepCopyObject()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(nil)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	printed := peer.Object{}
	return printed, json.Unmarshal(text, &printed)
}

// classified is the text of entries; of a time only whether there is one, and whether it is new.
func classified(entries any) (string, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return "", err
	}
	list := []map[string]any{}
	if err := json.Unmarshal(text, &list); err != nil {
		return "", err
	}
	for _, entry := range list {
		if at, has := entry["time"]; has {
			entry["time"] = "new"
			if at == before.Format(time.RFC3339) {
				entry["time"] = "as it was"
			}
		}
	}
	text, err = json.Marshal(list)
	return string(text), err
}

// integral has whole numbers as YAML has them.
func integral(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			value[name] = integral(member)
		}
	case []any:
		for at, element := range value {
			value[at] = integral(element)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

// lines are sorted: upstream goes through members in any order.
func lines(text string) []string {
	const head = "failed to create typed patch object ("
	if rest, found := strings.CutPrefix(text, head); found {
		_, text, _ = strings.Cut(rest, "): ")
	}
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return lines
}
