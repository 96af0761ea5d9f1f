// Asks upstream's own compilers of CEL about expressions, for rowplane's checker (crates/cel) to compare with.
//
//	go run ./expressions functions > ../../crates/cel/src/functions.txt
//	go run ./expressions cases ../../testdata/cel
//	go run ./expressions devices ../../testdata/cel
//
// `functions` prints every overload of every function that new expressions may call, and `includes` of stored ones, one a line: a dot before the name
// means that the first argument stands before it, and brackets after a type that it has no fields. `cases` reads
// cases.txt, where `# ENVIRONMENT` is followed by expressions, a line each (\n is a line break), and writes what
// upstream says of each to verdicts.jsonl; `devices` writes what selectors of devices cost to devices.tsv.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// What a server of 1.37 lets new expressions use: what one of 1.36 understands.
var base = environment.MustBaseEnvSet(version.MajorMinor(1, 36))

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 2 && os.Args[1] == "functions":
		functions()
	case len(os.Args) == 3 && os.Args[1] == "devices":
		devices(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "cases":
		cases(os.Args[2])
	default:
		log.Fatal("usage: expressions functions | expressions cases FOLDER")
	}
}

func functions() {
	env, err := patches().Extend(library.IncludesOption())
	if err != nil {
		log.Fatal(err)
	}
	var lines []string
	for name, function := range env.Functions() {
		for i, overload := range function.OverloadDecls() {
			var args []string
			for _, arg := range overload.ArgTypes() {
				args = append(args, format(arg))
			}
			dot := ""
			if overload.IsMemberFunction() {
				dot = "."
			}
			lines = append(lines, fmt.Sprintf("%s\t%03d%s%s(%s) -> %s", name, i, dot, name, strings.Join(args, ", "), format(overload.ResultType())))
		}
	}
	sort.Strings(lines)
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, "\t")
		fmt.Println(rest[3:])
	}
}

func format(t *cel.Type) string {
	name := t.TypeName()
	if len(t.Parameters()) == 0 && t.Kind() != types.OpaqueKind {
		return name
	}
	var parameters []string
	for _, parameter := range t.Parameters() {
		parameters = append(parameters, format(parameter))
	}
	return name + "(" + strings.Join(parameters, ", ") + ")"
}

type verdict struct {
	Environment string `json:"environment"`
	Expression  string `json:"expression"`
	// Nothing, if upstream takes it.
	Error string `json:"error,omitempty"`
}

// Names that upstream makes anew each time.
var unique = regexp.MustCompile(`selfType[0-9]+`)

func cases(folder string) {
	in, err := os.Open(filepath.Join(folder, "cases.txt"))
	check(err)
	out, err := os.Create(filepath.Join(folder, "verdicts.jsonl"))
	check(err)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	resources := readResources(filepath.Join(folder, "schema.yaml"))
	place, count := "", 0
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "# ") {
			place = line[2:]
			continue
		}
		if line == "" {
			continue
		}
		expression := strings.ReplaceAll(line, `\n`, "\n")
		var problem string
		switch kind, detail, _ := strings.Cut(place, " "); kind {
		case "resource":
			problem = resources.compile(detail, expression)
		case "device":
			problem = device(expression)
		default:
			problem = admission(kind, strings.Fields(detail), expression)
		}
		problem = unique.ReplaceAllString(problem, "selfType")
		check(encoder.Encode(verdict{place, expression, problem}))
		count++
	}
	check(lines.Err())
	check(out.Close())
	fmt.Println(count)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
