// Evaluates expressions of CEL with upstream's own environment, for rowplane's evaluator (crates/cel) to compare with.
//
//	go run ./cel ../../testdata/cel/evaluate
//
// reads the folder's schema.yaml (the type of `self` and `oldSelf`), objects.yaml (values for them, two a document) and
// cases.txt (expressions, a line each), makes expressions of its own besides, and writes what becomes of each to
// results.jsonl.gz: what is wrong with it, or its worst cost and, for each pair of objects, value or error, and cost.
//
//	go run ./cel rules ../../testdata/cel/rules
//
// does the same for x-kubernetes-validations: rules.yaml holds schemas with rules and objects, results.json what upstream
// finds wrong with them, and what is left of the budget.
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types/ref"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type result struct {
	Expression string `json:"e"`
	// What is wrong with it, before it is evaluated.
	Wrong  string    `json:"w,omitempty"`
	Static uint64    `json:"s,omitempty"`
	Type   string    `json:"t,omitempty"`
	Values []outcome `json:"v,omitempty"`
}

type outcome struct {
	Value string `json:"v,omitempty"`
	Error string `json:"e,omitempty"`
	Cost  uint64 `json:"c"`
}

type bench struct {
	schema    *structural.Structural
	env       *cel.Env
	estimator *library.CostEstimator
	pairs     [][2]any
}

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "rules" {
		rules(os.Args[2])
		return
	}
	if len(os.Args) != 2 {
		log.Fatal("usage: cel FOLDER | cel rules FOLDER")
	}
	folder := os.Args[1]
	b := read(folder)
	out, err := os.Create(filepath.Join(folder, "results.jsonl.gz"))
	check(err)
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	check(err)
	encoder := json.NewEncoder(zipped)
	encoder.SetEscapeHTML(false)
	count, sound := 0, 0
	emit := func(expression string) {
		r := b.evaluate(expression)
		check(encoder.Encode(r))
		count++
		if r.Wrong == "" {
			sound++
		}
	}
	cases, err := os.Open(filepath.Join(folder, "cases.txt"))
	check(err)
	lines := bufio.NewScanner(cases)
	for lines.Scan() {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "# ") {
			emit(strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	check(lines.Err())
	for _, count := range []int{60, 124, 125, 126, 247, 248, 249, 250, 251, 300} {
		for _, around := range [][2]string{{"(", ")"}, {"[", "]"}, {"1 + ", ""}, {"1 < ", ""}, {"true && ", ""}, {"!", ""}, {"-", ""}, {"dyn(", ")"}, {"true ? 1 : ", ""}, {"{1: ", "}"}, {"[1].map(x, ", ")"}, {"1 * (", ")"}, {"-(", ")"}} {
			emit(strings.Repeat(around[0], count) + "1" + strings.Repeat(around[1], count))
		}
		emit("dyn(1)" + strings.Repeat(".a", count))
		emit("dyn(1)" + strings.Repeat("[0]", count))
		emit("(" + strings.Repeat("1 + ", count/2) + "dyn(1)" + strings.Repeat(".a", count/2) + ") == 1")
	}
	g := &generator{random: rand.New(rand.NewSource(15))}
	for i := 0; i < 6000; i++ {
		g.scope, g.names = nil, 0
		emit(g.expression(kinds[i%len(kinds)], 1+i%4))
	}
	check(zipped.Close())
	check(out.Close())
	fmt.Println(count, sound)
}

func read(folder string) *bench {
	text, err := os.ReadFile(filepath.Join(folder, "schema.yaml"))
	check(err)
	var props v1.JSONSchemaProps
	check(yaml.UnmarshalStrict(text, &props))
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	schema, err := structural.NewStructural(&internal)
	check(err)
	decl := model.SchemaDeclType(schema, false).MaybeAssignTypeName("selfType")
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", decl.CelType()), cel.Variable("oldSelf", decl.CelType())},
		DeclTypes:         []*apiservercel.DeclType{decl},
	})
	check(err)
	b := &bench{schema: schema, env: set.NewExpressionsEnv()}
	b.estimator = &library.CostEstimator{SizeEstimator: &sizes{decl}}
	text, err = os.ReadFile(filepath.Join(folder, "objects.yaml"))
	check(err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		var pair struct{ Self, Old any }
		check(yaml.Unmarshal([]byte(document), &pair))
		b.pairs = append(b.pairs, [2]any{whole(pair.Self), whole(pair.Old)})
	}
	return b
}

// Numbers as the API server reads them.
func whole(value any) any {
	text, err := json.Marshal(value)
	check(err)
	var out any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	check(decoder.Decode(&out))
	return numbers(out)
}

func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			value[k] = numbers(v)
		}
	case []any:
		for i, v := range value {
			value[i] = numbers(v)
		}
	case json.Number:
		if i, err := value.Int64(); err == nil {
			return i
		}
		f, err := value.Float64()
		check(err)
		return f
	}
	return value
}

func (b *bench) evaluate(expression string) result {
	r := result{Expression: expression}
	ast, issues := b.env.Compile(expression)
	if issues != nil {
		r.Wrong = issues.String()
		return r
	}
	r.Type = ast.OutputType().String()
	program, err := b.env.Program(ast, cel.CostLimit(celconfig.PerCallLimit), cel.CostTracking(b.estimator),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		r.Wrong = "program instantiation failed: " + err.Error()
		return r
	}
	estimate, err := b.env.EstimateCost(ast, b.estimator)
	check(err)
	r.Static = estimate.Max
	for _, pair := range b.pairs {
		r.Values = append(r.Values, b.run(program, pair))
	}
	return r
}

func (b *bench) run(program cel.Program, pair [2]any) outcome {
	vars := map[string]any{
		"self":    schemacel.UnstructuredToVal(pair[0], b.schema),
		"oldSelf": schemacel.UnstructuredToVal(pair[1], b.schema),
	}
	value, details, err := program.ContextEval(context.Background(), vars)
	o := outcome{}
	if details != nil && details.ActualCost() != nil {
		o.Cost = *details.ActualCost()
	}
	if err != nil {
		o.Error = err.Error()
	} else {
		o.Value = canonical(value.(ref.Val))
	}
	return o
}

// Sizes by what is declared of `self`, and of nothing else.
type sizes struct{ root *apiservercel.DeclType }

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	at := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, known := at.Fields[name]
			if !known {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (s *sizes) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
