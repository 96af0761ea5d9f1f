// Asks upstream's Priority and Fairness where requests belong, for rowplane's classification (src/flow_control) to compare with.
//
//	go run ./fairness ../../testdata/flowcontrol/classified.json.gz
//
// draws FlowSchemas and requests at random, from few names, so that most requests match something, and writes for each set
// of FlowSchemas and each request the FlowSchema and what distinguishes the request's flow; and for hashes which queues
// they deal.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"time"

	v1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	flowrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/apiserver/pkg/util/shufflesharding"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
)

const (
	sets     = 60
	schemas  = 12
	requests = 100
)

var draw = rand.New(rand.NewSource(1))

func one(texts ...string) string { return texts[draw.Intn(len(texts))] }

func some(all string, texts ...string) []string {
	if draw.Intn(4) == 0 {
		return []string{all}
	}
	picked := []string{}
	for _, text := range texts {
		if draw.Intn(2) == 0 {
			picked = append(picked, text)
		}
	}
	return picked
}

func subject() v1.Subject {
	switch draw.Intn(3) {
	case 0:
		return v1.Subject{Kind: v1.SubjectKindUser, User: &v1.UserSubject{Name: one("*", "alice", "bob", "system:serviceaccount:n:a")}}
	case 1:
		return v1.Subject{Kind: v1.SubjectKindGroup, Group: &v1.GroupSubject{Name: one("*", "g", "h", "system:authenticated")}}
	default:
		return v1.Subject{Kind: v1.SubjectKindServiceAccount, ServiceAccount: &v1.ServiceAccountSubject{
			Namespace: one("n", "nn", "m"), Name: one("*", "a", "ab")}}
	}
}

func rules() []v1.PolicyRulesWithSubjects {
	all := []v1.PolicyRulesWithSubjects{}
	for range 1 + draw.Intn(2) {
		rule := v1.PolicyRulesWithSubjects{Subjects: []v1.Subject{subject()}}
		if draw.Intn(3) > 0 {
			rule.Subjects = append(rule.Subjects, subject())
		}
		for range draw.Intn(3) {
			rule.ResourceRules = append(rule.ResourceRules, v1.ResourcePolicyRule{
				Verbs:        some("*", "get", "list", "watch", "create"),
				APIGroups:    some("*", "", "apps"),
				Resources:    some("*", "pods", "pods/log", "deployments", "deployments/status"),
				Namespaces:   some("*", "n", "m"),
				ClusterScope: draw.Intn(2) == 0,
			})
		}
		for range draw.Intn(3) {
			rule.NonResourceRules = append(rule.NonResourceRules, v1.NonResourcePolicyRule{
				Verbs:           some("*", "get", "post"),
				NonResourceURLs: some("*", "/a", "/a/*", "/healthz", "/metrics/"),
			})
		}
		all = append(all, rule)
	}
	return all
}

func schema(index int) *v1.FlowSchema {
	flow := &v1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("f%02d", index)},
		Spec: v1.FlowSchemaSpec{
			MatchingPrecedence:         int32(2 + draw.Intn(8)*1000),
			PriorityLevelConfiguration: v1.PriorityLevelConfigurationReference{Name: one("l", "l", "l", "none")},
			Rules:                      rules(),
		},
	}
	if method := one("", "ByUser", "ByNamespace"); method != "" {
		flow.Spec.DistinguisherMethod = &v1.FlowDistinguisherMethod{Type: v1.FlowDistinguisherMethodType(method)}
	}
	return flow
}

type asked struct {
	User          string   `json:"user"`
	Groups        []string `json:"groups"`
	Verb          string   `json:"verb"`
	Group         string   `json:"group"`
	Resource      string   `json:"resource"`
	Subresource   string   `json:"subresource"`
	Namespace     string   `json:"namespace"`
	Path          string   `json:"path"`
	Flow          string   `json:"flow"`
	Distinguisher string   `json:"distinguisher"`
}

func ask() asked {
	a := asked{
		User:   one("alice", "bob", "carol", "system:serviceaccount:n:a", "system:serviceaccount:nn:ab", "system:serviceaccount:m:a"),
		Groups: some("g", "h", "system:authenticated", "system:masters"),
	}
	if draw.Intn(3) == 0 {
		a.Verb, a.Path = one("get", "post", "head"), one("/a", "/a/b", "/ab", "/healthz", "/metrics", "/metrics/x", "/")
		return a
	}
	a.Verb = one("get", "list", "watch", "create", "delete")
	a.Group, a.Resource = one("", "apps"), one("pods", "deployments")
	a.Subresource, a.Namespace = one("", "", "log", "status"), one("", "n", "m", "k")
	return a
}

func classify(control flowcontrol.Interface, a *asked) {
	digest := flowcontrol.RequestDigest{
		User: &user.DefaultInfo{Name: a.User, Groups: a.Groups},
		RequestInfo: &request.RequestInfo{
			IsResourceRequest: a.Resource != "", Path: a.Path, Verb: a.Verb, APIGroup: a.Group, APIVersion: "v1",
			Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace,
		},
	}
	control.Handle(context.Background(), digest,
		func(flow *v1.FlowSchema, _ *v1.PriorityLevelConfiguration, distinguisher string) {
			a.Flow, a.Distinguisher = flow.Name, distinguisher
		},
		func() flowrequest.WorkEstimate { return flowrequest.WorkEstimate{InitialSeats: 1} },
		func(bool) {}, func() {})
}

type set struct {
	Levels   []runtime.Object `json:"levels"`
	Flows    []*v1.FlowSchema `json:"flows"`
	Requests []asked          `json:"requests"`
}

func drawSet() set {
	shares, queues := int32(30), v1.QueuingConfiguration{Queues: 64, HandSize: 6, QueueLengthLimit: 50}
	level := &v1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "l"},
		Spec: v1.PriorityLevelConfigurationSpec{Type: v1.PriorityLevelEnablementLimited, Limited: &v1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &shares,
			LimitResponse:            v1.LimitResponse{Type: v1.LimitResponseTypeQueue, Queuing: &queues},
		}},
	}
	objects, flows := []runtime.Object{level}, []*v1.FlowSchema{}
	for index := range schemas {
		flow := schema(index)
		flows, objects = append(flows, flow), append(objects, flow)
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	control := flowcontrol.New(factory, client.FlowcontrolV1(), 600)
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	go control.Run(stop)
	told := func() bool {
		list, err := client.FlowcontrolV1().FlowSchemas().List(context.Background(), metav1.ListOptions{})
		if err != nil {
			log.Fatal(err)
		}
		for _, flow := range list.Items {
			if len(flow.Status.Conditions) == 0 {
				return false
			}
		}
		return true
	}
	for !told() {
		time.Sleep(10 * time.Millisecond)
	}
	result := set{Levels: []runtime.Object{level}, Flows: flows}
	for range requests {
		a := ask()
		classify(control, &a)
		result.Requests = append(result.Requests, a)
	}
	return result
}

type hand struct {
	Queues int    `json:"queues"`
	Size   int    `json:"size"`
	Hash   string `json:"hash"`
	Cards  []int  `json:"cards"`
}

func drawHand() hand {
	shape := [][2]int{{128, 6}, {64, 6}, {16, 4}, {64, 8}, {1, 1}, {10, 10}}[draw.Intn(6)]
	dealer, err := shufflesharding.NewDealer(shape[0], shape[1])
	if err != nil {
		log.Fatal(err)
	}
	hash := draw.Uint64()
	return hand{shape[0], shape[1], fmt.Sprint(hash), dealer.DealIntoHand(hash, make([]int, shape[1]))}
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(os.NewFile(0, os.DevNull))
	result := struct {
		Sets  []set  `json:"sets"`
		Hands []hand `json:"hands"`
	}{}
	for range sets {
		result.Sets = append(result.Sets, drawSet())
	}
	for range 500 {
		result.Hands = append(result.Hands, drawHand())
	}
	file, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	if err := json.NewEncoder(packed).Encode(result); err != nil {
		log.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
}
