// What upstream's API server says of files for --encryption-provider-config, and values that it has sealed, as data that
// Rust tests replay.
//
//	GOFLAGS=-mod=mod GOPROXY=off go run . ../../../testdata/encryption
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	kmsapi "k8s.io/kms/apis/v2"
)

func main() {
	dir := os.Args[1]
	write(filepath.Join(dir, "configurations.json"), configurations())
	write(filepath.Join(dir, "values.json"), values())
}

func write(path string, content any) {
	text, err := json.MarshalIndent(content, "", " ")
	check(err)
	check(os.WriteFile(path, append(text, '\n'), 0o644))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"

// one makes a file with one entry.
func one(resources, providers string) string {
	return head + "resources:\n- resources: " + resources + "\n  providers: " + providers + "\n"
}

func key(bytes int) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", bytes)))
}

func keys(provider string, bytes int) string {
	return fmt.Sprintf("{%s: {keys: [{name: k1, secret: %q}]}}", provider, key(bytes))
}

func kms(fields string) string {
	return "{kms: {" + fields + "}}"
}

type configuration struct {
	Text   string `json:"text"`
	Reload bool   `json:"reload"`
	// Empty if the file is good.
	Error string `json:"error"`
}

func configurations() []configuration {
	box := keys("secretbox", 32)
	texts := []string{
		one("[secrets]", "["+box+"]"),
		one("[secrets]", "[{identity: {}}]"),
		one("['*.*']", "["+box+"]"),
		one("['*.']", "["+box+"]"),
		one("['*.apps']", "["+box+"]"),
		one("[secrets, deployments.apps, widgets.ex.io]", "["+box+", {identity: {}}]"),
		one("['*']", "["+box+"]"),
		one("[]", "["+box+"]"),
		one("[secrets]", "[]"),
		head + "resources: []\n",
		head,
		one("[secrets, secrets]", "["+box+"]"),
		one("[secrets, '*.']", "["+box+"]"),
		one("[deployments.apps, '*.apps']", "["+box+"]"),
		one("['*.*', secrets]", "["+box+"]"),
		one("['*.*', '*.apps']", "["+box+"]"),
		one("['*.*', '*.*']", "["+box+"]"),
		one("[secrets, secrets, '*.']", "["+box+"]"),
		one("[Secrets]", "["+box+"]"),
		one("[secrets.Ex.io]", "["+box+"]"),
		one("[events.events.k8s.io]", "["+box+"]"),
		one("['*.events.k8s.io']", "["+box+"]"),
		one("[ingresses.extensions]", "["+box+"]"),
		one("['secrets.*']", "["+box+"]"),
		one("[apiserveripinfo]", "["+box+"]"),
		one("[serviceipallocations, servicenodeportallocations]", "["+box+"]"),
		one("['']", "["+box+"]"),
		one("[secrets]", "[{}]"),
		one("[secrets]", "[{identity: {}, aescbc: {keys: []}}]"),
		one("[secrets]", "["+keys("aescbc", 16)+", "+keys("aesgcm", 24)+", "+keys("aesgcm", 32)+"]"),
		one("[secrets]", "["+keys("aescbc", 31)+"]"),
		one("[secrets]", "["+keys("aesgcm", 15)+"]"),
		one("[secrets]", "["+keys("secretbox", 16)+"]"),
		one("[secrets]", "["+keys("secretbox", 31)+"]"),
		one("[secrets]", "[{secretbox: {keys: []}}]"),
		one("[secrets]", "[{secretbox: {}}]"),
		one("[secrets]", "[{aescbc: {keys: [{name: '', secret: ''}]}}]"),
		one("[secrets]", "[{aescbc: {keys: [{name: k1, secret: ''}]}}]"),
		one("[secrets]", fmt.Sprintf("[{aescbc: {keys: [{secret: %q}]}}]", key(16))),
		one("[secrets]", "[{aesgcm: {keys: [{name: k1, secret: 'no base64!'}]}}]"),
		one("[secrets]", "[{aesgcm: {keys: [{name: k1, secret: 'no'}, {name: '', secret: 'bm8='}]}}]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///tmp/none.sock', timeout: 1ms")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: 'a:b', endpoint: 'unix:///tmp/none.sock'")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: '', endpoint: ''")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'https://a'")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'none'")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: 0s")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: -1s")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///a', cachesize: 3")+"]"),
		one("[secrets]", "["+kms("apiVersion: v3, name: a, endpoint: 'unix:///a'")+"]"),
		one("[secrets]", "["+kms("apiVersion: v1, name: a, endpoint: 'unix:///a'")+"]"),
		one("[secrets]", "["+kms("name: a, endpoint: 'unix:///a'")+"]"),
		one("[secrets]", "["+kms("apiVersion: v1, name: a, endpoint: 'unix:///a', cachesize: 0")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: 1ms")+", "+kms("apiVersion: v2, name: a, endpoint: 'unix:///b'")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: soon")+"]"),
		one("[secrets]", "["+kms("apiVersion: v2, name: a, endpoint: 'unix:///a', extra: 1")+"]"),
		head + "other: 1\n" + "resources:\n- resources: [secrets]\n  providers: [" + box + "]\n",
		one("secrets", "["+box+"]"),
		one("[1]", "["+box+"]"),
		strings.Replace(one("[secrets]", "["+box+"]"), "/v1\n", "/v1alpha1\n", 1),
		strings.Replace(one("[secrets]", "["+box+"]"), "kind: EncryptionConfiguration", "kind: Other", 1),
		"a: b\n",
		"",
		head + "resources:\n- resources: ['*.']\n  providers: [" + box + "]\n- resources: [secrets]\n  providers: [" + box + "]\n",
		head + "resources:\n- resources: ['*.*']\n  providers: [" + box + "]\n- resources: [deployments.apps]\n  providers: [" + box + "]\n",
		head + "resources:\n- resources: ['*.*']\n  providers: [" + box + "]\n- resources: ['*.']\n  providers: [" + box + "]\n",
		head + "resources:\n- resources: ['*.*']\n  providers: [" + box + "]\n- resources: ['*.*']\n  providers: [" + box + "]\n",
		head + "resources:\n- resources: ['*.apps']\n  providers: [" + box + "]\n- resources: ['*.apps']\n  providers: [" + box + "]\n",
		head + "resources:\n- resources: [secrets]\n  providers: [" + box + "]\n- resources: ['*.']\n  providers: [" + box + "]\n- resources: ['*.*']\n  providers: [{identity: {}}]\n",
		head + "resources:\n- resources: [secrets]\n  providers: [" + box + "]\n- resources: [secrets]\n  providers: [{identity: {}}]\n",
		head + "resources:\n- resources: []\n  providers: []\n- resources: ['*', A, a.events.k8s.io]\n  providers: [{}, " + keys("aescbc", 3) + "]\n",
	}
	var cases []configuration
	for _, text := range texts {
		for _, reload := range []bool{false, true} {
			if reload && !strings.Contains(text, "kms") {
				continue
			}
			cases = append(cases, configuration{text, reload, load(text, reload)})
		}
	}
	return cases
}

// load returns what upstream says of a file, whose path is FILE.
func load(text string, reload bool) string {
	file := filepath.Join(os.TempDir(), "encryption.yaml")
	check(os.WriteFile(file, []byte(text), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := encryptionconfig.LoadEncryptionConfig(ctx, file, reload, "server"); err != nil {
		return strings.ReplaceAll(err.Error(), file, "FILE")
	}
	return ""
}

type sealed struct {
	// The kind of provider, and the key in base64. Of KMS, the seed is what its wrapped form says.
	Provider string `json:"provider"`
	Secret   string `json:"secret,omitempty"`
	// The row's key.
	Path  string `json:"path"`
	Plain string `json:"plain"`
	// In base64.
	Stored string `json:"stored"`
}

// plugin "wraps" by turning the bytes round.
type plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
}

func turned(bytes []byte) []byte {
	out := make([]byte, len(bytes))
	for i, b := range bytes {
		out[len(bytes)-1-i] = b
	}
	return out
}

func (plugin) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "key-1"}, nil
}

func (plugin) Encrypt(_ context.Context, request *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	return &kmsapi.EncryptResponse{Ciphertext: turned(request.Plaintext), KeyId: "key-1", Annotations: map[string][]byte{"turned.example.com": []byte("yes"), "a.example.com": {0, 1}}}, nil
}

func (plugin) Decrypt(_ context.Context, request *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	return &kmsapi.DecryptResponse{Plaintext: turned(request.Ciphertext)}, nil
}

func values() []sealed {
	socket := filepath.Join(os.TempDir(), "encryption-kms.sock")
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	check(err)
	server := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(server, plugin{})
	go func() { check(server.Serve(listener)) }()
	defer server.Stop()

	var all []sealed
	seal := func(provider, secret, element string) {
		file := filepath.Join(os.TempDir(), "encryption.yaml")
		check(os.WriteFile(file, []byte(one("[secrets]", "["+element+"]")), 0o600))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, file, false, "server")
		check(err)
		transformer := loaded.Transformers[schema.GroupResource{Resource: "secrets"}]
		for index, length := range []int{0, 1, 15, 16, 17, 31, 32, 33, 64, 1000} {
			if provider == "kms" && length == 0 {
				// Upstream refuses nothing here; its own check of "encrypted data is empty" is about the ciphertext.
				length = 2
			}
			plain := strings.Repeat("Secret! ", 200)[:length]
			path := fmt.Sprintf("/registry/secrets/ns/name-%d", index)
			stored, err := transformer.TransformToStorage(ctx, []byte(plain), value.DefaultContext(path))
			check(err)
			all = append(all, sealed{provider, secret, path, plain, base64.StdEncoding.EncodeToString(stored)})
		}
	}
	for _, bytes := range []int{16, 24, 32} {
		for _, provider := range []string{"aescbc", "aesgcm"} {
			seal(provider, key(bytes), keys(provider, bytes))
		}
	}
	seal("secretbox", key(32), keys("secretbox", 32))
	seal("kms", "", kms("apiVersion: v2, name: turns, endpoint: 'unix://"+socket+"'"))
	return all
}
