package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var typeMeta = reflect.TypeOf(meta.TypeMeta{})

func (m *model) addField(file *file, added *message, owner reflect.Type, from reflect.StructField) error {
	tag := from.Tag.Get("protobuf")
	if from.Type == typeMeta && from.Anonymous || tag == "-" {
		return nil
	}
	if tag == "" {
		if from.Tag.Get("json") == "-" {
			return nil
		}
		return fmt.Errorf("%s has no protobuf tag", from.Name)
	}
	into, err := parseTag(tag)
	if err != nil {
		return fmt.Errorf("%s: %w", from.Name, err)
	}
	if into.name == "" {
		into.name = strings.ToLower(from.Name[:1]) + from.Name[1:]
	}
	if err := m.setType(file, &into, from.Type); err != nil {
		return fmt.Errorf("%s: %w", from.Name, err)
	}
	setGoNames(&into, from.Type)
	if err := setJSON(&into, owner, from); err != nil {
		return fmt.Errorf("%s: %w", from.Name, err)
	}
	rules, err := rulesOf(owner, from)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		into.options = append(into.options, fmt.Sprintf("(rowplane.rule) = %q", rule))
	}
	added.fields = append(added.fields, into)
	return nil
}

// parseTag reads "bytes,1,opt,name=metadata". The first word is not to be trusted: it says varint of
// DeleteOptions.propagationPolicy and bytes of ListMeta.remainingItemCount, against upstream's own code.
func parseTag(tag string) (into field, err error) {
	parts := strings.Split(tag, ",")
	if len(parts) < 3 {
		return into, fmt.Errorf("cannot read the tag %q", tag)
	}
	if into.number, err = strconv.Atoi(parts[1]); err != nil {
		return into, err
	}
	for _, part := range parts[2:] {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			into.name = name
		}
	}
	return into, nil
}

func (m *model) setType(file *file, into *field, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		into.options = append(into.options, "(rowplane.pointer) = true")
		t = t.Elem()
	}
	element, err := func() (string, error) {
		switch {
		case isMessage(t):
			return m.use(file, t)
		case isBytes(t):
			return "bytes", nil
		case t.Kind() == reflect.Slice:
			into.repeated = true
			return m.element(file, t.Elem())
		case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
			value, err := m.element(file, t.Elem())
			return "map<string, " + value + ">", err
		default:
			return scalar(t)
		}
	}()
	if err != nil {
		return err
	}
	into.typ = element
	return nil
}

// setGoNames keeps the names that errors show of a type, where they do not follow from the field's type in protobuf.
func setGoNames(into *field, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	element, collection := t, ""
	switch {
	case isMessage(t) || isBytes(t):
	case t.Kind() == reflect.Slice:
		element, collection = t.Elem(), "[]"
	case t.Kind() == reflect.Map:
		element, collection = t.Elem(), "map[string]"
	}
	if !isMessage(element) && !isBytes(element) && element.Name() != element.Kind().String() {
		into.options = append(into.options, fmt.Sprintf("(rowplane.go_type) = %q", element))
	}
	if collection != "" && t.String() != collection+element.String() {
		into.options = append(into.options, fmt.Sprintf("(rowplane.go_collection) = %q", t))
	}
}

func (m *model) element(file *file, t reflect.Type) (string, error) {
	switch {
	case isMessage(t):
		return m.use(file, t)
	case isBytes(t):
		return "bytes", nil
	default:
		return scalar(t)
	}
}

func (m *model) use(file *file, t reflect.Type) (string, error) {
	if path := filePath(t.PkgPath()); path != file.path {
		file.imports[path] = true
	}
	return m.add(t)
}

func scalar(t reflect.Type) (string, error) {
	switch t.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "bool", nil
	case reflect.Int32:
		return "int32", nil
	case reflect.Int64:
		return "int64", nil
	case reflect.Float64:
		return "double", nil
	default:
		return "", fmt.Errorf("no protobuf type for %s", t)
	}
}

// isMessage tells named slices such as ExtraValue, which are messages, from plain ones.
func isMessage(t reflect.Type) bool {
	_, marshals := reflect.PointerTo(t).MethodByName("MarshalToSizedBuffer")
	return marshals && (t.Kind() == reflect.Struct || t.Kind() == reflect.Slice)
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func setJSON(into *field, owner reflect.Type, from reflect.StructField) error {
	name, options, _ := strings.Cut(from.Tag.Get("json"), ",")
	omitEmpty, inline := false, from.Anonymous && name == ""
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			omitEmpty = true
		case "omitzero":
			into.options = append(into.options, "(rowplane.omit_zero) = true")
		case "", "inline":
		default:
			return fmt.Errorf("unknown JSON option %q", option)
		}
	}
	plainStruct := from.Type.Kind() == reflect.Struct
	switch {
	case inline:
		into.options = append(into.options, "(rowplane.inline) = true")
	case !omitEmpty && !plainStruct:
		into.options = append(into.options, "(rowplane.always) = true")
	}
	if name == "" {
		name = from.Name
	}
	if inline {
		return nil
	}
	if name != camel(into.name) {
		into.jsonName = name
	}
	if printsItself(owner) {
		return nil
	}
	return fieldMarkers(into, owner, from, name)
}

// camel is the JSON name that protobuf derives from a field's name.
func camel(name string) string {
	var out strings.Builder
	upper := false
	for _, c := range name {
		switch {
		case c == '_':
			upper = true
		case upper:
			out.WriteString(strings.ToUpper(string(c)))
			upper = false
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}
