// Package outside starts an API server as a process of its own for tests that were written for one within theirs. SERVER names
// the program: rowplane, or kube-apiserver, which is asked where rowplane fails.
package outside

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
)

// Token is of a user that may do everything.
const Token = "outside"

// T is what is needed of a test.
type T interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Upstream tells whether the real kube-apiserver is started.
func Upstream() bool { return filepath.Base(os.Getenv("SERVER")) == "kube-apiserver" }

// Leave skips a test that cannot be asked of a rowplane outside; compare.py wants the reason listed.
func Leave(t T, reason string, args ...any) {
	t.Helper()
	t.Skipf("OUTSIDE: "+reason, args...)
}

// Options say what the server shall be like.
type Options struct {
	Dir         string   // for certificates, tokens and data
	Flags       []string // in kube-apiserver's words, without etcd's
	EtcdServers []string
	EtcdPrefix  string // servers with the same one share their data
	Clients     bool   // with authorities for clients' certificates and front proxies
	Front       *Authority
	FrontNames  []string
	Unready     bool // not waited for until it is ready
}

// Server is one that runs.
type Server struct {
	Config      *rest.Config
	Port        int
	Certificate string // its file
	Stop        func()
}

// Start starts a server and waits until it serves.
func Start(t T, o Options) (*Server, error) {
	t.Helper()
	if !Upstream() {
		if found := etcdInTest(); found != "" {
			Leave(t, "etcd's own client (%s)", found)
		}
	}
	byFlags, given := gatesIn(o.Flags)
	given, defaults := o.accounts(given)
	if version := utilfeature.DefaultMutableFeatureGate.EmulationVersion(); version != nil && version.Minor() != 37 {
		if !Upstream() {
			Leave(t, "the server's process inside: it emulates %s", version)
		}
		if _, set := flag(given, "emulated-version"); !set {
			defaults["emulated-version"] = fmt.Sprintf("kube=%d.%d", version.Major(), version.Minor())
			defaults["runtime-config-emulation-forward-compatible"] = "true"
		}
	}
	var gates []string
	for name, on := range wanted(byFlags) {
		if !Upstream() && elsewhere[name] {
			continue
		}
		if !Upstream() && !switchable[name] {
			Leave(t, "the server's process inside: it switches %s=%v", name, on)
		}
		gates = append(gates, fmt.Sprintf("%s=%v", name, on))
	}
	if len(gates) > 0 {
		sort.Strings(gates)
		defaults["feature-gates"] = strings.Join(gates, ",")
	}
	port := freePort()
	o.serving(given, defaults, port)
	if o.Clients {
		o.clients(defaults)
	}
	if err := o.store(defaults); err != nil {
		return nil, err
	}
	var all []string
	for name, value := range defaults {
		if _, set := flag(given, name); !set {
			all = append(all, "--"+name+"="+value)
		}
	}
	sort.Strings(all)
	certificate := filepath.Join(o.Dir, "apiserver.crt")
	tls := rest.TLSClientConfig{CAData: shared().serving}
	if path, _ := flag(given, "tls-cert-file"); path != "" {
		certificate, tls = path, rest.TLSClientConfig{Insecure: true}
	}
	running := &Server{Port: port, Certificate: certificate, Config: &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: Token, TLSClientConfig: tls,
		ContentConfig:      rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		DisableCompression: true, QPS: 1000, Burst: 10000,
	}}
	return running, running.run(t, append(all, given...), o.Unready)
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// flag is the last value of a flag.
func flag(flags []string, name string) (value string, set bool) {
	for at, one := range flags {
		if rest, is := strings.CutPrefix(one, "--"+name+"="); is {
			value, set = rest, true
		} else if one == "--"+name && at+1 < len(flags) {
			value, set = flags[at+1], true
		}
	}
	return value, set
}

func without(flags []string, name string) (left []string) {
	for at := 0; at < len(flags); at++ {
		if flags[at] == "--"+name {
			at++
		} else if !strings.HasPrefix(flags[at], "--"+name+"=") {
			left = append(left, flags[at])
		}
	}
	return left
}

func (o Options) write(name string, data []byte) string {
	path := filepath.Join(o.Dir, name)
	must(os.WriteFile(path, data, 0o600))
	return path
}

// AccountsKey writes the key that signs tokens of ServiceAccounts.
func (o Options) AccountsKey() string { return o.write("accounts.key", shared().accounts) }

// accounts adds the test's client to the file of tokens, and the issuer of ServiceAccounts' tokens.
func (o Options) accounts(flags []string) (left []string, defaults map[string]string) {
	tokens := Token + ",system:apiserver,outside,system:masters\n"
	if path, _ := flag(flags, "token-auth-file"); path != "" {
		text, err := os.ReadFile(path)
		must(err)
		tokens += string(text)
	}
	key := o.AccountsKey()
	defaults = map[string]string{
		"token-auth-file":        o.write("tokens.csv", []byte(tokens)),
		"service-account-issuer": "https://foo.bar.example.com",
	}
	if endpoint, _ := flag(flags, "service-account-signing-endpoint"); endpoint == "" {
		defaults["service-account-key-file"], defaults["service-account-signing-key-file"] = key, key
	}
	return without(flags, "token-auth-file"), defaults
}

func (o Options) serving(given []string, defaults map[string]string, port int) {
	o.write("apiserver.crt", shared().serving)
	o.write("apiserver.key", shared().servingKey)
	defaults["bind-address"] = "127.0.0.1"
	defaults["cert-dir"] = o.Dir
	defaults["secure-port"] = fmt.Sprint(port)
	defaults["service-cluster-ip-range"] = "10.0.0.0/16"
	if _, set := flag(given, "advertise-address"); !set {
		defaults["endpoint-reconciler-type"] = "none"
	}
}

const clientCAFile, frontCAFile = "client-ca.crt", "front-ca.crt"

func (o Options) front() Authority {
	if o.Front != nil {
		return *o.Front
	}
	return shared().front
}

// Authorities writes the certificates of the authorities of clients and front proxies, which a test may add to.
func (o Options) Authorities() (clients, front string) {
	return o.write(clientCAFile, shared().clientCA), o.write(frontCAFile, certificatePEM(o.front().Certificate.Raw))
}

// clients adds the authorities of clients and front proxies, and the certificate with which the server is a front proxy.
func (o Options) clients(defaults map[string]string) {
	front := o.front()
	certificate, key := front.client(o.FrontNames[0])
	clientCA, frontCA := filepath.Join(o.Dir, clientCAFile), filepath.Join(o.Dir, frontCAFile)
	if _, err := os.Stat(clientCA); err != nil {
		clientCA, frontCA = o.Authorities()
	}
	for name, value := range map[string]string{
		"client-ca-file":                     clientCA,
		"requestheader-client-ca-file":       frontCA,
		"requestheader-allowed-names":        strings.Join(o.FrontNames, ","),
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"proxy-client-cert-file":             o.write("front.crt", certificate),
		"proxy-client-key-file":              o.write("front.key", key),
	} {
		defaults[name] = value
	}
	if strings.Contains(defaults["feature-gates"], "UnknownVersionInteroperabilityProxy=true") {
		defaults["peer-ca-file"] = filepath.Join(o.Dir, "apiserver.crt")
	}
}
