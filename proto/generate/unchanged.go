package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

var (
	messageLine = regexp.MustCompile(`^message (\w+) \{$`)
	fieldLine   = regexp.MustCompile(`^  ((?:optional |repeated )?\S.*) (\w+) = (\d+)(?: \[.*)?;$`)
)

// checkUnchanged refuses a file in which a field changed its number or type: what is stored could not be read.
func checkUnchanged(path, text string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	now := fields(text)
	for name, was := range fields(string(old)) {
		if is, kept := now[name]; kept && is != was {
			return fmt.Errorf("%s: %s was %q and is %q", path, name, was, is)
		}
	}
	return nil
}

// fields maps Message.field to its type and number, and Message.number to its field.
func fields(text string) map[string]string {
	found := map[string]string{}
	message := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if match := messageLine.FindStringSubmatch(line); match != nil {
			message = match[1]
		}
		if strings.HasPrefix(line, "  option ") {
			continue
		}
		if match := fieldLine.FindStringSubmatch(line); match != nil {
			found[message+"."+match[2]] = match[1] + " = " + match[3]
			found[message+"."+match[3]] = match[2]
		}
	}
	return found
}
