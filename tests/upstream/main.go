// Upstream compares rowplane with upstream's own code on random objects (tests/upstream/run).
//
//	upstream -peer PATH [-seed N] [-count N] transcode|apply|strategic|cases
//
// Every difference is printed; any makes it fail.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"rowplane/tests/upstream/peer"
)

type comparison struct {
	scheme      *runtime.Scheme
	peer        *peer.Peer
	seed        int64
	count       int
	compared    int
	differences int
	panics      int
	known       int
}

var comparisons = map[string]func(*comparison) error{
	"transcode": transcode,
	"apply":     apply,
	"strategic": strategic,
	"cases":     applyCases,
}

func main() {
	log.SetFlags(0)
	path := flag.String("peer", "", "the built example peer")
	seed := flag.Int64("seed", 1, "where random objects start")
	count := flag.Int("count", 20, "how many of each kind")
	flag.Parse()
	compare := comparisons[flag.Arg(0)]
	if compare == nil || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	asked, err := peer.Start(*path)
	if err != nil {
		log.Fatal(err)
	}
	run := &comparison{peer: asked, seed: *seed, count: *count}
	if err := compare(run); err != nil {
		log.Fatal(err)
	}
	if err := asked.Close(); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d compared, %d differences, %d of a known sort, %d panics upstream",
		flag.Arg(0), run.compared, run.differences, run.known, run.panics)
	if run.differences > 0 || run.compared == 0 {
		os.Exit(1)
	}
}

// differ reports one difference.
func (c *comparison) differ(what string, input any, upstream, rowplane any) {
	c.differences++
	if c.differences > 30 {
		return
	}
	text := func(value any) string {
		encoded, err := peer.Encode(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		return string(encoded)
	}
	log.Printf("--- %s\n    input    %s\n    upstream %s\n    rowplane %s", what, text(input), text(upstream), text(rowplane))
}
