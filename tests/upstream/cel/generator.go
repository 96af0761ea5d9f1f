package main

import (
	"fmt"
	"math/rand"
	"strings"
)

// A generator makes expressions that are sound more often than not. A template is a kind, and text with holes for other
// kinds in braces; `{@int}` is the name of a new variable of that kind, which the rest of the template may use.
type generator struct {
	random *rand.Rand
	scope  []variable
	names  int
}

type variable struct{ name, kind string }

var kinds = []string{
	"bool", "int", "string", "bool", "double", "uint", "bytes", "duration", "timestamp", "ints", "strings", "map", "quantity",
	"bool", "ip", "cidr", "url", "semver", "oint", "ostring", "dyn", "objects",
}

// Those without holes, for where it is deep enough.
var plain = map[string][]string{
	"bool":      {"true", "false", "self.flag", "has(self.name)", "has(self.nested.deep)", "has(self.missing)", "isURL('http://a/b')"},
	"int":       {"0", "1", "-3", "42", "9223372036854775807", "self.count", "self.small", "size(self.name)", "self.items.size()", "self.nested.deep.value"},
	"uint":      {"0u", "1u", "7u", "18446744073709551615u", "uint(self.small)"},
	"double":    {"0.0", "1.5", "-2.25", "1e20", "self.ratio", "double(self.small)"},
	"string":    {"''", "'a'", "'abc'", "'äöü€'", "'1Gi'", "'10.0.0.1'", "'1.2.3'", "self.name", "self.nested.text", "string(self.count)", "self.labels['app']", "self.port", "oldSelf.name"},
	"bytes":     {"b'abc'", "b''", "self.data", "bytes(self.name)"},
	"duration":  {"duration('1h')", "duration('90s')", "duration('-1.5s')", "self.timeout"},
	"timestamp": {"timestamp('2024-02-29T12:34:56.789Z')", "timestamp('2023-12-31T23:59:59+02:00')", "self.created", "self.day", "timestamp(0)"},
	"ints":      {"[]", "[1]", "[3, 1, 2]", "[1, 2, 2, 1]", "self.numbers", "oldSelf.numbers"},
	"strings":   {"['a']", "['b', 'a', 'c']", "self.tags", "oldSelf.tags", "self.words", "'a,b,c'.split(',')"},
	"map":       {"{'a': 1}", "{'a': 1, 'b': 2}", "self.weights", "self.limits"},
	"quantity":  {"quantity('1')", "quantity('1500m')", "quantity('1.5Gi')", "quantity('-3k')", "quantity(self.amount)"},
	"ip":        {"ip('10.0.0.1')", "ip('::1')", "ip('fe80::1')", "ip(self.address)"},
	"cidr":      {"cidr('10.0.0.0/8')", "cidr('2001:db8::/32')", "cidr('192.168.1.77/24')"},
	"url":       {"url('https://example.com:8080/a/b?x=1&y=2&x=3')", "url('/just/path')", "url(self.link)"},
	"semver":    {"semver('1.2.3')", "semver('1.2.3-rc.1+b')", "semver('v1.10', true)", "semver(self.version)"},
	"oint":      {"optional.of(1)", "optional.none()", "self.?small", "self.weights[?'a']", "self.numbers[?0]", "self.numbers.first()"},
	"ostring":   {"self.?name", "self.?nested.?text", "self.labels[?'none']", "self.tags.last()", "optional.of('x')"},
	"dyn":       {"dyn(1)", "dyn('a')", "dyn([1])", "dyn(null)", "self.port", "dyn(self.nested)", "dyn(2.0)", "dyn(3u)"},
	"objects":   {"self.items", "oldSelf.items", "self.items.filter(i, i.num > 1)"},
}

var templates = map[string][]string{
	"bool": {
		"!{bool}", "{bool} && {bool}", "{bool} || {bool}", "{bool} ? {bool} : {bool}", "{int} < {int}", "{int} == {int}",
		"{int} >= {double}", "{uint} <= {int}", "{string} == {string}", "{string} != {string}", "{string} < {string}",
		"{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.contains({string})",
		"{string}.matches('^[a-c]+$')", "{string}.matches({string})", "{int} in {ints}", "{string} in {strings}", "{string} in {map}",
		"{string} in ['a', 'abc', 'x']", "{int} in [1, 2, 42]", "{ints}.all({@int}, {bool})", "{ints}.exists({@int}, {bool})",
		"{strings}.exists_one({@string}, {bool})", "{map}.all({@string}, {bool})", "{strings}.all({@int}, {@string}, {bool})",
		"{objects}.all({@object}, {bool})", "{objects}.exists({@object}, {bool})",
		"{map}.exists({@string}, {@int}, {bool})", "{ints}.existsOne({@int}, {@int}, {bool})", "{ints} == {ints}", "{strings} != {strings}",
		"{map} == {map}", "{bytes} == {bytes}", "{duration} < {duration}", "{timestamp} > {timestamp}", "{ints}.isSorted()",
		"{strings}.isSorted()", "isQuantity({string})", "{quantity}.isLessThan({quantity})", "{quantity}.isGreaterThan({quantity})",
		"{quantity}.isInteger()", "{quantity} == {quantity}", "isIP({string})", "isCIDR({string})", "{ip}.isLoopback()", "{ip}.isGlobalUnicast()",
		"{ip}.isUnspecified()", "{ip}.isLinkLocalUnicast()", "{ip}.isLinkLocalMulticast()", "ip.isCanonical({string})", "{ip} == {ip}",
		"{cidr}.containsIP({ip})", "{cidr}.containsIP({string})", "{cidr}.containsCIDR({cidr})", "{cidr}.containsCIDR({string})",
		"isURL({string})", "isSemver({string})", "isSemver({string}, true)", "{semver}.isLessThan({semver})", "{semver} == {semver}",
		"sets.contains({ints}, {ints})", "sets.intersects({strings}, {strings})", "sets.equivalent({ints}, {ints})",
		"{oint}.hasValue()", "{ostring}.hasValue()", "{oint} == {oint}", "{dyn} == {dyn}", "{dyn} != {int}", "type({dyn}) == string",
		"format.dns1123Label().validate({string}).hasValue()", "format.uuid().validate({string}).hasValue()",
		"format.named('qualifiedName').value().validate({string}).hasValue()", "{dyn} < {int}", "{objects} == {objects}", "self == oldSelf",
		"self.nested == oldSelf.nested", "{dyn} in {ints}", "{dyn}.contains({string})", "bool({string})", "{url} == {url}",
		"{strings}.exists({@string}, {string}.contains({string}))",
	},
	"int": {
		"{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} / {int}", "{int} % {int}", "-({int})", "{bool} ? {int} : {int}", "size({string})",
		"{string}.size()", "size({ints})", "size({map})", "size({bytes})", "int({string})", "int({double})", "int({uint})", "int({duration})",
		"int({timestamp})", "{ints}.sum()", "{ints}.min()", "{ints}.max()", "{ints}[{int}]", "{ints}.indexOf({int})", "{ints}.lastIndexOf({int})",
		"{string}.indexOf({string})", "{string}.indexOf({string}, {int})", "{string}.lastIndexOf({string})", "{string}.lastIndexOf({string}, {int})",
		"{map}[{string}]", "{timestamp}.getFullYear()", "{timestamp}.getMonth()", "{timestamp}.getDate()", "{timestamp}.getDayOfMonth()",
		"{timestamp}.getDayOfWeek()", "{timestamp}.getDayOfYear()", "{timestamp}.getHours('Europe/Berlin')", "{timestamp}.getMinutes('-03:30')",
		"{timestamp}.getSeconds()", "{timestamp}.getMilliseconds()", "{duration}.getHours()", "{duration}.getMinutes()", "{duration}.getSeconds()",
		"{duration}.getMilliseconds()", "{quantity}.asInteger()", "sign({quantity})", "{quantity}.compareTo({quantity})", "{ip}.family()",
		"{cidr}.prefixLength()", "{semver}.major()", "{semver}.minor()", "{semver}.patch()", "{semver}.compareTo({semver})", "{oint}.value()",
		"{oint}.orValue({int})", "{objects}.size()", "{objects}[{int}].num", "{objects}.map({@object}, {int}).sum()", "{strings}.size()",
	},
	"uint":   {"{uint} + {uint}", "{uint} - {uint}", "{uint} * {uint}", "{uint} / {uint}", "{uint} % {uint}", "uint({int})", "uint({string})", "uint({double})", "[{uint}, {uint}].max()"},
	"double": {"{double} + {double}", "{double} - {double}", "{double} * {double}", "{double} / {double}", "-({double})", "double({int})", "double({string})", "double({uint})", "{quantity}.asApproximateFloat()", "[{double}, {double}].sum()", "[{double}, {double}].min()"},
	"string": {
		"{string} + {string}", "{bool} ? {string} : {string}", "string({int})", "string({double})", "string({bool})", "string({uint})", "string({duration})",
		"string({timestamp})", "string({bytes})", "string({ip})", "string({cidr})", "{string}.charAt({int})", "{string}.lowerAscii()", "{string}.upperAscii()",
		"{string}.trim()", "{string}.substring({int})", "{string}.substring({int}, {int})", "{string}.replace({string}, {string})",
		"{string}.replace({string}, {string}, {int})", "{strings}.join()", "{strings}.join({string})", "{strings}[{int}]", "{string}.find('[a-z]+')",
		"{string}.find({string})", "strings.quote({string})", "'%s-%d'.format([{string}, {int}])", "'%.3f'.format([{double}])", "'%x %s'.format([{int}, {ints}])",
		"'%e'.format([{double}])", "'%s'.format([{map}])", "'%s'.format([{timestamp}])", "'%b %o'.format([{int}, {uint}])", "'%s'.format([{dyn}])",
		"{url}.getHost()", "{url}.getHostname()", "{url}.getPort()", "{url}.getScheme()", "{url}.getEscapedPath()", "{strings}.min()", "{strings}.max()",
		"{ostring}.orValue({string})", "{ostring}.value()", "{objects}[{int}].name", "{dyn} + {string}", "{string}.split({string})[{int}]",
	},
	"bytes":     {"{bytes} + {bytes}", "bytes({string})"},
	"duration":  {"{duration} + {duration}", "{duration} - {duration}", "{timestamp} - {timestamp}", "duration({string})", "[{duration}, {duration}].sum()", "[{duration}, {duration}].max()"},
	"timestamp": {"{timestamp} + {duration}", "{timestamp} - {duration}", "{duration} + {timestamp}", "timestamp({string})", "timestamp({int})", "[{timestamp}, {timestamp}].min()"},
	"ints": {
		"[{int}, {int}]", "{ints} + {ints}", "{ints}.map({@int}, {int})", "{ints}.filter({@int}, {bool})", "{ints}.map({@int}, {bool}, {int})",
		"{strings}.map({@string}, {int})", "{ints}.sort()", "{ints}.reverse()", "{ints}.distinct()", "{ints}.slice({int}, {int})", "{ints}.sortBy({@int}, {int})",
		"lists.range({int} % 20)", "[{ints}, {ints}].flatten()", "{ints}.transformList({@int}, {@int}, {int})", "{map}.map({@string}, {int})",
		"{objects}.map({@object}, {int})", "optional.unwrap([{oint}, {oint}])", "[{int}, ?{oint}]", "[[{ints}]].flatten(2)", "{bool} ? {ints} : {ints}",
	},
	"strings": {
		"[{string}, {string}]", "{strings} + {strings}", "{strings}.map({@string}, {string})", "{strings}.filter({@string}, {bool})", "{string}.split({string})",
		"{string}.split({string}, {int})", "{string}.findAll('[a-z]')", "{string}.findAll({string}, {int})", "{strings}.sort()", "{strings}.distinct()",
		"{strings}.sortBy({@string}, {int})", "{objects}.map({@object}, {string})", "{url}.getQuery()['x']", "{strings}.reverse()",
		"format.labelValue().validate({string}).orValue([])", "format.date().validate({string}).orValue(['fine'])",
	},
	"map": {
		"{'a': {int}, {string}: {int}}", "{map}.transformMap({@string}, {@int}, {int})", "{map}.transformMap({@string}, {@int}, {bool}, {int})",
		"{ints}.transformMapEntry({@int}, {@int}, {{string}: {int}})", "{'x': {int}, ?'y': {oint}}", "{bool} ? {map} : {map}",
	},
	"quantity": {"{quantity}.add({quantity})", "{quantity}.sub({quantity})", "{quantity}.add({int})", "{quantity}.sub({int})", "quantity({string})"},
	"ip":       {"{cidr}.ip()", "ip({string})", "{cidr}.masked().ip()"},
	"cidr":     {"{cidr}.masked()", "cidr({string})"},
	"url":      {"url({string})"},
	"semver":   {"semver({string})", "semver({string}, true)"},
	"oint":     {"optional.of({int})", "{oint}.or({oint})", "{oint}.optMap({@int}, {int})", "{oint}.optFlatMap({@int}, {oint})", "optional.ofNonZeroValue({int})", "{ints}[?{int}]", "{map}[?{string}]", "{ints}.first()", "{objects}[?{int}].?num"},
	"ostring":  {"optional.of({string})", "{ostring}.or({ostring})", "{ostring}.optMap({@string}, {string})", "{strings}[?{int}]", "self.?labels[?{string}]", "{objects}[?0].?name", "optional.ofNonZeroValue({string})"},
	"dyn":      {"dyn({int})", "dyn({string})", "dyn({ints})", "dyn({map})", "{dyn} == {dyn} ? dyn({int}) : dyn({double})", "dyn({objects})", "dyn({map}).a", "dyn({ints})[{int}]", "dyn({oint})"},
	"objects":  {"{objects} + {objects}", "{objects}.filter({@object}, {bool})", "{objects}.sortBy({@object}, {int})", "{objects}.slice(0, {int})", "{objects}.reverse()"},
}

func (g *generator) expression(kind string, depth int) string {
	var choices []string
	for _, v := range g.scope {
		switch {
		case v.kind == kind:
			choices = append(choices, v.name, v.name, v.name)
		case v.kind == "object" && kind == "int":
			choices = append(choices, v.name+".num", v.name+".num")
		case v.kind == "object" && kind == "string":
			choices = append(choices, v.name+".name", v.name+".name")
		}
	}
	known := templates[kind]
	if depth <= 0 || len(known) == 0 || g.random.Intn(8) == 0 {
		choices = append(choices, plain[kind]...)
		return choices[g.random.Intn(len(choices))]
	}
	if len(choices) > 0 && g.random.Intn(4) == 0 {
		return choices[g.random.Intn(len(choices))]
	}
	return g.fill(known[g.random.Intn(len(known))], depth-1)
}

// Fills the holes of a template from the left. Braces that hold no kind stay.
func (g *generator) fill(template string, depth int) string {
	before := len(g.scope)
	var out strings.Builder
	for len(template) > 0 {
		start := strings.IndexByte(template, '{')
		if start < 0 {
			break
		}
		end := start + strings.IndexByte(template[start:], '}')
		hole := template[start+1 : end]
		name := strings.TrimPrefix(hole, "@")
		if _, known := plain[name]; !known && name != "object" {
			out.WriteString(template[:start+1])
			template = template[start+1:]
			continue
		}
		out.WriteString(template[:start])
		template = template[end+1:]
		if name == hole {
			text := g.expression(name, depth)
			if strings.Contains(text, " ") && !strings.HasSuffix(text, ")") {
				text = "(" + text + ")"
			}
			out.WriteString(text)
			continue
		}
		g.names++
		fresh := fmt.Sprintf("v%d", g.names)
		g.scope = append(g.scope, variable{fresh, name})
		out.WriteString(fresh)
	}
	g.scope = g.scope[:before]
	return out.String() + template
}
