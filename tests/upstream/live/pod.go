package main

import (
	"context"
	"log"
	"os"

	authentication "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// pod is who the argument says, and may not read the ConfigMaps of its namespace.
func pod(ctx context.Context, config *rest.Config) (int, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	differences := 0
	reviews := clients.AuthenticationV1().SelfSubjectReviews()
	review, err := reviews.Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if user := review.Status.UserInfo.Username; user != os.Args[2] {
		log.Printf("the user is %s", user)
		differences++
	}
	_, err = clients.CoreV1().ConfigMaps("t").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if !errors.IsForbidden(err) {
		log.Printf("a ConfigMap was not refused: %v", err)
		differences++
	}
	return differences, nil
}
