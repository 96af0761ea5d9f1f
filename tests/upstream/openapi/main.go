// Openapi compares the protobuf forms of a running rowplane's OpenAPI documents with what upstream would serve: gnostic's
// own parse of the JSON form.
//
//	openapi -kubeconfig FILE
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)
	path := flag.String("kubeconfig", "", "of the server")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *path)
	if err != nil {
		log.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	differences, err := compare(context.Background(), client.RESTClient())
	if err != nil {
		log.Fatal(err)
	}
	if differences > 0 {
		os.Exit(1)
	}
}

func compare(ctx context.Context, client rest.Interface) (int, error) {
	index := struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}{}
	if err := get(ctx, client, "/openapi/v3", "application/json", func(body []byte) error {
		return json.Unmarshal(body, &index)
	}); err != nil {
		return 0, err
	}
	paths := []string{"/openapi/v2"}
	for path := range index.Paths {
		paths = append(paths, "/openapi/v3/"+path)
	}
	sort.Strings(paths)
	differences := 0
	for _, path := range paths {
		same, err := compareOne(ctx, client, path)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if !same {
			log.Printf("%s differs", path)
			differences++
		}
	}
	log.Printf("openapi: %d documents, %d differences", len(paths), differences)
	return differences, nil
}

func compareOne(ctx context.Context, client rest.Interface, path string) (bool, error) {
	version, served := "v3", proto.Message(&openapiv3.Document{})
	if path == "/openapi/v2" {
		version, served = "v2", &openapiv2.Document{}
	}
	var parsed proto.Message
	err := get(ctx, client, path, "application/json", func(body []byte) (err error) {
		if version == "v2" {
			parsed, err = openapiv2.ParseDocument(body)
		} else {
			parsed, err = openapiv3.ParseDocument(body)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	media := "application/com.github.proto-openapi.spec." + version + "@v1.0+protobuf"
	if err := get(ctx, client, path, media, func(body []byte) error {
		return proto.Unmarshal(body, served)
	}); err != nil {
		return false, err
	}
	for _, message := range []proto.Message{parsed, served} {
		if err := normalize(message.ProtoReflect()); err != nil {
			return false, err
		}
	}
	return proto.Equal(parsed, served), nil
}

func get(ctx context.Context, client rest.Interface, path, accept string, read func([]byte) error) error {
	body, err := client.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return read(body)
}

// normalize gives values of extensions one text: gnostic prints them as YAML in its own style.
func normalize(message protoreflect.Message) (err error) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList() && field.Message() != nil:
			for i := 0; i < value.List().Len() && err == nil; i++ {
				err = normalize(value.List().Get(i).Message())
			}
		case field.Message() != nil:
			err = normalize(value.Message())
		case field.Name() == "yaml":
			var text []byte
			if text, err = yaml.YAMLToJSON([]byte(value.String())); err == nil {
				message.Set(field, protoreflect.ValueOfString(string(text)))
			}
		}
		return err == nil
	})
	return err
}
