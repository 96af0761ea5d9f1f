// Loads an etcd with puts, each client waiting for its own: the yardstick of benches/storage.rs.
//
// Prints one line per number of clients: clients, puts per second, p50, p99 and max in microseconds.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// As kube-apiserver does it: many requests share few connections.
const clientsPerConnection = 16

func main() {
	endpoint := flag.String("endpoint", "127.0.0.1:2379", "the etcd to load")
	clients := flag.String("clients", "1,16,128", "numbers of concurrent clients")
	size := flag.Int("size", 2048, "bytes of a value")
	keys := flag.Int("keys", 1000, "keys of one client")
	duration := flag.Duration("duration", 5*time.Second, "how long each number of clients runs")
	flag.Parse()

	value := string(bytes.Repeat([]byte("x"), *size))
	for _, text := range strings.Split(*clients, ",") {
		number, err := strconv.Atoi(text)
		if err != nil {
			log.Fatal(err)
		}
		latencies, elapsed := load(*endpoint, number, *keys, value, *duration)
		slices.Sort(latencies)
		at := func(share float64) int64 {
			return latencies[int(share*float64(len(latencies)-1))].Microseconds()
		}
		rate := float64(len(latencies)) / elapsed.Seconds()
		fmt.Printf("%d %.0f %d %d %d\n", number, rate, at(0.5), at(0.99), at(1))
	}
}

func load(endpoint string, clients, keys int, value string, duration time.Duration) ([]time.Duration, time.Duration) {
	var connections []*clientv3.Client
	for range (clients + clientsPerConnection - 1) / clientsPerConnection {
		connection, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
		if err != nil {
			log.Fatal(err)
		}
		defer connection.Close()
		connections = append(connections, connection)
	}
	each := make([][]time.Duration, clients)
	var all sync.WaitGroup
	start := time.Now()
	for client := range clients {
		all.Go(func() {
			each[client] = put(connections[client%len(connections)], client, keys, value, start.Add(duration))
		})
	}
	all.Wait()
	return slices.Concat(each...), time.Since(start)
}

func put(connection *clientv3.Client, client, keys int, value string, end time.Time) []time.Duration {
	var latencies []time.Duration
	for n := 0; ; n++ {
		started := time.Now()
		if started.After(end) {
			return latencies
		}
		key := fmt.Sprintf("/registry/things/ns/%d-%d", client, n%keys)
		if _, err := connection.Put(context.Background(), key, value); err != nil {
			log.Fatal(err)
		}
		latencies = append(latencies, time.Since(started))
	}
}
