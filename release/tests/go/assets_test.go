// Package assets starts what an envtest archive has, as tests of operators do.
package assets

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestAssets takes the programs from KUBEBUILDER_ASSETS.
func TestAssets(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set")
	}
	firstObject(t, &envtest.Environment{})
}

// TestDownload lets the environment fetch them by an index.
func TestDownload(t *testing.T) {
	firstObject(t, &envtest.Environment{
		DownloadBinaryAssets:         true,
		DownloadBinaryAssetsVersion:  os.Getenv("VERSION"),
		DownloadBinaryAssetsIndexURL: os.Getenv("INDEX"),
		BinaryAssetsDirectory:        os.Getenv("BIN"),
	})
}

func firstObject(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	if err := c.Create(context.Background(), object); err != nil {
		t.Fatal(err)
	}
	if object.UID == "" {
		t.Error("the first object has no uid")
	}
}
