package shape

import (
	"encoding/json"
	"maps"
	"slices"
)

// Copy is deep.
func Copy[T any](value T) T {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var copied T
	if err := json.Unmarshal(text, &copied); err != nil {
		panic(err)
	}
	return copied
}

// Without leaves members and elements out, of every hundred as many as said.
func (m *Maker) Without(object Object, percent int) Object {
	return m.without(Copy(object), percent).(Object)
}

func (m *Maker) without(value any, percent int) any {
	switch value := value.(type) {
	case Object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			// A list that lost a key has no longer what tells its elements apart.
			if m.Intn(100) < percent && !keys[name] && name != "apiVersion" && name != "kind" {
				delete(value, name)
			} else {
				value[name] = m.without(value[name], percent)
			}
		}
	case []any:
		left := []any{}
		for _, element := range value {
			if m.Intn(100) >= percent {
				left = append(left, m.without(element, percent))
			}
		}
		if m.Intn(10) == 0 {
			m.Shuffle(len(left), func(one, other int) { left[one], left[other] = left[other], left[one] })
		}
		return left
	}
	return value
}

// Mixed lays one object over another: members are united, lists are united by key or taken whole.
func (m *Maker) Mixed(under, over Object) Object {
	return m.mixed(Copy(under), Copy(over)).(Object)
}

func (m *Maker) mixed(under, over any) any {
	switch over := over.(type) {
	case Object:
		under, isObject := under.(Object)
		if !isObject {
			return over
		}
		for _, name := range slices.Sorted(maps.Keys(over)) {
			value := over[name]
			if before, has := under[name]; has {
				under[name] = m.mixed(before, value)
			} else {
				under[name] = value
			}
		}
		return under
	case []any:
		under, isList := under.([]any)
		if !isList || m.Intn(4) == 0 {
			return over
		}
		known := map[string]int{}
		for at, element := range under {
			known[identity(element)] = at
		}
		for _, element := range over {
			if at, has := known[identity(element)]; has {
				under[at] = m.mixed(under[at], element)
			} else {
				under = append(under, element)
			}
		}
		return Distinct(under)
	}
	return over
}
