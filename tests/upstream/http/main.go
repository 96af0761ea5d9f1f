// Asks Go's net/http what it makes of raw exchanges over HTTP/1, for rowplane's server (src/http/server/heads.rs) and its client
// of webhooks and issuers (crates/store/src/webhook/link.rs) to compare with.
//
//	go run ./http ../../testdata/http
//
// draws requests at random from parts that clients send and from parts that nobody should send, and writes for each what
// Go's server answers, and what its handler sees of the request; and the same for answers and Go's client.
package main

import (
	"compress/gzip"
	"encoding/json"
	"log"
	"math/rand"
	"os"
	"path/filepath"
)

var draw = rand.New(rand.NewSource(1))

func one(texts ...string) string { return texts[draw.Intn(len(texts))] }

// mostly is the first text, but for one time in n.
func mostly(n int, usual string, texts ...string) string {
	if draw.Intn(n) > 0 {
		return usual
	}
	return one(texts...)
}

// latin1 is a text whose characters are bytes.
func latin1(bytes string) string {
	runes := make([]rune, len(bytes))
	for at := range len(bytes) {
		runes[at] = rune(bytes[at])
	}
	return string(runes)
}

func write(path string, cases any) {
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	packed, _ := gzip.NewWriterLevel(file, gzip.BestCompression)
	encoder := json.NewEncoder(packed)
	encoder.SetEscapeHTML(false)
	for _, err := range []error{encoder.Encode(cases), packed.Close(), file.Close()} {
		if err != nil {
			log.Fatal(err)
		}
	}
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: http DIR")
	}
	write(filepath.Join(os.Args[1], "server.json.gz"), serverCases(1000))
	write(filepath.Join(os.Args[1], "client.json.gz"), clientCases(1000))
}
