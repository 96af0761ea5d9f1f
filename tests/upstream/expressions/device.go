package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	dracel "k8s.io/dynamic-resource-allocation/cel"

	"k8s.io/apiserver/pkg/cel/environment"
)

func compiled(expression string, costs bool) dracel.CompilationResult {
	kind := environment.NewExpressions
	features := dracel.Features{EnableConsumableCapacity: true}
	options := dracel.Options{EnvType: &kind, DisableCostEstimation: !costs}
	return dracel.GetCompiler(features).CompileCELExpression(expression, options)
}

func device(expression string) string {
	if result := compiled(expression, false); result.Error != nil {
		return result.Error.Detail
	}
	return ""
}

// What selectors speak of, and how: every subject is put into every phrase.
var subjects = []string{
	"device.driver", "device.attributes['a.b'].c", "device.attributes['a.b']['c']", "device.attributes[device.driver].c", "'abc'",
	"cel.bind(own, device.attributes['a.b'], own.c)", "(device.allowMultipleAllocations ? device.driver : 'a')", "(device.driver + 'x')",
	"device.attributes.map(d, d)[0]", "string(device.attributes['a.b'].c)", "device.driver.lowerAscii()", "device.driver.split('.')[0]",
	"device.attributes['a.b'].map(k, k)[0]",
}

var phrases = []string{
	"S == 'a'", "S.startsWith('a')", "S.contains('abc')", "S.matches('^[a-z]+$')", "S.size() > 3", "size(S) > 3", "S in ['a', 'b', 'c']",
	"['a', 'b'].exists(x, x == S)", "device.attributes.exists(d, d == S)", "device.attributes.all(d, device.attributes[d].exists(k, k == S))",
	"device.attributes.all(d, device.attributes[d].all(k, device.attributes[d][k] == S))", "S.find('a+') == ''", "S.replace('a', 'b') == 'c'",
	"S.indexOf('a') == 1", "S.substring(1) == 'a'", "'a'.startsWith(S)", "S < 'b'", "has(device.attributes['a.b'].c) && S != 'x'",
	"device.attributes.all(d, device.attributes.all(e, device.attributes.all(f, d + e + f != S)))",
	"device.attributes.all(d, device.attributes.all(e, device.attributes.all(f, device.attributes.all(g, d == e && f == g && f == S))))",
}

// Selectors of their own.
var others = []string{
	"device.allowMultipleAllocations", "device.attributes['a.b'].flag", "device.attributes['a.b'].version.isGreaterThan(semver('1.0.0'))",
	"device.attributes['a.b'].version.compareTo(semver('1.0.0')) > 0", "semver(device.driver).major() > 1", "isSemver(device.driver)",
	"device.capacity['a.b'].memory.isGreaterThan(quantity('1Gi'))", "device.capacity['a.b'].memory.compareTo(quantity('1Gi')) >= 0",
	"device.capacity['a.b'].memory.add(quantity('1')).sub(2).sign() == 1", "device.capacity.all(d, device.capacity[d].all(k, device.capacity[d][k].isInteger()))",
	"device.capacity['a.b'].exists(k, k.startsWith('m'))", "device.attributes.size() > 2", "device.attributes['a.b'].size() > 2", "device.capacity.size() > 2",
	"'a' in device.attributes['a.b']", "'a.b' in device.attributes", "device.attributes['a.b'].n > 3 && device.attributes['a.b'].n < 5.0",
	"device.attributes['a.b'].list.includes('a')", "device.driver.endsWith('x') || device.driver.endsWith('y')", "url('https://' + device.driver).getHost() == device.driver",
	"device.attributes.filter(d, d != 'x').map(d, d + 'y').exists(d, d == 'z')", "cel.bind(a, device.attributes['a.b'], cel.bind(b, a.c, b == 'x' && a.d == b))",
	"device.attributes['a.b'].c.matches(device.driver)", "true",
}

// Writes what upstream says that selectors cost: a line each, with the cost before the expression.
func devices(folder string) {
	file, err := os.Create(filepath.Join(folder, "devices.tsv"))
	check(err)
	out := bufio.NewWriter(file)
	expressions := others
	for _, phrase := range phrases {
		for _, subject := range subjects {
			expressions = append(expressions, strings.ReplaceAll(phrase, "S", subject))
		}
	}
	for _, expression := range expressions {
		if result := compiled(expression, true); result.Error == nil {
			fmt.Fprintf(out, "%d\t%s\n", result.MaxCost, expression)
		}
	}
	check(out.Flush())
}
