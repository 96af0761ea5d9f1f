package main

import (
	"fmt"
	"sort"
	"strings"
)

// render writes a file. Messages stand in the order of their names, so that a diff shows what upstream changed.
func render(from *file) string {
	var out strings.Builder
	out.WriteString("// Written by proto/generate; do not edit.\nsyntax = \"proto2\";\n\n")
	fmt.Fprintf(&out, "package %s;\n\nimport \"options.proto\";\n", from.pkg)
	imports := make([]string, 0, len(from.imports))
	for path := range from.imports {
		imports = append(imports, path)
	}
	sort.Strings(imports)
	for _, path := range imports {
		fmt.Fprintf(&out, "import %q;\n", path)
	}
	if from.group != nil {
		fmt.Fprintf(&out, "\noption (rowplane.group) = %q;\n", from.group.Group)
		fmt.Fprintf(&out, "option (rowplane.version) = %q;\n", from.group.Version)
	}
	sort.Slice(from.messages, func(i, j int) bool { return from.messages[i].name < from.messages[j].name })
	for _, message := range from.messages {
		renderMessage(&out, message)
	}
	return out.String()
}

func renderMessage(out *strings.Builder, from *message) {
	fmt.Fprintf(out, "\nmessage %s {\n", from.name)
	if from.isKind {
		out.WriteString("  option (rowplane.kind) = true;\n")
	}
	if from.format != "" {
		fmt.Fprintf(out, "  option (rowplane.format) = %s;\n", from.format)
	}
	for _, option := range from.options {
		fmt.Fprintf(out, "  option %s;\n", option)
	}
	for _, field := range from.fields {
		renderField(out, field)
	}
	out.WriteString("}\n")
}

func renderField(out *strings.Builder, from field) {
	label := "optional "
	switch {
	case from.repeated:
		label = "repeated "
	case strings.HasPrefix(from.typ, "map<"):
		label = ""
	}
	options := from.options
	if from.jsonName != "" {
		options = append([]string{fmt.Sprintf("json_name = %q", from.jsonName)}, options...)
	}
	bracket := ""
	if len(options) > 0 {
		bracket = " [" + strings.Join(options, ", ") + "]"
	}
	fmt.Fprintf(out, "  %s%s %s = %d%s;\n", label, from.typ, from.name, from.number, bracket)
}
