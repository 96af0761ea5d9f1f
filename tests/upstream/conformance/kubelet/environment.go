package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// environment is what a container finds in its environment: where the server is, and what its specification says.
func (p *pod) environment(ctx context.Context, object *v1.Pod, container *v1.Container) ([]v1.EnvVar, error) {
	kubernetes, err := p.node.client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all := []v1.EnvVar{
		{Name: "PATH", Value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"},
		{Name: "HOSTNAME", Value: object.Name},
		{Name: "KUBERNETES_SERVICE_HOST", Value: kubernetes.Spec.ClusterIP},
		{Name: "KUBERNETES_SERVICE_PORT", Value: "443"},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: "443"},
		{Name: "KUBERNETES_PORT", Value: "tcp://" + net.JoinHostPort(kubernetes.Spec.ClusterIP, "443")},
	}
	for _, source := range container.EnvFrom {
		values, err := p.allOf(ctx, object, source)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			all = append(all, v1.EnvVar{Name: source.Prefix + name, Value: values[name]})
		}
	}
	for _, variable := range container.Env {
		value, set := expand(variable.Value, all), true
		if variable.ValueFrom != nil {
			if value, set, err = p.valueFrom(ctx, object, container, variable.ValueFrom); err != nil {
				return nil, fmt.Errorf("%s: %w", variable.Name, err)
			}
		}
		if set {
			all = append(all, v1.EnvVar{Name: variable.Name, Value: value})
		}
	}
	return all, nil
}

func (p *pod) allOf(ctx context.Context, object *v1.Pod, source v1.EnvFromSource) (map[string]string, error) {
	if from := source.ConfigMapRef; from != nil {
		return p.configMap(ctx, object, from.Name, ptr.Deref(from.Optional, false))
	}
	if from := source.SecretRef; from != nil {
		return p.secret(ctx, object, from.Name, ptr.Deref(from.Optional, false))
	}
	return nil, nil
}

func (p *pod) valueFrom(ctx context.Context, object *v1.Pod, container *v1.Container, source *v1.EnvVarSource) (value string, set bool, err error) {
	var values map[string]string
	var key string
	var optional bool
	switch {
	case source.FieldRef != nil:
		value, err = p.field(object, source.FieldRef.FieldPath)
		return value, true, err
	case source.ResourceFieldRef != nil:
		name := source.ResourceFieldRef.ContainerName
		if name == "" {
			name = container.Name
		}
		value, err = resourceOf(object, name, source.ResourceFieldRef)
		return value, true, err
	case source.ConfigMapKeyRef != nil:
		from := source.ConfigMapKeyRef
		key, optional = from.Key, ptr.Deref(from.Optional, false)
		values, err = p.configMap(ctx, object, from.Name, optional)
	case source.SecretKeyRef != nil:
		from := source.SecretKeyRef
		key, optional = from.Key, ptr.Deref(from.Optional, false)
		values, err = p.secret(ctx, object, from.Name, optional)
	default:
		err = fmt.Errorf("this source of a value is not known here")
	}
	if err != nil {
		return "", false, err
	}
	value, set = values[key]
	if !set && !optional {
		err = fmt.Errorf("key %q is not there", key)
	}
	return value, set, err
}

// field is the value of a field of the Pod, as the downward API names them.
func (p *pod) field(object *v1.Pod, path string) (string, error) {
	if name, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['"); ok {
		switch name {
		case "metadata.labels":
			return object.Labels[key], nil
		case "metadata.annotations":
			return object.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return object.Name, nil
	case "metadata.namespace":
		return object.Namespace, nil
	case "metadata.uid":
		return string(object.UID), nil
	case "metadata.labels":
		return lines(object.Labels), nil
	case "metadata.annotations":
		return lines(object.Annotations), nil
	case "spec.nodeName":
		return object.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return object.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return p.node.address, nil
	case "status.podIP", "status.podIPs":
		return p.address, nil
	}
	return "", fmt.Errorf("the field %q is not known here", path)
}

// resourceOf is a container's request or limit in units of the divisor, rounded up. Who has no limit may use the whole Node.
func resourceOf(object *v1.Pod, container string, from *v1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(from.Resource, ".")
	for _, candidate := range slices.Concat(object.Spec.InitContainers, object.Spec.Containers) {
		if candidate.Name != container {
			continue
		}
		amount := candidate.Resources.Requests[v1.ResourceName(name)]
		if kind == "limits" {
			var limited bool
			if amount, limited = candidate.Resources.Limits[v1.ResourceName(name)]; !limited {
				amount = resources[v1.ResourceName(name)]
			}
		}
		divisor := from.Divisor
		if divisor.IsZero() {
			divisor = resource.MustParse("1")
		}
		// Of processors there are thousandths.
		if name == string(v1.ResourceCPU) {
			return fmt.Sprint((amount.MilliValue() + divisor.MilliValue() - 1) / divisor.MilliValue()), nil
		}
		return fmt.Sprint((amount.Value() + divisor.Value() - 1) / divisor.Value()), nil
	}
	return "", fmt.Errorf("there is no container %q", container)
}

func lines(values map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "%s=%q\n", key, values[key])
	}
	return text.String()
}

func (p *pod) configMap(ctx context.Context, object *v1.Pod, name string, optional bool) (map[string]string, error) {
	found, err := p.node.client.CoreV1().ConfigMaps(object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) && optional {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	values := maps.Clone(found.Data)
	if values == nil {
		values = map[string]string{}
	}
	for key, value := range found.BinaryData {
		values[key] = string(value)
	}
	return values, nil
}

func (p *pod) secret(ctx context.Context, object *v1.Pod, name string, optional bool) (map[string]string, error) {
	found, err := p.node.client.CoreV1().Secrets(object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) && optional {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range found.Data {
		values[key] = string(value)
	}
	return values, nil
}

// expand replaces $(NAME) by the variable's value if there is one, and $$ by $.
func expand(text string, variables []v1.EnvVar) string {
	var expanded strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		expanded.WriteString(before)
		if !found {
			return expanded.String()
		}
		text = after
		if strings.HasPrefix(after, "$") {
			expanded.WriteByte('$')
			text = after[1:]
		} else if name, rest, closed := strings.Cut(after, ")"); closed && strings.HasPrefix(name, "(") {
			expanded.WriteString(valueOf(name[1:], variables))
			text = rest
		} else {
			expanded.WriteByte('$')
		}
	}
}

func valueOf(name string, variables []v1.EnvVar) string {
	for _, variable := range slices.Backward(variables) {
		if variable.Name == name {
			return variable.Value
		}
	}
	return "$(" + name + ")"
}

// texts are the variables as a process gets them: the last one of a name.
func texts(variables []v1.EnvVar) (texts []string) {
	last := map[string]string{}
	for _, variable := range variables {
		last[variable.Name] = variable.Value
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		texts = append(texts, name+"="+last[name])
	}
	return texts
}
