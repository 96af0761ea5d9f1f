package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// output is what a container prints: a file of lines with their times, in the form of container runtimes: a time, F for a
// line and P for a part of one, and the text.
type output struct {
	mutex sync.Mutex
	file  *os.File
	// Whether the container has ended.
	ended bool
}

func logPath(dir, container string) string      { return filepath.Join(dir, container+".log") }
func previousPath(dir, container string) string { return filepath.Join(dir, container+".previous.log") }

// newOutput begins the file of a run. That of the run before stays as the previous one.
func newOutput(dir, container string) (*output, error) {
	err := os.Rename(logPath(dir, container), previousPath(dir, container))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	file, err := os.OpenFile(logPath(dir, container), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &output{file: file}, nil
}

func (o *output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var lines bytes.Buffer
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for rest := text; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		kind := "P"
		if whole {
			kind = "F"
		}
		fmt.Fprintf(&lines, "%s %s %s\n", now, kind, line)
		rest = after
	}
	_, err := o.file.Write(lines.Bytes())
	return len(text), err
}

func (o *output) end() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.ended = true
	o.file.Close()
}

func (o *output) hasEnded() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.ended
}

// logOptions are the parameters of a request for a log.
type logOptions struct {
	follow, previous, timestamps bool
	since                        time.Time
	tail, limit                  int64
}

func readLogOptions(query url.Values) (options logOptions, err error) {
	options = logOptions{follow: query.Get("follow") == "true", previous: query.Get("previous") == "true",
		timestamps: query.Get("timestamps") == "true", tail: -1, limit: -1}
	for name, number := range map[string]*int64{"tailLines": &options.tail, "limitBytes": &options.limit} {
		if text := query.Get(name); text != "" {
			if *number, err = strconv.ParseInt(text, 10, 64); err != nil {
				return options, err
			}
		}
	}
	if text := query.Get("sinceSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return options, err
		}
		options.since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		options.since, err = time.Parse(time.RFC3339, text)
	}
	return options, err
}

// containerLogs answers with what a container prints.
func (n *node) containerLogs(w http.ResponseWriter, request *http.Request) {
	found, container := n.find(request), request.PathValue("container")
	if found == nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", request.PathValue("pod")), http.StatusNotFound)
		return
	}
	options, err := readLogOptions(request.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path, missing := logPath(found.dir(), container), "container %q in pod %q is waiting to start: ContainerCreating"
	if options.previous {
		path, missing = previousPath(found.dir(), container), "previous terminated container %q in pod %q not found"
	}
	file, err := os.Open(path)
	if err != nil {
		http.Error(w, fmt.Sprintf(missing, container, request.PathValue("pod")), http.StatusBadRequest)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "text/plain")
	flusher := w.(http.Flusher)
	flusher.Flush()
	running := found.process(container)
	goesOn := func() bool {
		return options.follow && !options.previous && running != nil && !running.output.hasEnded()
	}
	copyLog(request.Context(), w, flusher.Flush, file, options, goesOn)
}

// copyLog writes the lines of a log that are asked for, and those to come while it goes on.
func copyLog(ctx context.Context, w io.Writer, flush func(), file *os.File, options logOptions, goesOn func() bool) {
	out := &limited{w: w, left: options.limit}
	reader, begins, skipped := bufio.NewReader(file), true, int64(0)
	if options.tail >= 0 {
		if text, err := os.ReadFile(file.Name()); err == nil {
			skipped = int64(bytes.Count(text, []byte(" F "))) - options.tail
		}
	}
	var partial string
	for {
		last := !goesOn()
		for {
			text, err := reader.ReadString('\n')
			partial += text
			if err != nil {
				break
			}
			line := strings.TrimSuffix(partial, "\n")
			partial = ""
			stamp, rest, _ := strings.Cut(line, " ")
			kind, body, _ := strings.Cut(rest, " ")
			if kind == "F" {
				body += "\n"
			}
			at, _ := time.Parse(time.RFC3339Nano, stamp)
			if shown := skipped <= 0 && !at.Before(options.since); shown {
				if begins && options.timestamps {
					body = stamp + " " + body
				}
				if _, err := io.WriteString(out, body); err != nil {
					return
				}
			}
			begins = kind == "F"
			if begins {
				skipped--
			}
		}
		flush()
		if last {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// limited passes so many bytes on.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(text []byte) (int, error) {
	if l.left >= 0 && int64(len(text)) > l.left {
		l.w.Write(text[:l.left])
		l.left = 0
		return 0, io.ErrShortWrite
	}
	if l.left >= 0 {
		l.left -= int64(len(text))
	}
	return l.w.Write(text)
}
