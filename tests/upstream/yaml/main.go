// What sigs.k8s.io/yaml makes of random documents, and Go's package time, as metav1.Time and metav1.MicroTime call it, of
// random times. From this folder:
//
//	go run . -seed 1 ../../../testdata/yaml
//
// writes documents.jsonl.gz and times.jsonl.gz.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// A document, and what becomes of it: JSON, or an error. Strict is the error of strict decoding where only that fails.
type document struct {
	Text   string          `json:"text,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
	JSON   json.RawMessage `json:"json,omitempty"`
	Error  string          `json:"error,omitempty"`
	Strict string          `json:"strict,omitempty"`
}

func main() {
	seed := flag.Int64("seed", 1, "of the random numbers")
	count := flag.Int("count", 6000, "how many of each kind")
	flag.Parse()
	random := rand.New(rand.NewSource(*seed))
	write(flag.Arg(0), "documents.jsonl.gz", documents(random, *count))
	write(flag.Arg(0), "times.jsonl.gz", times(random, *count/2))
}

func documents(random *rand.Rand, count int) []any {
	var lines []any
	for _, text := range fixed {
		lines = append(lines, judged([]byte(text)))
	}
	for len(lines) < count {
		maker := &maker{Rand: random}
		text := []byte(maker.document())
		if random.Intn(4) == 0 {
			text = emission(random)
		}
		if line := judged(text); line != nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// The document with its verdict; nil if upstream's answer is not the same each time, as with the keys 1 and "1".
func judged(text []byte) *document {
	line := document{Text: string(text)}
	if again, _ := json.Marshal(line.Text); !bytes.Equal(unquoted(again), text) {
		line = document{Bytes: text}
	}
	var failed error
	for range 8 {
		found, err := yaml.YAMLToJSON(text)
		if line.JSON != nil && !bytes.Equal(line.JSON, found) || failed != nil && err == nil ||
			failed != nil && failed.Error() != err.Error() {
			return nil
		}
		line.JSON, failed = found, err
	}
	if failed != nil {
		line.Error = failed.Error()
	} else if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		line.Strict = err.Error()
	}
	return &line
}

func unquoted(text []byte) []byte {
	var found string
	if err := json.Unmarshal(text, &found); err != nil {
		panic(err)
	}
	return []byte(found)
}

// What upstream itself writes for a random value.
func emission(random *rand.Rand) []byte {
	maker := &maker{Rand: random}
	text, err := json.Marshal(maker.value(3))
	check(err)
	out, err := yaml.JSONToYAML(text)
	if err != nil {
		return text
	}
	return out
}

func write(folder, name string, lines []any) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	check(err)
	for _, line := range lines {
		out := json.NewEncoder(zip)
		out.SetEscapeHTML(false)
		check(out.Encode(line))
	}
	check(zip.Close())
	check(os.MkdirAll(folder, 0o755))
	check(os.WriteFile(filepath.Join(folder, name), packed.Bytes(), 0o644))
	fmt.Println(len(lines), "lines,", packed.Len(), "bytes:", name)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
