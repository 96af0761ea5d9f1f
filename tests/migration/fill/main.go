// Fill writes copies of one key of an etcd beside it, each at a revision of its own:
//
//	fill ENDPOINT KEY COUNT
//
// In the copies, the last part of KEY is replaced by names of the same length, in the value too.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const writers = 128

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: fill ENDPOINT KEY COUNT")
	}
	count, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: os.Args[1:2]})
	if err != nil {
		log.Fatal(err)
	}
	ctx, key := context.Background(), os.Args[2]
	found, err := client.Get(ctx, key)
	if err != nil || len(found.Kvs) != 1 {
		log.Fatalf("%s: %v", key, err)
	}
	value, name := found.Kvs[0].Value, path.Base(key)
	var next atomic.Int64
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for at := next.Add(1); at <= count; at = next.Add(1) {
				copied := fmt.Sprintf("%0*d", len(name), at)
				copy := bytes.ReplaceAll(value, []byte(name), []byte(copied))
				if _, err := client.Put(ctx, path.Dir(key)+"/"+copied, string(copy)); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	group.Wait()
}
