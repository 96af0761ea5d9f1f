// Golden writes objects as upstream's Go types encode them: one per line, the envelope in base64, a tab, and the
// JSON of the object after decoding.
//
//	cd proto/generate && go run ./golden > ../../src/codec/protobuf/golden.tsv
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func main() {
	scheme := newScheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	for _, object := range objects() {
		if err := print(serializer, scheme, object); err != nil {
			log.Fatal(err)
		}
	}
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
