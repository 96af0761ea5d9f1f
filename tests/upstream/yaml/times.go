package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A text, and what metav1.Time and metav1.MicroTime print after they have read it, or why they do not.
type moment struct {
	Text       string `json:"text"`
	Time       string `json:"time,omitempty"`
	TimeError  string `json:"timeError,omitempty"`
	Micro      string `json:"micro,omitempty"`
	MicroError string `json:"microError,omitempty"`
}

func times(random *rand.Rand, count int) []any {
	var lines []any
	texts := []string{
		"2021-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00+01:00",
		"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z", "0001-01-01T00:00:01Z", "2021-01-01T0:00:00.123456Z", "2021-01-01T00:00:00,123456Z", "2021-01-01T00:00:00.123Z", "2021-01-01T00:00:00.123456789Z", "2021-01-01T24:00:00Z",
		"2021-01-01T00:00Z", "2021-01-01t00:00:00z", "2021-01-01T00:00:60Z", "2016-12-31T23:59:60Z", "2021-01-01T00:00:00+24:00", "2021-01-01T00:00:00+24:60", "2021-01-01T00:00:00-24:60", "2021-01-01T00:00:00-00:00", "", "0", "now", "10000-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999999Z",
	}
	for len(texts) < count {
		texts = append(texts, timeText(random))
	}
	for _, text := range texts {
		quoted, err := json.Marshal(text)
		check(err)
		line := moment{Text: text}
		var whole metav1.Time
		var micro metav1.MicroTime
		line.Time, line.TimeError = printed(json.Unmarshal(quoted, &whole), func() ([]byte, error) { return json.Marshal(&whole) })
		line.Micro, line.MicroError = printed(json.Unmarshal(quoted, &micro), func() ([]byte, error) { return json.Marshal(&micro) })
		lines = append(lines, line)
	}
	return lines
}

func printed(failed error, print func() ([]byte, error)) (string, string) {
	if failed != nil {
		return "", failed.Error()
	}
	text, err := print()
	if err != nil {
		// The type writes what JSON does not take, as years of five digits are for package time only.
		return "", "printing: " + err.Error()
	}
	return strings.Trim(string(text), "\""), ""
}

func timeText(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.Intn(len(from))] }
	number := func(digits, most int) string { return fmt.Sprintf("%0*d", digits, random.Intn(most+1)) }
	text := pick(number(4, 9999), number(4, 9999), "9999", "0000", "0001", "1970", "2024", "2100") + "-" + number(2, 12) + "-" + number(2, 31) + pick("T", "T", "T", "T", "T", "T", "T", "t", " ") +
		pick(number(2, 23), number(2, 23), number(2, 23), number(1, 9), number(2, 25)) + ":" + number(2, 59) + ":" + number(2, 60) +
		pick("", ".", ".1", ".12", ".123", ".123456", ".999999", ".000000", ".123456", ",123456", ",5", ".1234567", ".123456789", ".1234567891", "."+number(6, 999999), "."+number(6, 999999)) +
		pick("Z", "Z", "Z", "Z", "z", "", "+"+number(2, 24)+":"+number(2, 60), "-"+number(2, 14)+":"+number(2, 59), "+0100", "+01", " Z", "+1:00", "Z ", "+00:00", "-00:00")
	for random.Intn(4) == 0 {
		at := random.Intn(len(text) + 1)
		text = text[:at] + pick("", "", "0", "9", ":", "-", "Z", "T", " ", ".", "é", "\"", "\\") + text[min(len(text), at+random.Intn(2)):]
		text = strings.ToValidUTF8(text, "?")
	}
	return text
}
