package outside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

var (
	storesMu sync.Mutex
	stores   = map[string]string{} // rowplane's, by etcd's servers and prefix
)

// store adds where the data are, which servers with the same prefix share, at a time or one after another.
func (o Options) store(defaults map[string]string) error {
	if Upstream() {
		defaults["etcd-servers"] = strings.Join(o.EtcdServers, ",")
		defaults["etcd-prefix"] = "/" + strings.TrimPrefix(o.EtcdPrefix, "/")
		return nil
	}
	storesMu.Lock()
	defer storesMu.Unlock()
	key := strings.Join(append(o.EtcdServers, o.EtcdPrefix), " ")
	if stores[key] == "" {
		made, err := newStore(len(stores))
		if err != nil {
			return err
		}
		stores[key] = made
	}
	defaults["datastore"] = stores[key]
	return nil
}

// newStore is a database of the PostgreSQL server that with-postgres has started, or a file of SQLite, which one server uses at a time.
func newStore(number int) (string, error) {
	server := os.Getenv("ROWPLANE_TEST_POSTGRES")
	if server == "" {
		dir, err := os.MkdirTemp("", "outside-data")
		return "sqlite:" + filepath.Join(dir, "state.db"), err
	}
	name := fmt.Sprintf("outside_%d_%d", os.Getpid(), number)
	if text, err := exec.Command("psql", "-qc", "CREATE DATABASE "+name, server).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return server[:strings.LastIndex(server, "/")+1] + name, nil
}
