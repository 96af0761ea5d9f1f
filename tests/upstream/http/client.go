package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

// reply is what a server says to one request before it closes the connection, and what the client makes of it.
type reply struct {
	Sent string `json:"sent"`
	// Status is 0 if the client has failed.
	Status int    `json:"status"`
	Body   string `json:"body"`
}

func packed(text string) string {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	io.WriteString(writer, text)
	writer.Close()
	return out.String()
}

func replyHeader() string {
	return one("Content-Type: application/json", "X-A: 1", "X-A:2", "X-B:\t c \t", "X-Empty:", "X-High: \xc3\xa9", "Connection: close", "Connection: keep-alive",
		mostly(3, "X-C: d", "X A: b", "X-A : b", ": b", "no colon", "X-Fold: a\r\n b", "X-Nul: a\x00b", "X\x80: a", "X-Cr: a\rb", "X(a): b"))
}

func replyText() string {
	line := mostly(8, "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 404 Not Found", "HTTP/1.1 500 No", "HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified",
		"HTTP/1.1 2000 OK", "HTTP/1.1 20 OK", "HTTP/2.0 200 OK", "HELLO", "HTTP/1.1  200 OK", "HTTP/1.1 abc OK", "HTTP/1.1 200 \xc3\xa9", "HTTP/1.1 600 New")
	text := mostly(20, strings.Repeat("{}", draw.Intn(30)), "", strings.Repeat("[]", 5000))
	head, body := line+"\r\n", text
	for range draw.Intn(4) {
		head += replyHeader() + "\r\n"
	}
	switch draw.Intn(6) {
	case 0:
		head += mostly(2, "Content-Encoding: gzip\r\n", "Content-Encoding: GZIP\r\n", "content-encoding: x-gzip\r\n", "Content-Encoding: deflate\r\n")
		body = mostly(3, packed(text), packed(text)+packed(text), text, packed(text)[:10], packed(text)+"rest", "")
	case 1:
		head = mostly(2, "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early\r\nLink: a\r\n\r\n", strings.Repeat("HTTP/1.1 102 Wait\r\n\r\n", 4)) + head
	}
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	switch draw.Intn(8) {
	case 0, 1:
		// The body ends with the connection.
	case 2, 3, 4:
		head += length
	case 5, 6:
		head += "Transfer-Encoding: chunked\r\n"
		body = chunks(body)
	case 7:
		head += one(length+length, length+"Content-Length: 7\r\n", "Content-Length: +2\r\n", "Content-Length: x\r\n", "Content-Length:\r\n", fmt.Sprintf("Content-Length: %d\r\n", len(body)+3),
			"Transfer-Encoding: gzip\r\n", "Transfer-Encoding: identity\r\n", length+"Transfer-Encoding: chunked\r\n", "Content-Length: 99999999999999999999\r\n")
	}
	if draw.Intn(15) == 0 {
		head = strings.ReplaceAll(head, "\r\n", "\n")
	}
	sent := head + "\r\n" + body
	if draw.Intn(25) == 0 {
		sent = sent[:draw.Intn(len(sent))]
	}
	return sent
}

func largeReplies() []string {
	many := func(count int) string {
		var out strings.Builder
		for at := range count {
			fmt.Fprintf(&out, "X-%d: a\r\n", at)
		}
		return "HTTP/1.1 200 OK\r\n" + out.String() + "Content-Length: 2\r\n\r\n{}"
	}
	return []string{many(99), many(101), many(3000), "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 500_000) + "\r\nContent-Length: 2\r\n\r\n{}"}
}

func clientCases(count int) []reply {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	sent := make(chan string)
	go func() {
		for text := range sent {
			stream, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			stream.Read(make([]byte, 4096))
			io.WriteString(stream, text)
			stream.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, stream)
			stream.Close()
		}
	}()
	cases, large := []reply{}, largeReplies()
	for len(cases) < count {
		text := ""
		if len(large) > 0 {
			text, large = large[0], large[1:]
		} else {
			text = replyText()
		}
		sent <- text
		client := http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
		found := reply{Sent: latin1(text)}
		response, err := client.Post("http://"+listener.Addr().String()+"/hook", "application/json", strings.NewReader("{}"))
		if err == nil {
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil {
				found.Status, found.Body = response.StatusCode, latin1(string(body))
			}
		}
		client.CloseIdleConnections()
		cases = append(cases, found)
	}
	return cases
}
