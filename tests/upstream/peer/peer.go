// Package peer asks rowplane's library, which runs as a process of its own (examples/peer).
package peer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Object is JSON as encoding/json decodes it.
type Object = map[string]any

// Answer holds what was asked for, or why there is none.
type Answer struct {
	Object   Object `json:"object"`
	Envelope []byte `json:"envelope"`
	Managers []any  `json:"managers"`
	Refused  string `json:"refused"`
}

// Peer is the running process.
type Peer struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

// Start runs the program at path.
func Start(path string) (*Peer, error) {
	command := exec.Command(path)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Peer{command, input, bufio.NewReaderSize(output, 1<<20)}, command.Start()
}

// Ask puts one question.
func (p *Peer) Ask(question Object) (*Answer, error) {
	line, err := Encode(question)
	if err != nil {
		return nil, err
	}
	if _, err := p.input.Write(line); err != nil {
		return nil, err
	}
	line, err = p.output.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	answer := &Answer{}
	return answer, Decode(line, answer)
}

// Decode reads JSON and keeps numbers as they are spelled.
func Decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// Encode writes a line of JSON, and escapes nothing that need not be.
func Encode(value any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return line.Bytes(), err
}

// Close ends the process.
func (p *Peer) Close() error {
	if err := p.input.Close(); err != nil {
		return err
	}
	return p.command.Wait()
}
