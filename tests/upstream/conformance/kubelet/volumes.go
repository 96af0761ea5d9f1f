package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

// makeVolumes writes the Pod's volumes, each into a directory.
func (p *pod) makeVolumes(ctx context.Context, object *v1.Pod) error {
	if err := os.MkdirAll(filepath.Join(p.dir(), "volumes"), 0o755); err != nil {
		return err
	}
	for _, volume := range object.Spec.Volumes {
		if volume.HostPath != nil {
			if err := p.linkHostPath(&volume); err != nil {
				return fmt.Errorf("%s: %w", volume.Name, err)
			}
			continue
		}
		files, err := p.files(ctx, object, &volume)
		if err == nil {
			err = write(filepath.Join(p.dir(), "volumes", volume.Name), files, modesOf(&volume))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", volume.Name, err)
		}
	}
	return nil
}

// followVolumes writes what has changed in what volumes show, until ctx ends.
func (p *pod) followVolumes(ctx context.Context, object *v1.Pod) {
	for _, volume := range object.Spec.Volumes {
		if volume.HostPath != nil || volume.EmptyDir != nil {
			continue
		}
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			if files, err := p.files(ctx, p.current(), &volume); err == nil {
				if err := write(filepath.Join(p.dir(), "volumes", volume.Name), files, modesOf(&volume)); err != nil {
					log.Printf("volumes of %s/%s: %v", object.Namespace, object.Name, err)
				}
			}
		}, 2*time.Second)
	}
}

// linkHostPath makes the volume a directory that all Pods of the Node share. It is not one of this machine's.
func (p *pod) linkHostPath(volume *v1.Volume) error {
	shared, err := filepath.Abs(filepath.Join(p.node.dir, "host-"+p.node.name, volume.HostPath.Path))
	if err == nil {
		err = os.MkdirAll(shared, 0o777)
	}
	if err == nil {
		err = os.Symlink(shared, filepath.Join(p.dir(), "volumes", volume.Name))
	}
	if os.IsExist(err) {
		return nil
	}
	return err
}

// write makes the directory hold these files, and of others those that nobody has written here.
func write(dir string, files map[string]string, modes modes) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	list := dir + ".files"
	if before, err := os.ReadFile(list); err == nil {
		for _, name := range strings.Split(string(before), "\n") {
			if _, stays := files[name]; name != "" && !stays {
				if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
					return err
				}
			}
		}
	}
	names := slices.Sorted(maps.Keys(files))
	if err := os.WriteFile(list, []byte(strings.Join(names, "\n")), 0o644); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if before, err := os.ReadFile(path); err == nil && string(before) == content {
			continue
		}
		// Readers see the old content or the new one.
		if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
			return err
		}
		if err := os.Chmod(path+".new", modes.of(name)); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// modes are the permissions of a volume's files: those that an item names for its path, and the volume's own for all others.
type modes struct {
	byPath map[string]int32
	others *int32
}

func (m modes) of(path string) os.FileMode {
	mode, named := m.byPath[path]
	if !named {
		mode = ptr.Deref(m.others, 0o644)
	}
	return os.FileMode(mode)
}

func modesOf(volume *v1.Volume) modes {
	found := modes{byPath: map[string]int32{}}
	note := func(path string, mode *int32) {
		if mode != nil {
			found.byPath[path] = *mode
		}
	}
	keys := func(items []v1.KeyToPath) {
		for _, item := range items {
			note(item.Path, item.Mode)
		}
	}
	fields := func(items []v1.DownwardAPIVolumeFile) {
		for _, item := range items {
			note(item.Path, item.Mode)
		}
	}
	switch {
	case volume.Secret != nil:
		found.others = volume.Secret.DefaultMode
		keys(volume.Secret.Items)
	case volume.ConfigMap != nil:
		found.others = volume.ConfigMap.DefaultMode
		keys(volume.ConfigMap.Items)
	case volume.DownwardAPI != nil:
		found.others = volume.DownwardAPI.DefaultMode
		fields(volume.DownwardAPI.Items)
	case volume.Projected != nil:
		found.others = volume.Projected.DefaultMode
		for _, source := range volume.Projected.Sources {
			switch {
			case source.Secret != nil:
				keys(source.Secret.Items)
			case source.ConfigMap != nil:
				keys(source.ConfigMap.Items)
			case source.DownwardAPI != nil:
				fields(source.DownwardAPI.Items)
			}
		}
	}
	return found
}

// files are the contents of a volume by path.
func (p *pod) files(ctx context.Context, object *v1.Pod, volume *v1.Volume) (map[string]string, error) {
	switch {
	case volume.EmptyDir != nil:
		return nil, nil
	case volume.Secret != nil:
		optional := ptr.Deref(volume.Secret.Optional, false)
		values, err := p.secret(ctx, object, volume.Secret.SecretName, optional)
		return chosen(values, volume.Secret.Items, optional, err)
	case volume.ConfigMap != nil:
		optional := ptr.Deref(volume.ConfigMap.Optional, false)
		values, err := p.configMap(ctx, object, volume.ConfigMap.Name, optional)
		return chosen(values, volume.ConfigMap.Items, optional, err)
	case volume.DownwardAPI != nil:
		return p.downward(object, volume.DownwardAPI.Items)
	case volume.Projected != nil:
		return p.projected(ctx, object, volume.Projected.Sources)
	}
	return nil, fmt.Errorf("volumes of this kind are not known here")
}

// chosen are the values under the paths that `items` give them, or all under their keys.
func chosen(values map[string]string, items []v1.KeyToPath, optional bool, err error) (map[string]string, error) {
	if err != nil || len(items) == 0 {
		return values, err
	}
	files := map[string]string{}
	for _, item := range items {
		value, there := values[item.Key]
		if !there && !optional {
			return nil, fmt.Errorf("key %q is not there", item.Key)
		} else if there {
			files[item.Path] = value
		}
	}
	return files, nil
}

func (p *pod) downward(object *v1.Pod, items []v1.DownwardAPIVolumeFile) (map[string]string, error) {
	files := map[string]string{}
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = p.field(object, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = resourceOf(object, item.ResourceFieldRef.ContainerName, item.ResourceFieldRef)
		}
		if err != nil {
			return nil, err
		}
		files[item.Path] = strings.TrimSuffix(value, "\n")
	}
	return files, nil
}

func (p *pod) projected(ctx context.Context, object *v1.Pod, sources []v1.VolumeProjection) (map[string]string, error) {
	files := map[string]string{}
	for _, source := range sources {
		some, err := p.projection(ctx, object, source)
		if err != nil {
			return nil, err
		}
		for path, content := range some {
			files[path] = content
		}
	}
	return files, nil
}

func (p *pod) projection(ctx context.Context, object *v1.Pod, source v1.VolumeProjection) (map[string]string, error) {
	switch {
	case source.Secret != nil:
		optional := ptr.Deref(source.Secret.Optional, false)
		values, err := p.secret(ctx, object, source.Secret.Name, optional)
		return chosen(values, source.Secret.Items, optional, err)
	case source.ConfigMap != nil:
		optional := ptr.Deref(source.ConfigMap.Optional, false)
		values, err := p.configMap(ctx, object, source.ConfigMap.Name, optional)
		return chosen(values, source.ConfigMap.Items, optional, err)
	case source.DownwardAPI != nil:
		return p.downward(object, source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		token, err := p.token(ctx, object, source.ServiceAccountToken)
		return map[string]string{source.ServiceAccountToken.Path: token}, err
	}
	return nil, fmt.Errorf("sources of this kind are not known here")
}

// token is a token of the Pod's service account that ends with the Pod. It is asked for once: no test waits for its end.
func (p *pod) token(ctx context.Context, object *v1.Pod, source *v1.ServiceAccountTokenProjection) (string, error) {
	key := fmt.Sprintf("%s %d", source.Audience, ptr.Deref(source.ExpirationSeconds, 0))
	if known, ok := p.tokens.Load(key); ok {
		return known.(string), nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: object.Name,
			UID: object.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	answer, err := p.node.client.CoreV1().ServiceAccounts(object.Namespace).CreateToken(ctx,
		object.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	p.tokens.Store(key, answer.Status.Token)
	return answer.Status.Token, nil
}
