package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type model struct {
	files    map[string]*file
	messages map[reflect.Type]*message
}

type file struct {
	path    string
	pkg     string
	group   *schema.GroupVersion
	imports map[string]bool
	// In the order of their names once finished.
	messages []*message
}

type message struct {
	name    string
	format  string
	isKind  bool
	options []string
	fields  []field
}

// In the order of the Go struct, which is that of JSON.
type field struct {
	name, jsonName string
	number         int
	typ            string
	repeated       bool
	options        []string
}

func newModel() *model {
	return &model{files: map[string]*file{}, messages: map[reflect.Type]*message{}}
}

func (m *model) addRoot(value any) error {
	root := reflect.TypeOf(value)
	if _, err := m.add(root); err != nil {
		return err
	}
	m.messages[root].isKind = true
	return nil
}

func (m *model) addRoots(version schema.GroupVersion, roots []any) error {
	for _, root := range roots {
		if err := m.addRoot(root); err != nil {
			return err
		}
		m.file(reflect.TypeOf(root)).group = &version
	}
	return nil
}

func (m *model) addGroupVersion(scheme *runtime.Scheme, served schema.GroupVersion) error {
	kinds := scheme.KnownTypes(served)
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		kind := kinds[name]
		// The options, Status and WatchEvent of meta/v1 are registered in every version.
		if strings.HasSuffix(kind.PkgPath(), "/meta/v1") {
			continue
		}
		if kind.Name() != name {
			return fmt.Errorf("%s %s is the type %s", served, name, kind)
		}
		if err := m.addRoot(reflect.Zero(kind).Interface()); err != nil {
			return err
		}
		m.file(kind).group = &served
	}
	return nil
}

// add makes the type known, with all that it needs, and returns its full name.
func (m *model) add(t reflect.Type) (string, error) {
	file := m.file(t)
	fullName := "." + file.pkg + "." + t.Name()
	if _, done := m.messages[t]; done {
		return fullName, nil
	}
	added := &message{name: t.Name()}
	m.messages[t] = added
	file.messages = append(file.messages, added)
	if special, ok := specials[t]; ok {
		added.format = special.format
		added.fields = special.fields
		if added.fields != nil {
			return fullName, nil
		}
	} else if printsItself(t) {
		return "", fmt.Errorf("%s has a JSON form of its own that the generator does not know", t)
	}
	if t.Kind() == reflect.Slice {
		added.format = "FORMAT_LIST"
		added.fields = []field{{name: "items", number: 1, typ: "string", repeated: true}}
		return fullName, nil
	}
	if added.format == "" {
		options, err := messageMarkers(t)
		if err != nil {
			return "", err
		}
		added.options = options
	}
	for i := range t.NumField() {
		if err := m.addField(file, added, t, t.Field(i)); err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
	}
	if added.format != "" {
		// Such fields are never members of JSON, so nothing need be said of how they are printed.
		for i := range added.fields {
			added.fields[i].jsonName, added.fields[i].options = "", nil
		}
	}
	return fullName, nil
}

func (m *model) file(t reflect.Type) *file {
	path := filePath(t.PkgPath())
	if known := m.files[path]; known != nil {
		return known
	}
	pkg := strings.ReplaceAll(strings.ReplaceAll(t.PkgPath(), "/", "."), "-", "_")
	m.files[path] = &file{path: path, pkg: pkg, imports: map[string]bool{}}
	return m.files[path]
}

func filePath(pkg string) string {
	if shared, ok := sharedFiles[pkg]; ok {
		return shared
	}
	parts := strings.Split(pkg, "/")
	return strings.Join(parts[len(parts)-2:], "/") + ".proto"
}

var sharedFiles = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource": "quantity.proto",
	"k8s.io/apimachinery/pkg/runtime":      "runtime.proto",
	"k8s.io/apimachinery/pkg/util/intstr":  "intstr.proto",
}
