package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"
)

// exchange is what a client sends on one connection, and what comes back.
type exchange struct {
	Sent string `json:"sent"`
	// Whether the client sends nothing more, so that the server need not wait.
	Ends    bool     `json:"ends,omitempty"`
	Answers []answer `json:"answers"`
}

type answer struct {
	Status int  `json:"status"`
	Close  bool `json:"close"`
	// What the handler has seen; nil if the server itself has answered.
	Seen *seen `json:"seen,omitempty"`
	// The text of the server's own answer.
	Text string `json:"text,omitempty"`
}

type seen struct {
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"`
	Query   string      `json:"query"`
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body"`
	Broken  bool        `json:"broken"`
}

// Headers about the connection, or about how the body comes.
var ofConnection = map[string]bool{
	"Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Expect": true, "Trailer": true,
}

// Reads the whole body, unless the path says that the answer comes before it.
func echo(w http.ResponseWriter, r *http.Request) {
	found := seen{Method: r.Method, Host: latin1(r.Host), Path: latin1(r.URL.Path), Headers: [][2]string{}}
	if query, err := url.PathUnescape(r.URL.RawQuery); err == nil {
		found.Query = latin1(query)
	} else {
		found.Query = latin1(r.URL.RawQuery)
	}
	for name, values := range r.Header {
		for _, value := range values {
			if !ofConnection[name] {
				found.Headers = append(found.Headers, [2]string{strings.ToLower(name), latin1(value)})
			}
		}
	}
	sort.SliceStable(found.Headers, func(i, j int) bool { return found.Headers[i][0] < found.Headers[j][0] })
	w.Header().Set("Handler", "echo")
	status := 200
	if strings.HasPrefix(r.URL.Path, "/early") {
		status = 403
	} else {
		body, err := io.ReadAll(r.Body)
		found.Body, found.Broken = latin1(string(body)), err != nil
		if err != nil {
			status, found.Body = 400, ""
		}
	}
	text, _ := json.Marshal(found)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(status)
	w.Write(text)
}

// What follows each exchange, so that it is seen whether the server is still in step.
const last = "GET /last HTTP/1.1\r\nHost: last\r\nConnection: close\r\n\r\n"

func ask(address, sent string, ends bool) ([]answer, bool) {
	stream, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	go func() {
		io.WriteString(stream, sent)
		if ends {
			stream.(*net.TCPConn).CloseWrite()
		}
	}()
	stream.SetReadDeadline(time.Now().Add(2 * time.Second))
	answers := []answer{}
	reader := bufio.NewReader(stream)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			timeout, _ := err.(net.Error)
			return answers, timeout == nil || !timeout.Timeout()
		}
		if response.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return answers, false
		}
		found := answer{Status: response.StatusCode, Close: response.Close}
		if response.Header.Get("Handler") != "" {
			found.Seen = &seen{}
			if err := json.Unmarshal(body, found.Seen); err != nil {
				log.Fatal(err)
			}
		} else {
			found.Text = string(body)
		}
		answers = append(answers, found)
	}
}

func target() string {
	return mostly(3, one("/echo", "/echo?x=1", "/early"),
		"http://h.example/echo?y=2", "https://h.example/echo", "//h/echo", "/echo%zz", "/echo%4", "/ech%6f", "/a%2Fb", "/e\"cho",
		"/echo#f", "/\xc3\xa9cho", "/\xffcho", "/a\tb", "", "echo", "http://a b/", "/echo?a=%zz", "/echo?\xc3\xa9",
		"/echo?q=\"<>`{}|\\^#'", "/a/../b", "/echo?", "/ec\x7fho", "/ec\x01ho", "/<a>", "/a{b}|c", "/early?"+strings.Repeat("a", 300))
}

func line() string {
	method := mostly(6, one("GET", "POST", "POST", "PUT"), "DELETE", "PATCH", "OPTIONS", "FOO", "get", "G@T", "", "GE\tT", "M-SEARCH")
	version := mostly(6, "HTTP/1.1", "HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "HTTP/0.9", "HTTP/1.1x", "http/1.1",
		"", "HTTP/11", "HTTP/1.x", "HTTP/1.1 ", "HTTP/3.0")
	return mostly(20, method+" "+target()+" "+version, method+"  "+target()+" "+version, " "+method+" /echo "+version,
		method+"\t/echo\t"+version, method+" /echo", "HELLO", method+" /echo "+version+"\r", method+" /echo  "+version)
}

func header() string {
	return one("Accept: */*", "X-A: 1", "X-A:2", "X-A:\t 3 \t", "x-b: c: d", "X-Empty:", "User-Agent: \xc3\x9cber/1",
		mostly(2, "X-Long: "+strings.Repeat("v", draw.Intn(3000)), "X A: b", "X-A : b", ": b", "no colon", "X-Fold: a\r\n b", "X-Fold: a\r\n\t b\r\n  c",
			"X-Nul: a\x00b", "X-Cr: a\rb", "X\x80: a", "X-Del: a\x7f", "X-High: a\xff", "X(a): b", "X-One: a\x01", "X_b: c", "X!#$%&'*+.^`|~: c"))
}

func hosts() string {
	return mostly(8, "Host: h\r\n", "", "Host: a\r\nHost: b\r\n", "Host:\r\n", "Host: a b\r\n", "Host: a/b\r\n", "Host: [::1]:80\r\n",
		"Host: \xc3\xa9\r\n", "host: h\r\n", "Host: a@b\r\n", "Host: a,b\r\n", "Host: a\"b\r\n", "Host: a\r\nhost: a\r\n")
}

// chunks is a body in chunks, and maybe in other ones than it should be. The last line ends in CR LF: Go looks for those two at the end of
// the next request, too.
func chunks(body string) string {
	out := ""
	for len(body) > 0 {
		part := 1 + draw.Intn(len(body))
		size := mostly(25, one(fmt.Sprintf("%x", part), fmt.Sprintf("%X", part), fmt.Sprintf("%04x", part), fmt.Sprintf("%x;a=b", part),
			fmt.Sprintf("%x \t", part)),
			fmt.Sprintf("%x ;a", part), fmt.Sprintf(" %x", part), "0x1", "", "g", "-1", "+1", "11111111111111111", "ffffffffffffffff1",
			fmt.Sprintf("%x;%s", part, strings.Repeat("e", 4000)), fmt.Sprintf("%x;%s", part, strings.Repeat("e", 5000)), fmt.Sprintf("%x;\r", part))
		out += size + mostly(25, "\r\n", "\n", "\r\r\n") + body[:part] + mostly(25, "\r\n", "\n", "", "\r\n\r\n", "x\r\n")
		body = body[part:]
	}
	return out + mostly(20, "0\r\n", "0;x=y\r\n", "000\r\n", "0\n") +
		mostly(6, "\r\n", "A: b\r\n\r\n", "A: b\r\nC: d\r\n\r\n", "a b: c\r\n\r\n", "no colon\r\n\r\n")
}

// framed is the headers of a body, and the body.
func framed() (string, string) {
	body := mostly(20, strings.Repeat("b", draw.Intn(40)), "", strings.Repeat("c", 2000), strings.Repeat("d", 200_000))
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	switch draw.Intn(10) {
	case 0, 1:
		return "", ""
	case 2, 3, 4:
		return length, body
	case 5, 6, 7:
		return "Transfer-Encoding: " + one("chunked", "Chunked", "CHUNKED", "chunked ") + "\r\n", chunks(body)
	case 8:
		return one("Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n",
			"Transfer-Encoding:\r\n", "Transfer-Encoding: \x0bchunked\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n",
			length+"Transfer-Encoding: chunked\r\n", "Content-Length: x\r\nTransfer-Encoding: chunked\r\n"), chunks(body)
	default:
		return one(length+length, length+"Content-Length: 999\r\n", "Content-Length: +5\r\n", "Content-Length: -1\r\n", "Content-Length: 0x5\r\n", "Content-Length:\r\n",
			"Content-Length: 5, 5\r\n", "Content-Length: 99999999999999999999\r\n", "Content-Length: 9223372036854775808\r\n", fmt.Sprintf("Content-Length: 000%d\r\n", len(body)),
			fmt.Sprintf("Content-Length:  %d \r\n", len(body)), fmt.Sprintf("Content-Length: %d\r\nContent-Length: 0%d\r\n", len(body), len(body))), body
	}
}

func request() string {
	head := line() + "\r\n" + hosts()
	for range draw.Intn(5) {
		head += header() + "\r\n"
	}
	head += mostly(8, "", "Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: Close, x\r\n", "Connection: x\r\n")
	head += mostly(15, "", "Expect: 100-continue\r\n", "Expect: 100-Continue\r\n", "Expect: fish\r\n", "Expect:\r\n")
	fields, body := framed()
	head += fields
	if draw.Intn(12) == 0 {
		head = strings.ReplaceAll(head, "\r\n", "\n")
		return head + one("\n", "\r\n") + body
	}
	if draw.Intn(40) == 0 {
		head = one(" X: first\r\n", "\r\n", "\n", "\r\n\r\n") + head
	}
	return head + "\r\n" + body + mostly(30, "", "\r\n")
}

// large are requests that need more room than most libraries have.
func large() []string {
	post := func(headers string) string {
		return "POST /early HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n"
	}
	body := func(length int) string {
		return post(fmt.Sprintf("Content-Length: %d\r\n", length)) + strings.Repeat("b", length)
	}
	many := func(count int, format string) string {
		var out strings.Builder
		for at := range count {
			fmt.Fprintf(&out, format, at)
		}
		return "GET /echo HTTP/1.1\r\nHost: h\r\n" + out.String() + "\r\n"
	}
	get := func(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n" }
	return []string{
		many(97, "X-A: %d\r\n"), many(101, "X-%d: a\r\n"), many(5000, "Impersonate-Group: team-%d\r\n"), many(5000, "X-%d: a\r\n"),
		get("/echo?" + strings.Repeat("a", 65_000)), get("/echo?" + strings.Repeat("a", 70_000)), get("/echo?" + strings.Repeat("%2C", 300_000)),
		get("/echo?a=\"" + strings.Repeat("a", 70_000)),
		"GET /echo HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 900_000) + "\r\n\r\n",
		"GET /echo HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 1_200_000) + "\r\n\r\n",
		body(100_000), body(262_143), body(262_145), body(1_000_000), body(4_000_000),
		post("Transfer-Encoding: chunked\r\n") + "20000\r\n" + strings.Repeat("b", 0x20000) + "\r\n0\r\n\r\n",
	}
}

func serverCases(count int) []exchange {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(echo), ErrorLog: log.New(io.Discard, "", 0)}
	go server.Serve(listener)
	address := listener.Addr().String()
	cases := []exchange{}
	for _, sent := range large() {
		sent += last
		answers, whole := ask(address, sent, false)
		if !whole && len(answers) == 0 {
			log.Fatalf("no answer to %.80q", sent)
		}
		cases = append(cases, exchange{Sent: latin1(sent), Answers: answers})
	}
	for len(cases) < count {
		sent := request()
		ends := draw.Intn(25) == 0
		if ends {
			// Its head ends early.
			sent = sent[:draw.Intn(strings.Index(sent+"\n", "\n")+8)%len(sent)]
		} else {
			sent += last
		}
		// Whoever waits for more has nothing to say.
		if answers, whole := ask(address, sent, ends); whole {
			cases = append(cases, exchange{Sent: latin1(sent), Ends: ends, Answers: answers})
		}
	}
	return cases
}
