package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"regexp"
	"strings"
)

// Expressions, each with its error or what it finds in a few texts: a line of JSON each.
func writePatterns() {
	m := &maker{Rand: rand.New(rand.NewSource(11))}
	pieces := []string{"a", "b", "A", "ß", "K", ".", "^", "$", `\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\b`, `\B`, `\A`, `\z`, `\Z`, `\pL`, `\p{Lu}`, `\P{Greek}`,
		`\p{^Lu}`, `\p{Foo}`, `\p`, `\p{`, `\p{L_u}`, `\p{Any}`, `\pN`, "[abc]", "[^a-c]", "[a-", "[]a]", "[^]a]", "[z-a]", "[[:alpha:]]", "[[:^digit:]x]", "[[:foo:]]", "[a[b]", "[a&&b]",
		`[\d\-x]`, `[\pL\n]`, `[\x41-\x{5a}]`, "(", ")", "(?:", "(?i)", "(?i:", "(?s)", "(?m)", "(?U)", "(?-i)", "(?i-s:", "(?P<n>", "(?<n>", "(?P<n", "(?P<>", "(?=", "(?<!a)", "(?x)", "(?-)", "(?",
		"|", "||", "*", "+", "?", "*?", "+?", "??", "{2}", "{2,}", "{2,3}", "{,3}", "{3,2}", "{1001}", "{1000}", "{0}", "{", "}", "{a}", "{01}", `\`, `\.`, `\-`, `\_`, `\<`, `\q`, `\1`, `\01`, `\101`, `\8`, `\x41`,
		`\x{e9}`, `\x4`, `\x{}`, `\x{110000}`, `\xg1`, `\C`, `\Qa.b\E`, `\Q*`, `\E`, `\a\f\t\n\r\v`, "é", "\n", " ", "-", "#", "~~", "--", "&&", "1", "_"}
	texts := []string{"", "a", "b", "ab", "aab", "AB", "K", "k", "\u212a", "ſ", "é", "É", "1", "a1_", " a\n", "a\nb", "a.b", "a-b", "[a]", "{,3}", "aaa", "ß", "α", "\v", "a&b", "*", "~"}
	for n := 0; n < 3000; n++ {
		var expression strings.Builder
		for length := 1 + m.Intn(5); length > 0; length-- {
			if m.chance(50) {
				expression.WriteString(pick(m, "a", "b", "[a-c]", ".", `\w`, "(a|b)", "(?:a)", "^", "$"))
			} else {
				expression.WriteString(pick(m, pieces...))
			}
		}
		text, err := json.Marshal(expression.String())
		must(err)
		compiled, wrong := regexp.Compile(expression.String())
		if wrong != nil {
			why, err := json.Marshal(wrong.Error())
			must(err)
			fmt.Printf("[%s,%s]\n", text, why)
			continue
		}
		found := [][]int{}
		for _, text := range texts {
			found = append(found, compiled.FindStringIndex(text))
		}
		indices, err := json.Marshal(found)
		must(err)
		fmt.Printf("[%s,%s]\n", text, indices)
	}
}
