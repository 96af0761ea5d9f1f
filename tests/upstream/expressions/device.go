package main

import (
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"k8s.io/apiserver/pkg/cel/environment"
)

func device(expression string) string {
	kind := environment.NewExpressions
	features := dracel.Features{EnableConsumableCapacity: true}
	result := dracel.GetCompiler(features).CompileCELExpression(expression, dracel.Options{EnvType: &kind, DisableCostEstimation: true})
	if result.Error != nil {
		return result.Error.Detail
	}
	return ""
}
