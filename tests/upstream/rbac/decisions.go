package main

import (
	"context"
	"fmt"
	"math/rand"
	"sort"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// The objects of a policy, as listers have them.
type policy struct {
	ClusterRoles        []rbacv1.ClusterRole
	Roles               []rbacv1.Role
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	RoleBindings        []rbacv1.RoleBinding
}

func (p *policy) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	for i := range p.Roles {
		if p.Roles[i].Namespace == namespace && p.Roles[i].Name == name {
			return &p.Roles[i], nil
		}
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("role"), name)
}

func (p *policy) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	for i := range p.ClusterRoles {
		if p.ClusterRoles[i].Name == name {
			return &p.ClusterRoles[i], nil
		}
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), name)
}

func (p *policy) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	var found []*rbacv1.RoleBinding
	for i := range p.RoleBindings {
		if p.RoleBindings[i].Namespace == namespace {
			found = append(found, &p.RoleBindings[i])
		}
	}
	return found, nil
}

func (p *policy) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	var found []*rbacv1.ClusterRoleBinding
	for i := range p.ClusterRoleBindings {
		found = append(found, &p.ClusterRoleBindings[i])
	}
	return found, nil
}

type request struct {
	User, Verb, Group, Resource, Subresource, Namespace, Name, Path string
	Groups                                                          []string
	Fields                                                          string `json:",omitempty"`
	Allowed                                                         bool
	// All that upstream may say, whatever the order of bindings.
	Reasons []string
}

type drawn struct {
	Policy   *policy
	Requests []request
}

func decisions() []any {
	random := rand.New(rand.NewSource(1))
	var all []any
	for n := 0; n < 400; n++ {
		p := drawPolicy(random)
		line := drawn{Policy: p}
		for m := 0; m < 40; m++ {
			line.Requests = append(line.Requests, decide(p, drawRequest(random)))
		}
		all = append(all, line)
	}
	return all
}

func decide(p *policy, r request) request {
	attributes := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: r.User, Groups: r.Groups}, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group,
		APIVersion: "v1", Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, ResourceRequest: r.Path == "", Path: r.Path,
	}
	decision, reason, err := rbac.New(p, p, p, p).Authorize(context.Background(), attributes)
	check(err)
	r.Allowed = decision == authorizer.DecisionAllow
	r.Reasons = []string{reason}
	if r.Allowed {
		r.Reasons = reasons(p, attributes)
	}
	return r
}

// The reasons for which a request is allowed: those of the cluster come before those of a namespace.
func reasons(p *policy, attributes authorizer.Attributes) []string {
	var ofCluster, ofNamespace []string
	resolver := validation.NewDefaultRuleResolver(p, p, p, p)
	resolver.VisitRulesFor(context.Background(), attributes.GetUser(), attributes.GetNamespace(), func(source fmt.Stringer, rule *rbacv1.PolicyRule, _ error) bool {
		if rule == nil || !rbac.RuleAllows(attributes, rule) {
			return true
		}
		text := "RBAC: allowed by " + source.String()
		if source.String()[0] == 'C' {
			ofCluster = append(ofCluster, text)
		} else {
			ofNamespace = append(ofNamespace, text)
		}
		return true
	})
	if len(ofCluster) > 0 {
		return ofCluster
	}
	return ofNamespace
}

func one(random *rand.Rand, texts ...string) string { return texts[random.Intn(len(texts))] }

func some(random *rand.Rand, most int, texts ...string) []string {
	var chosen []string
	for n := random.Intn(most) + 1; n > 0; n-- {
		chosen = append(chosen, one(random, texts...))
	}
	return chosen
}

var (
	verbs      = []string{"get", "list", "watch", "create", "update", "delete", "escalate"}
	groups     = []string{"", "apps", "ex.io"}
	resources  = []string{"pods", "deployments", "pods/log", "deployments/scale", "widgets"}
	paths      = []string{"/metrics", "/api", "/api/v1", "/healthz", "/healthz/ping", "/"}
	namespaces = []string{"a", "b"}
	names      = []string{"x", "y", "z"}
	users      = []string{"u1", "u2", "system:serviceaccount:a:s", "system:serviceaccount:b:s", "system:anonymous"}
	userGroups = []string{"g1", "g2", "system:authenticated"}
	roleNames  = []string{"r1", "r2", "r3", "r4", "r5"}
)

func drawRule(random *rand.Rand, paths_ bool) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: some(random, 3, append([]string{"*"}, verbs...)...)}
	if paths_ && random.Intn(4) == 0 {
		rule.NonResourceURLs = some(random, 2, append([]string{"*", "/api/*", "/healthz*", "/met**"}, paths...)...)
		return rule
	}
	rule.APIGroups = some(random, 2, append([]string{"*"}, groups...)...)
	rule.Resources = some(random, 3, append([]string{"*", "*/scale", "*/log"}, resources...)...)
	if random.Intn(3) == 0 {
		rule.ResourceNames = some(random, 2, names...)
	}
	return rule
}

func drawRules(random *rand.Rand, paths bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	count := random.Intn(4)
	if random.Intn(8) == 0 {
		count = 12
	}
	for ; count > 0; count-- {
		rules = append(rules, drawRule(random, paths))
	}
	return rules
}

func drawSubjects(random *rand.Rand) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for n := random.Intn(3) + 1; n > 0; n-- {
		switch random.Intn(3) {
		case 0:
			subjects = append(subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: one(random, users...)})
		case 1:
			subjects = append(subjects, rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: one(random, userGroups...)})
		default:
			subjects = append(subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: "s", Namespace: one(random, "", "a", "b")})
		}
	}
	return subjects
}

func drawPolicy(random *rand.Rand) *policy {
	p := &policy{}
	for _, name := range roleNames {
		if random.Intn(4) > 0 {
			p.ClusterRoles = append(p.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: drawRules(random, true)})
		}
		for _, namespace := range namespaces {
			if random.Intn(3) > 0 {
				p.Roles = append(p.Roles, rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Rules: drawRules(random, false)})
			}
		}
	}
	for n := random.Intn(4); n > 0; n-- {
		p.ClusterRoleBindings = append(p.ClusterRoleBindings, rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", n)}, Subjects: drawSubjects(random),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: one(random, roleNames...)},
		})
	}
	for n := random.Intn(6); n > 0; n-- {
		p.RoleBindings = append(p.RoleBindings, rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", n), Namespace: one(random, namespaces...)}, Subjects: drawSubjects(random),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: one(random, "Role", "ClusterRole"), Name: one(random, roleNames...)},
		})
	}
	sort.Slice(p.ClusterRoleBindings, func(i, j int) bool { return p.ClusterRoleBindings[i].Name < p.ClusterRoleBindings[j].Name })
	sort.Slice(p.RoleBindings, func(i, j int) bool { return p.RoleBindings[i].Name < p.RoleBindings[j].Name })
	return p
}

func drawRequest(random *rand.Rand) request {
	r := request{User: one(random, users...), Verb: one(random, verbs...)}
	for _, group := range userGroups {
		if random.Intn(2) == 0 {
			r.Groups = append(r.Groups, group)
		}
	}
	if random.Intn(6) == 0 {
		r.Path = one(random, paths...)
		return r
	}
	r.Group, r.Resource = one(random, groups...), one(random, "pods", "deployments", "widgets")
	r.Subresource = one(random, "", "", "log", "scale")
	r.Namespace, r.Name = one(random, "", "a", "b"), one(random, "", "x", "y", "z")
	return r
}
