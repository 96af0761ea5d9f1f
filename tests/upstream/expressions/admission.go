package main

import (
	"slices"

	"github.com/google/cel-go/cel"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// What every policy with variables has here, in this order.
var variables = []validating.Variable{
	{Name: "count", Expression: "object.spec.containers.size()"},
	{Name: "names", Expression: "object.spec.containers.map(c, c.name)"},
	{Name: "kinds", Expression: "['a', 'b'].map(c, c + 'x')"},
	{Name: "text", Expression: "'a' + request.name"},
	{Name: "flags", Expression: "{'a': true}"},
	{Name: "born", Expression: "timestamp('2026-01-02T03:04:05Z')"},
	{Name: "old", Expression: "oldObject.?spec"},
	{Name: "some", Expression: "quantity('1Gi')"},
	{Name: "broken", Expression: "nobody"},
	{Name: "earlier", Expression: "variables.count + 1"},
}

// An environment's words: what is expected of the expression, then what there is besides.
func admission(kind string, with []string, expression string) string {
	options := plugincel.OptionalVariableDeclarations{
		HasParams: slices.Contains(with, "params"), HasAuthorizer: !slices.Contains(with, "unauthorized"),
	}
	var accessor plugincel.ExpressionAccessor
	switch kind {
	case "condition":
		accessor = &matchconditions.MatchCondition{Expression: expression}
	case "validation":
		accessor = &validating.ValidationCondition{Expression: expression}
	case "message":
		accessor = &validating.MessageExpressionCondition{MessageExpression: expression}
	case "audit":
		accessor = &validating.AuditAnnotationCondition{ValueExpression: expression}
	case "variable":
		accessor = &validating.Variable{Name: "v", Expression: expression}
	case "patch":
		options.HasPatchTypes = true
		accessor = &patch.JSONPatchCondition{Expression: expression}
	case "configuration":
		options.HasPatchTypes = true
		accessor = &patch.ApplyConfigurationCondition{Expression: expression}
	default:
		panic(kind)
	}
	var compiler plugincel.Compiler = plugincel.NewCompiler(base)
	if slices.Contains(with, "variables") {
		composited, err := plugincel.NewCompositedCompiler(base)
		check(err)
		for _, variable := range variables {
			composited.CompileAndStoreVariable(&variable, options, environment.NewExpressions)
		}
		compiler = composited
	}
	result := compiler.CompileCELExpression(accessor, options, environment.NewExpressions)
	if result.Error != nil {
		return result.Error.Detail
	}
	return ""
}

// The environment with the most functions.
func patches() *cel.Env {
	env, err := base.NewExpressionsEnv().Extend(
		common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch))
	check(err)
	return env
}
