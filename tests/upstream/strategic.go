package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"rowplane/tests/upstream/peer"
	"rowplane/tests/upstream/shape"
)

// tries are how often upstream is asked when a patch has more than one outcome: it goes through members in any order.
const tries = 40

// strategic lays random patches, and patches that upstream makes of two objects, over random objects.
func strategic(c *comparison) error {
	for _, kind := range applied() {
		for round := range c.count * 4 {
			world, err := newWorld(kind, rand.New(rand.NewSource(c.seed+int64(round))))
			if err != nil {
				return err
			}
			world.Nulls = 0
			live, err := world.typed(world.random())
			if err != nil {
				return err
			}
			if err := c.patched(world, live); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	return nil
}

func (c *comparison) patched(w *world, object runtime.Object) error {
	live, err := bare(object)
	if err != nil {
		return err
	}
	patch, err := w.patch(object, live)
	if err != nil {
		return err
	}
	answer, err := c.peer.Ask(peer.Object{"ask": "strategic", "live": live, "patch": patch})
	if err != nil {
		return err
	}
	c.compared++
	found := outcome{refused: answer.Refused}
	if answer.Refused == "" {
		found.object, err = w.normal(answer.Object)
		if err != nil {
			found = outcome{refused: "undecodable"}
		}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	wanted := []outcome{}
	for range tries {
		one, err := w.merged(object, live, patch)
		if err != nil {
			return err
		}
		if reflect.DeepEqual(one, found) {
			return nil
		}
		if one.refused == panicked {
			c.panics++
			return nil
		}
		// Order lists of lists without a merge key, or with nothing in them, end in upstream's machinery; and of
		// several reasons to refuse a patch either names one.
		if strings.HasSuffix(one.refused, `declared merge key: ")`) || emptyOrder.Match(text) ||
			one.refused != "" && found.refused != "" {
			c.known++
			return nil
		}
		wanted = append(wanted, one)
	}
	show := func(one outcome) any {
		if one.refused != "" {
			return one.refused
		}
		return one.object
	}
	c.differ(w.kind.Kind+" strategic", peer.Object{"live": live, "patch": patch}, show(wanted[0]), show(found))
	return nil
}

const panicked = "panic"

var emptyOrder = regexp.MustCompile(`"\$setElementOrder/[a-zA-Z]*":\[\]`)

type outcome struct {
	object  peer.Object
	refused string
}

func (w *world) normal(object peer.Object) (peer.Object, error) {
	typed, err := w.typed(object)
	if err != nil {
		return nil, err
	}
	return bare(typed)
}

// merged is what upstream's server makes of it.
func (w *world) merged(object runtime.Object, live, patch peer.Object) (found outcome, err error) {
	meta, err := strategicpatch.NewPatchMetaFromStruct(object)
	if err != nil {
		return outcome{}, err
	}
	left, right := integral(shape.Copy(live)).(peer.Object), integral(shape.Copy(patch)).(peer.Object)
	// Keys that are no scalars make it panic; a server answers 500 then.
	defer func() {
		if recover() != nil {
			found, err = outcome{refused: panicked}, nil
		}
	}()
	merged, why := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(left, right, meta)
	if why != nil {
		return outcome{refused: class(why)}, nil
	}
	if found.object, why = w.normal(merged); why != nil {
		return outcome{refused: "undecodable"}, nil
	}
	return found, nil
}

// class says what rowplane's library says of the same refusal.
func class(why error) string {
	text, _ := peer.Encode(why.Error())
	text = bytes.TrimSpace(text)
	switch why {
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat:
		return fmt.Sprintf("Malformed(%s)", text)
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return "DoesNotApply"
	}
	return fmt.Sprintf("Failed(%s)", text)
}

// patch is one that a client would make of two objects, or one at random with directives in it.
func (w *world) patch(object runtime.Object, live peer.Object) (peer.Object, error) {
	other := w.Mixed(w.Without(live, 8), w.random())
	if w.Intn(2) == 0 {
		w.Nulls = 20
		patch := w.directed(shape.Copy(w.Mixed(w.Without(live, 30), w.random()))).(peer.Object)
		delete(patch, "apiVersion")
		delete(patch, "kind")
		return patch, nil
	}
	wanted, err := w.normal(other)
	if err != nil {
		return nil, err
	}
	from, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.CreateTwoWayMergePatch(from, to, object)
	if err != nil {
		// Elements without their key have no patch.
		return peer.Object{}, nil
	}
	patch := peer.Object{}
	return patch, json.Unmarshal(text, &patch)
}

// directed puts directives into a patch.
func (w *world) directed(value any) any {
	switch value := value.(type) {
	case []any:
		for at, element := range value {
			value[at] = w.directed(element)
			if item, isObject := value[at].(peer.Object); isObject && w.Intn(12) == 0 {
				item["$patch"] = []any{"delete", "delete", "replace", "merge", "frob"}[w.Intn(5)]
			}
		}
		return value
	case map[string]any:
		for _, name := range sorted(value) {
			member := value[name]
			list, isList := member.([]any)
			switch {
			case isList && w.Intn(8) == 0:
				value["$setElementOrder/"+name] = w.order(list)
				if w.Intn(2) == 0 {
					delete(value, name)
				}
			case isList && w.Intn(12) == 0:
				delete(value, name)
				value["$deleteFromPrimitiveList/"+name] = list
			default:
				value[name] = w.directed(member)
			}
		}
		switch w.Intn(60) {
		case 0:
			value["$patch"] = []any{"delete", "replace", "merge"}[w.Intn(3)]
		case 1:
			kept := []any{}
			for _, name := range sorted(value) {
				if w.Intn(8) > 0 {
					kept = append(kept, name)
				}
			}
			value["$retainKeys"] = kept
		}
	}
	return value
}

// order lists the keys of a list, in another order now and then.
func (w *world) order(list []any) []any {
	ordered := []any{}
	for _, element := range list {
		if item, isObject := element.(peer.Object); isObject {
			keys := peer.Object{}
			for name, value := range item {
				switch value.(type) {
				case string, float64:
					keys[name] = value
				}
			}
			element = keys
		}
		if w.Intn(10) > 0 {
			ordered = append(ordered, element)
		}
	}
	if w.Intn(3) == 0 {
		w.Shuffle(len(ordered), func(one, other int) { ordered[one], ordered[other] = ordered[other], ordered[one] })
	}
	return ordered
}
