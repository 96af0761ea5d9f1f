// Says how upstream prints generated columns of generated custom resources: a line of JSON for each, for
// crates/objects/src/kinds/behavior/columns/custom/tests.rs.
//
//	cd tests/upstream && go run ./columns | gzip -9n >../../testdata/columns/upstream.jsonl.gz
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type answer struct {
	Type string          `json:"type"`
	Path string          `json:"path"`
	Now  string          `json:"now"`
	Sent json.RawMessage `json:"object"`
	// Whether the column is shown at all.
	Shown bool        `json:"shown"`
	Cell  interface{} `json:"cell"`
}

var types = []string{"string", "string", "string", "integer", "number", "boolean", "date"}

var names = []string{"spec", "status", "list", "deep", "a.b", "x", "size", "ready", "when", "text", "empty", "nil", "conditions", "type"}

func main() {
	log.SetFlags(0)
	source := rand.New(rand.NewSource(15))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for made := 0; made < 6000; {
		object, err := json.Marshal(randomObject(source))
		must(err)
		for n := 0; n < 4; n++ {
			found, ok := ask(types[source.Intn(len(types))], randomPath(source), object)
			if ok {
				must(out.Encode(found))
				made++
			}
		}
	}
}

// What upstream answers, unless that depends on the order of a map.
func ask(columnType, path string, sent []byte) (answer, bool) {
	var first string
	var found answer
	for n := 0; n < 4; n++ {
		found = answer{Type: columnType, Path: path, Sent: sent, Now: time.Now().UTC().Format(time.RFC3339)}
		convertor, err := tableconvertor.New([]v1.CustomResourceColumnDefinition{{Name: "C", Type: columnType, JSONPath: path}})
		found.Shown = err == nil
		if err == nil {
			object := &unstructured.Unstructured{}
			must(object.UnmarshalJSON(sent))
			table, err := convertor.ConvertToTable(context.Background(), object, nil)
			must(err)
			found.Cell = table.Rows[0].Cells[1]
		}
		text, err := json.Marshal(found.Cell)
		must(err)
		if n > 0 && string(text) != first {
			return found, false
		}
		first = string(text)
	}
	return found, true
}

func randomObject(source *rand.Rand) map[string]interface{} {
	object := map[string]interface{}{"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": map[string]interface{}{"name": "w"}}
	object["spec"] = randomMap(source, 3)
	object["status"] = randomMap(source, 3)
	status := object["status"].(map[string]interface{})
	status["conditions"] = []interface{}{
		map[string]interface{}{"type": "Synced", "status": "False", "size": 1},
		map[string]interface{}{"type": "Ready", "status": randomValue(source, 1), "size": randomValue(source, 0)},
	}
	return object
}

func randomMap(source *rand.Rand, depth int) map[string]interface{} {
	object := map[string]interface{}{}
	for n := source.Intn(7); n > 0; n-- {
		object[names[source.Intn(len(names))]] = randomValue(source, depth-1)
	}
	return object
}

func randomValue(source *rand.Rand, depth int) interface{} {
	switch n := source.Intn(18); {
	case n == 0:
		return nil
	case n == 1:
		return source.Intn(2) == 0
	case n == 2:
		return source.Intn(2000) - 1000
	case n == 3:
		return source.NormFloat64() * []float64{1, 1e-7, 1e6, 1e22}[source.Intn(4)]
	case n == 4:
		return json.Number("9223372036854775808")
	case n == 5:
		return ""
	case n == 6:
		return "a<b>&c \"quoted\" é"
	case n == 7:
		// In the middle of a unit, so that the cell is the same when it is asked for again.
		distance := []time.Duration{45 * time.Second, 150*time.Minute + 30*time.Second, 30*24*time.Hour + 12*time.Hour}[source.Intn(3)]
		return time.Now().Add(-distance).UTC().Format(time.RFC3339)
	case n == 8:
		return []string{"soon", "2020-13-01T00:00:00Z", "null", "2020-01-01", "0001-01-01T00:00:00Z"}[source.Intn(5)]
	case n == 9:
		return "Ready"
	case n < 14 && depth > 0:
		return randomMap(source, depth)
	case n < 17 && depth > 0:
		list := []interface{}{}
		for n := source.Intn(4); n > 0; n-- {
			list = append(list, randomValue(source, depth-1))
		}
		return list
	}
	return []interface{}{"x", "10", 3, true, int64(9007199254740993)}[source.Intn(5)]
}

func randomPath(source *rand.Rand) string {
	path := []string{".spec", ".status", ".metadata.name", ".status.conditions", ""}[source.Intn(5)]
	for n := source.Intn(4); n > 0; n-- {
		path += step(source)
	}
	if source.Intn(25) == 0 && path != "" {
		at := source.Intn(len(path))
		path = path[:at] + []string{"[", "]", "'", "}", "{", " ", ")", "\\", "..", "@", "+", "é", "#"}[source.Intn(13)] + path[at:]
	}
	if !strings.HasPrefix(path, ".") {
		return "." + path
	}
	return path
}

func step(source *rand.Rand) string {
	name := names[source.Intn(len(names))]
	switch source.Intn(14) {
	case 0:
		return fmt.Sprintf("[%d]", source.Intn(5)-2)
	case 1:
		return "[*]"
	case 2:
		return fmt.Sprintf("[%d:%d]", source.Intn(5)-2, source.Intn(5)-2)
	case 3:
		return fmt.Sprintf("[%d:%d:%d]", source.Intn(3), source.Intn(4), source.Intn(3))
	case 4:
		return fmt.Sprintf("['%s']", strings.ReplaceAll(name, ".", "\\."))
	case 5:
		return ".." + name
	case 6:
		return ".*"
	case 7:
		return fmt.Sprintf("[?(@.%s)]", name)
	case 8, 9:
		operator := []string{"==", "!=", "<", ">", "<=", ">=", "=", "=!"}[source.Intn(8)]
		value := []string{"\"Ready\"", "'Ready'", "1", "1.5", "true", "@.status", "\"a\\\"b\"", "\"\"", "'\\x41'"}[source.Intn(9)]
		return fmt.Sprintf("[?(@.%s%s%s)].%s", []string{"type", "size", name}[source.Intn(3)], operator, value, []string{"status", "size", name}[source.Intn(3)])
	case 10:
		return fmt.Sprintf("[%d,%d]", source.Intn(3), source.Intn(3))
	}
	return "." + strings.ReplaceAll(name, ".", "\\.")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
