package main

import (
	"fmt"
	"math/rand"

	"k8s.io/apimachinery/pkg/api/resource"
)

// printQuantities writes texts and what they become; errors begin with a bang.
func printQuantities() {
	for _, text := range quantities() {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Printf("%s\t!%s\n", text, err)
			continue
		}
		fmt.Printf("%s\t%s\n", text, quantity.String())
	}
}

// quantities are every number with every suffix, oddities, and random texts of the same pieces.
func quantities() []string {
	all := []string{
		"", "-", "+", ".", ".k", ".e-10", "1..2", "1.2.3", "--1", "x", "1x", "1 ", " 1", "1K", "1ki", "1e", "1ee3", "1k3",
		"1+3", "1e3k", "1e99999999999999999999", "1e4294967299", "1500e-12", "1234567890123456789e3", "Ki", "é",
	}
	numbers := []string{
		"0", "00", "-0", "1", "+1", "-1", "01", "1.5", "1.", ".5", "0.5", "8", "12", "1000", "1024", "1048576", "-2048",
		"100000", "1.500", "1.000", "0.001", "0.0000000001", "-0.0000000019", "999999999999999999", "1000000000000000000",
		"9223372036854775807", "9223372036854775808", "123456789.123456789", "0.9999999999",
	}
	suffixes := []string{
		"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e+2", "e1",
		"e-10", "e0",
	}
	for _, number := range numbers {
		for _, suffix := range suffixes {
			all = append(all, number+suffix)
		}
	}
	random := rand.New(rand.NewSource(37))
	for range 400 {
		text := ""
		for range 1 + random.Intn(3) {
			digits := random.Int63() >> random.Intn(63)
			text += []string{"", "-", ".", "000"}[random.Intn(4)] + fmt.Sprint(digits)
		}
		all = append(all, text+suffixes[random.Intn(len(suffixes))])
	}
	return all
}
