package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const siteFinalizer = "example.com/site"

var siteVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// Site is a custom resource, as kubebuilder would write it.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec   `json:"spec"`
	Status            SiteStatus `json:"status,omitempty"`
}

// SiteSpec is what users want.
type SiteSpec struct {
	Text     string   `json:"text"`
	Color    string   `json:"color,omitempty"`
	Replicas *int32   `json:"replicas,omitempty"`
	Tags     []string `json:"tags,omitempty"`
}

// SiteStatus is what the operator has done.
type SiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// SiteList is a list of Sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

func (s *Site) copied() *Site {
	other := *s
	s.ObjectMeta.DeepCopyInto(&other.ObjectMeta)
	if s.Spec.Replicas != nil {
		replicas := *s.Spec.Replicas
		other.Spec.Replicas = &replicas
	}
	other.Spec.Tags = append([]string(nil), s.Spec.Tags...)
	other.Status.Conditions = append([]metav1.Condition(nil), s.Status.Conditions...)
	return &other
}

// DeepCopyObject is what the scheme asks of a kind.
func (s *Site) DeepCopyObject() runtime.Object { return s.copied() }

// DeepCopyObject is what the scheme asks of a kind.
func (l *SiteList) DeepCopyObject() runtime.Object {
	other := *l
	other.Items = make([]Site, len(l.Items))
	for at := range l.Items {
		other.Items[at] = *l.Items[at].copied()
	}
	return &other
}

const sites = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: sites, singular: site, kind: Site, listKind: SiteList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: &subresources
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    selectableFields: &fields [{jsonPath: .spec.color}]
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}]
    schema: &schema
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [text]
            x-kubernetes-validations: [{rule: self.text != 'none', message: say something}]
            properties:
              text: {type: string, maxLength: 100}
              color: {type: string, enum: [red, blue]}
              replicas: {type: integer, format: int32, default: 1, minimum: 0}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
              replicas: {type: integer, format: int32}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status, lastTransitionTime, reason, message]
                  properties:
                    type: {type: string}
                    status: {type: string, enum: ["True", "False", Unknown]}
                    reason: {type: string, minLength: 1}
                    message: {type: string}
                    observedGeneration: {type: integer, format: int64, minimum: 0}
                    lastTransitionTime: {type: string, format: date-time}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    subresources: *subresources
    selectableFields: *fields
    schema: *schema
`
