package rowplane

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const branches = "/rowplane/v1/branches"

// Cluster is a cluster of a test: a server, or a fork of one. Its methods fail the test with the server's own words.
type Cluster struct {
	// URL is the address of the API.
	URL string
	// CA is the path of the certificate (PEM) that vouches for the server's.
	CA string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string

	connection *connection
	directory  string
	// The path of the cluster on its server.
	path string
}

// Snapshot is a cluster as it was at one time.
type Snapshot struct {
	Name     string `json:"name"`
	Revision string `json:"revision"`
	cluster  *Cluster
}

// Error is the refusal of a server, in its own words.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// The administrator's requests to a server.
type connection struct {
	client *http.Client
	url    string
}

func connect(url, ca string) (*connection, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	pki := filepath.Dir(ca)
	own, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	transport := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true}
	return &connection{client: &http.Client{Transport: transport}, url: url}, nil
}

func (c *connection) ask(method, path, media string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", media)
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < 300 {
		return said, nil
	}
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(said, &status) != nil || status.Message == "" {
		status.Message = fmt.Sprintf("the server answers %d", answer.StatusCode)
	}
	return nil, &Error{Code: answer.StatusCode, Message: status.Message}
}

func (c *connection) askJSON(method, path string, body, into any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	said, err := c.ask(method, path, "application/json", sent)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(said, into)
}

func (c *Cluster) endpoint(rest string) string { return c.path + branches + "/-/" + rest }

func (c *Cluster) tell(t testing.TB, method, rest string, body, into any) {
	t.Helper()
	if err := c.connection.askJSON(method, c.endpoint(rest), body, into); err != nil {
		t.Fatal(err)
	}
}

func named(kind string) string {
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	return kind + "-" + hex.EncodeToString(random)
}

// Snapshot takes the cluster as it is now, to be forked and to go back to.
func (c *Cluster) Snapshot(t testing.TB) *Snapshot {
	t.Helper()
	snapshot, err := c.TakeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// TakeSnapshot is Snapshot for TestMain.
func (c *Cluster) TakeSnapshot() (*Snapshot, error) {
	snapshot := &Snapshot{cluster: c}
	wanted := map[string]string{"name": named("snapshot")}
	return snapshot, c.connection.askJSON("POST", c.path+"/rowplane/v1/snapshots", wanted, snapshot)
}

// Fork makes a cluster that begins as this one is now, and writes beside it. It ends with the test.
func (c *Cluster) Fork(t testing.TB) *Cluster {
	t.Helper()
	return c.fork(t, "")
}

// Fork makes a cluster that begins as the snapshot, and writes beside it. It ends with the test. Nothing leaves it: no webhook
// is called, and no kubelet.
func (s *Snapshot) Fork(t testing.TB) *Cluster {
	t.Helper()
	return s.cluster.fork(t, s.Name)
}

func (c *Cluster) fork(t testing.TB, snapshot string) *Cluster {
	t.Helper()
	wanted := map[string]string{"name": named("fork"), "secrets": "keep"}
	if snapshot != "" {
		wanted["from"] = snapshot
	}
	var made struct{ Name, Path string }
	if err := c.connection.askJSON("POST", c.path+branches, wanted, &made); err != nil {
		t.Fatal(err)
	}
	fork := &Cluster{
		URL:        c.URL + made.Path,
		CA:         c.CA,
		Kubeconfig: filepath.Join(c.directory, named(made.Name)+".kubeconfig"),
		connection: c.connection,
		directory:  c.directory,
		path:       c.path + made.Path,
	}
	t.Cleanup(func() {
		_ = os.Remove(fork.Kubeconfig)
		// A fork of a fork may have ended with it.
		_, _ = c.connection.ask("DELETE", c.path+branches+"/"+made.Name, "", nil)
	})
	kubeconfig, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(kubeconfig), "server: "+c.URL+"\n", "server: "+fork.URL+"\n", 1)
	if err := os.WriteFile(fork.Kubeconfig, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	return fork
}

// Reset makes everything what it is in a snapshot. Uids are those of then, resourceVersions go on, and watches end (410), so
// that informers list anew.
func (c *Cluster) Reset(t testing.TB, to *Snapshot) {
	t.Helper()
	c.tell(t, "POST", "reset", map[string]string{"to": to.Name}, nil)
}

// Seed creates or replaces objects in one transaction, with the status, uids and times that they have. They are neither
// validated nor admitted. An object is anything that is one as JSON, with its kind and apiVersion.
func (c *Cluster) Seed(t testing.TB, objects ...any) {
	t.Helper()
	if err := c.Put(objects...); err != nil {
		t.Fatal(err)
	}
}

// Put is Seed for TestMain.
func (c *Cluster) Put(objects ...any) error {
	list := map[string]any{"kind": "List", "apiVersion": "v1", "items": objects}
	return c.connection.askJSON("PUT", c.endpoint("objects"), list, nil)
}

// SeedFile is Seed for the objects of a file, as YAML or JSON.
func (c *Cluster) SeedFile(t testing.TB, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		_, err = c.connection.ask("PUT", c.endpoint("objects"), "application/yaml", content)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Advance sets the cluster's time ahead: that of creations and deletions, by which Events and tokens expire. Certificates go by
// the system's time as ever.
func (c *Cluster) Advance(t testing.TB, by time.Duration) {
	t.Helper()
	c.tell(t, "POST", "time", map[string]string{"advance": by.String()}, nil)
}

// Freeze lets the cluster's time stand still, until Unfreeze.
func (c *Cluster) Freeze(t testing.TB, at time.Time) {
	t.Helper()
	c.tell(t, "POST", "time", map[string]string{"freeze": at.UTC().Format(time.RFC3339Nano)}, nil)
}

// Unfreeze lets the cluster's time run again.
func (c *Cluster) Unfreeze(t testing.TB) {
	t.Helper()
	c.tell(t, "POST", "time", map[string]bool{"run": true}, nil)
}

// Match says which requests a fault strikes; empty fields say nothing.
type Match struct {
	Verb string `json:"verb,omitempty"`
	// Resource is like pods, deployments.apps or pods/status.
	Resource string `json:"resource,omitempty"`
	User     string `json:"user,omitempty"`
}

// Fault makes requests fail, or late.
type Fault struct {
	Match Match
	// Code is 409, 429 or 500; 0 leaves the answer to the server.
	Code int
	// Close breaks the answer off.
	Close bool
	Delay time.Duration
	// Skip is how many requests that match pass before.
	Skip int
	// Count is how many requests it strikes; 0 for all.
	Count int
	// Probability is the share of requests that it strikes, of those that match; 0 for all.
	Probability float64
}

// Fault sets a fault.
func (c *Cluster) Fault(t testing.TB, fault Fault) {
	t.Helper()
	wanted := map[string]any{"match": fault.Match, "skip": fault.Skip}
	switch {
	case fault.Close:
		wanted["answer"] = map[string]any{"code": "close"}
	case fault.Code != 0:
		wanted["answer"] = map[string]any{"code": fault.Code}
	}
	if fault.Delay != 0 {
		wanted["delay"] = fault.Delay.String()
	}
	if fault.Count != 0 {
		wanted["count"] = fault.Count
	}
	if fault.Probability != 0 {
		wanted["probability"] = fault.Probability
	}
	c.tell(t, "POST", "faults", wanted, nil)
}

// ClearFaults ends all faults.
func (c *Cluster) ClearFaults(t testing.TB) {
	t.Helper()
	c.tell(t, "DELETE", "faults", nil, nil)
}

// Request is a request that was recorded.
type Request struct {
	Number    int       `json:"number"`
	Time      time.Time `json:"time"`
	User      string    `json:"user"`
	UserAgent string    `json:"userAgent"`
	Verb      string    `json:"verb"`
	Path      string    `json:"path"`
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Code      int       `json:"code"`
	// Revision is that of the object that was answered.
	Revision string `json:"revision"`
	// Request and Response are the objects, if they were sent as JSON.
	Request  map[string]any `json:"request"`
	Response map[string]any `json:"response"`
}

// Filter says which requests are asked for; empty fields say nothing.
type Filter struct {
	// Since is the number of a request: those after it are asked for.
	Since                int
	User, Verb, Resource string
}

// RecordRequests begins to record requests, of which the last 10,000 are kept.
func (c *Cluster) RecordRequests(t testing.TB) {
	t.Helper()
	c.tell(t, "POST", "requests", map[string]bool{"record": true}, nil)
}

// Requests are those that were recorded, oldest first.
func (c *Cluster) Requests(t testing.TB, filter Filter) []Request {
	t.Helper()
	query := url.Values{"since": {strconv.Itoa(filter.Since)}}
	for name, value := range map[string]string{"user": filter.User, "verb": filter.Verb, "resource": filter.Resource} {
		if value != "" {
			query.Set(name, value)
		}
	}
	said, err := c.connection.ask("GET", c.endpoint("requests")+"?"+query.Encode(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var requests []Request
	for decoder := json.NewDecoder(bytes.NewReader(said)); decoder.More(); {
		var request Request
		if err := decoder.Decode(&request); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, request)
	}
	return requests
}

// CloseWatches ends the watches of a resource, or all for an empty one, as if their time were over. It returns how many there
// were.
func (c *Cluster) CloseWatches(t testing.TB, resource string) int {
	t.Helper()
	wanted := map[string]string{}
	if resource != "" {
		wanted["resource"] = resource
	}
	var closed struct{ Ended int }
	c.tell(t, "POST", "watches/close", wanted, &closed)
	return closed.Ended
}

// ExpireWatches ends all watches with 410 Expired, and gives up the history before.
func (c *Cluster) ExpireWatches(t testing.TB) {
	t.Helper()
	c.tell(t, "POST", "watches/compact", map[string]string{}, nil)
}

// Quiet waits until nothing was written for 200 ms; the test fails after ten seconds.
func (c *Cluster) Quiet(t testing.TB) {
	t.Helper()
	c.tell(t, "GET", "quiet", nil, nil)
}
