// Generate writes proto/: the kinds of Kubernetes as .proto files, read off upstream's Go types.
//
//	cd proto/generate && go generate ./definitions && go run . ..
//
// Moving to the next version of Kubernetes is `go get` of its modules, another run, and reading the diff. A field
// whose number or type differs from the file that is there is an error.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	admissionregistrationbeta "k8s.io/api/admissionregistration/v1beta1"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metabeta "k8s.io/apimachinery/pkg/apis/meta/v1beta1"

	"rowplane/proto/generate/kinds"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: generate DIRECTORY")
	}
	if err := generate(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func generate(directory string) error {
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	model := newModel()
	for _, root := range kinds.Meta {
		if err := model.addRoot(root); err != nil {
			return err
		}
	}
	if err := model.addRoots(metabeta.SchemeGroupVersion, kinds.MetaBeta); err != nil {
		return err
	}
	if err := model.addRoots(apidiscovery.SchemeGroupVersion, kinds.Discovery); err != nil {
		return err
	}
	if err := model.addRoots(admissionregistrationbeta.SchemeGroupVersion, kinds.AdmissionBeta); err != nil {
		return err
	}
	for _, served := range kinds.Served {
		if err := model.addGroupVersion(scheme, served); err != nil {
			return err
		}
	}
	for path, file := range model.files {
		target := filepath.Join(directory, path)
		text := render(file)
		if err := checkUnchanged(target, text); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files, %d messages\n", len(model.files), len(model.messages))
	return nil
}
