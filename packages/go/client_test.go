package rowplane_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	rowplane "github.com/rowplane/rowplane/packages/go"
)

type object struct {
	Metadata struct{ Name, CreationTimestamp string }
	Items    []object
}

// A request of the administrator, whatever the answer.
func ask(t *testing.T, cluster *rowplane.Cluster, method, path string, body any) (int, object) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	pem, err := os.ReadFile(cluster.CA)
	fail(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	pki := filepath.Dir(cluster.CA)
	own, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	fail(err)
	settings := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}}
	sent, err := json.Marshal(body)
	fail(err)
	if body == nil {
		sent = nil
	}
	request, err := http.NewRequest(method, cluster.URL+path, bytes.NewReader(sent))
	fail(err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	fail(err)
	defer func() { _ = answer.Body.Close() }()
	var read object
	fail(json.NewDecoder(answer.Body).Decode(&read))
	return answer.StatusCode, read
}
