package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// A tag is a line of a doc comment for validation-gen: +k8s:name(args)=payload.
type tag struct {
	name, args, payload string
}

// docs are the tags of the types of a package and of their fields: of Type, and of Type.Field.
type docs map[string][]tag

var packages = map[string]docs{}

// rulesOf are the rules of a field as the words of rowplane.rule, in the order in which validation-gen asks them: first
// those that end the validation of the field, then the others, then those of its type.
func rulesOf(owner reflect.Type, from reflect.StructField) (rules []string, err error) {
	// Names of objects are judged before the kind is.
	if from.Name == "ObjectMeta" && from.Anonymous {
		return nil, nil
	}
	tags, err := tagsOf(owner.PkgPath(), owner.Name()+"."+from.Name)
	if err != nil {
		return nil, err
	}
	words, err := wordsOf(tags)
	if err != nil {
		return nil, fmt.Errorf("%s.%s: %w", owner, from.Name, err)
	}
	slices.SortStableFunc(words, func(a, b string) int { return boolean(!stops(a)) - boolean(!stops(b)) })
	t, each := from.Type, ""
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	} else if t.Kind() == reflect.Slice {
		t, each = t.Elem(), "eachVal="
	}
	if t.Kind() == reflect.String && t.PkgPath() != "" {
		tags, err := tagsOf(t.PkgPath(), t.Name())
		if err != nil {
			return nil, err
		}
		ofType, err := wordsOf(tags)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		for _, word := range ofType {
			words = append(words, each+word)
		}
	}
	return words, nil
}

func boolean(value bool) int {
	if value {
		return 1
	}
	return 0
}

// stops tells rules after which no other is asked of the field (validation-gen's short circuit).
func stops(rule string) bool {
	name, _, _ := strings.Cut(rule, "=")
	return slices.Contains([]string{"required", "optional", "forbidden", "immutable", "update", "maxItems"}, name)
}

// Options of validation that a server with its features as v1.37 has them gives: those that are on.
var options = map[string]bool{
	"DRAPartitionableDevicesType":                  false,
	"HPAScaleToZero":                               true,
	"InPlacePodVerticalScalingSchedulerPreemption": false,
	"WorkloadWithJob":                              false,
}

// wordsOf drops what is not in force: alpha rules are shadows of hand-written ones.
func wordsOf(tags []tag) (words []string, err error) {
	var keys []string
	for _, tag := range tags {
		if tag.name == "beta" {
			tag = parseRule(strings.TrimPrefix(tag.payload, "+k8s:"))
		}
		if tag.name == "listMapKey" {
			keys = append(keys, tag.payload)
		}
	}
	for _, each := range tags {
		lifted := each
		if each.name == "beta" {
			lifted = parseRule(strings.TrimPrefix(each.payload, "+k8s:"))
		}
		more, err := word(lifted, keys)
		if err != nil {
			return nil, err
		}
		words = append(words, more...)
	}
	if slices.ContainsFunc(tags, func(tag tag) bool { return strings.Contains(tag.payload+tag.name, "customUnique") }) {
		words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "unique") })
	}
	return words, nil
}

func word(from tag, keys []string) ([]string, error) {
	inner := func() ([]string, error) { return word(parseRule(strings.TrimPrefix(from.payload, "+k8s:")), keys) }
	switch from.name {
	case "alpha", "listMapKey", "customUnique":
	// Of Go's types only, or judged by hand.
	case "openapi-gen", "conversion-gen", "deepcopy-gen", "prerelease-lifecycle-gen", "protobuf-gen", "opaqueType",
		"customValidation", "item", "subfield", "deprecated", "supportsSubresource", "isSubresource", "validation-gen",
		"conversion-fn", "openapi-model-package", "protobuf-deps", "deepcopy":
	case "required", "optional", "forbidden", "immutable", "unionMember", "enum", "modeDiscriminator":
		return []string{from.name}, nil
	case "minimum", "maximum", "maxItems", "maxLength", "maxBytes", "format", "update":
		return []string{from.name + "=" + strings.Trim(from.payload, `"`)}, nil
	case "listType", "unique":
		switch from.payload {
		case "set":
			return []string{"unique"}, nil
		case "map":
			return []string{"unique=" + strings.Join(keys, ",")}, nil
		}
	case "eachVal", "eachKey", "ifMode":
		words, err := inner()
		for i, word := range words {
			words[i] = from.name + strings.Trim(from.args, " ") + "=" + word
		}
		return words, err
	case "ifEnabled", "ifDisabled":
		on, known := options[strings.Trim(from.args, "()")]
		if !known {
			return nil, fmt.Errorf("unknown option %s", from.args)
		}
		if on == (from.name == "ifEnabled") {
			return inner()
		}
	default:
		return nil, fmt.Errorf("unknown tag +k8s:%s", from.name)
	}
	return nil, nil
}

// tagsOf are the tags of a type or field by name, the one with lifecycle first, else in the order of their names.
func tagsOf(pkg, name string) ([]tag, error) {
	known, found := packages[pkg]
	if !found {
		var err error
		if known, err = readDocs(pkg); err != nil {
			return nil, err
		}
		packages[pkg] = known
	}
	return known[name], nil
}

func readDocs(pkg string) (docs, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	parsed, err := parser.ParseDir(token.NewFileSet(), strings.TrimSpace(string(out)), nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	found := docs{}
	for _, one := range parsed {
		for _, file := range one.Files {
			for _, declaration := range file.Decls {
				if types, ok := declaration.(*ast.GenDecl); ok && types.Tok == token.TYPE {
					found.read(types)
				}
			}
		}
	}
	return found, nil
}

func (d docs) read(types *ast.GenDecl) {
	for _, each := range types.Specs {
		spec := each.(*ast.TypeSpec)
		doc := spec.Doc
		if doc == nil {
			doc = types.Doc
		}
		d[spec.Name.Name] = readTags(doc)
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				d[spec.Name.Name+"."+name.Name] = readTags(field.Doc)
			}
			if field.Names == nil {
				d[spec.Name.Name+"."+embedded(field.Type)] = readTags(field.Doc)
			}
		}
	}
}

func embedded(from ast.Expr) string {
	if selected, ok := from.(*ast.SelectorExpr); ok {
		return selected.Sel.Name
	}
	return fmt.Sprint(from)
}

func readTags(doc *ast.CommentGroup) (tags []tag) {
	if doc == nil {
		return nil
	}
	for _, line := range doc.List {
		text := strings.TrimSpace(strings.TrimPrefix(line.Text, "//"))
		if rule, ok := strings.CutPrefix(text, "+k8s:"); ok {
			tags = append(tags, parseRule(rule))
		}
	}
	sort.SliceStable(tags, func(i, j int) bool { return tags[i].name < tags[j].name })
	return tags
}

// parseRule reads name(args)=payload.
func parseRule(text string) tag {
	end := strings.IndexAny(text, "(=")
	if end < 0 {
		return tag{name: text}
	}
	parsed, rest := tag{name: text[:end]}, text[end:]
	if strings.HasPrefix(rest, "(") {
		close := strings.Index(rest, ")")
		parsed.args, rest = strings.ReplaceAll(rest[:close+1], `"`, ""), rest[close+1:]
	}
	parsed.payload = strings.TrimPrefix(rest, "=")
	return parsed
}
