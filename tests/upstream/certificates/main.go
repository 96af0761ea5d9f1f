// Certificates by the hundred, and what Go says of them: chains that crypto/x509 verifies with the options of kube-apiserver
// (clients) and of its HTTP clients (servers), and requests that k8s.io/kubernetes' ParseCSR reads.
//
//	go run . ../../../testdata/certificates
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
)

func main() {
	random = rand.New(rand.NewPCG(42, 2))
	for _, kind := range kinds {
		keys[kind] = []key{newKey(kind), newKey(kind)}
	}
	write("chains.json.gz", chains(1400))
	write("requests.json.gz", requests(700))
}

func write(name string, value any) {
	var out bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	encoder := json.NewEncoder(zip)
	encoder.SetEscapeHTML(false)
	must(0, encoder.Encode(value))
	must(0, zip.Close())
	must(0, os.MkdirAll(os.Args[1], 0o755))
	must(0, os.WriteFile(filepath.Join(os.Args[1], name), out.Bytes(), 0o644))
}
