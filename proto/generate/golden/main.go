// Golden writes what upstream's Go types make of bytes and texts, for rowplane's tests to compare with.
//
//	cd proto/generate && go run ./golden objects > ../../crates/objects/src/codec/protobuf/golden.tsv
//	cd proto/generate && go run ./golden quantities > ../../src/quantity/golden.tsv
//
// Objects are one per line, the envelope in base64, a tab, and the JSON of the object after decoding.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"rowplane/proto/generate/kinds"
)

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 2 && os.Args[1] == "objects":
		if err := printObjects(); err != nil {
			log.Fatal(err)
		}
	case len(os.Args) == 2 && os.Args[1] == "quantities":
		printQuantities()
	default:
		log.Fatal("usage: golden objects|quantities")
	}
}

func printObjects() error {
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	meta.AddToGroupVersion(scheme, core.SchemeGroupVersion)
	serializer := protobuf.NewSerializer(scheme, scheme)
	objects, err := objects(scheme)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := print(serializer, scheme, object); err != nil {
			return fmt.Errorf("%T: %w", object, err)
		}
	}
	return nil
}

func print(serializer *protobuf.Serializer, scheme *runtime.Scheme, object runtime.Object) error {
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	var encoded bytes.Buffer
	if err := serializer.Encode(object, &encoded); err != nil {
		return err
	}
	decoded, _, err := serializer.Decode(encoded.Bytes(), nil, nil)
	if err != nil {
		return err
	}
	decoded.GetObjectKind().SetGroupVersionKind(kinds[0])
	text, err := json.Marshal(decoded)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\t%s\n", base64.StdEncoding.EncodeToString(encoded.Bytes()), text)
	return err
}
