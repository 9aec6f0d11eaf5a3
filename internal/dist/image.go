package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// userID is that of nonroot in images without a distribution.
const userID = "65532"

// image writes an image for containers as an archive that docker load, podman load and
// skopeo read: an OCI layout, with the list that older releases of Docker ask for. It has
// no shell and no certificates.
func (r *release) image(p platform, files []file) error {
	var inside []file
	for _, f := range files {
		switch {
		case f.name == "elector":
			inside = append(inside, f)
		case strings.HasPrefix(f.name, "LICENSE"):
			f.name = "usr/share/doc/elector/" + f.name
			inside = append(inside, f)
		}
	}
	inside = append(inside,
		file{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:" + userID + ":" + userID + ":nonroot:/:/sbin/nologin\n")},
		file{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:" + userID + ":\n")},
	)
	root, err := tarball(inside, r.time)
	if err != nil {
		return err
	}
	layer, err := zipped(root)
	if err != nil {
		return err
	}

	var layout []file
	blob := func(kind string, content []byte) object {
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		layout = append(layout, file{"blobs/sha256/" + sum, 0o644, content})
		return object{"mediaType": kind, "digest": "sha256:" + sum, "size": len(content)}
	}
	labels := object{
		"org.opencontainers.image.title":    "elector",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.source":   "https://github.com/elector-go/elector",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	created := r.time.Format(time.RFC3339)
	layers := []object{blob("application/vnd.oci.image.layer.v1.tar+gzip", layer)}
	config := blob("application/vnd.oci.image.config.v1+json", encoded(object{
		"created": created, "os": p.system, "architecture": p.arch,
		"config":  object{"User": userID + ":" + userID, "Entrypoint": []string{"/elector"}, "Labels": labels},
		"rootfs":  object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(root))}},
		"history": []object{{"created": created, "created_by": "make dist"}},
	}))
	manifest := blob("application/vnd.oci.image.manifest.v1+json", encoded(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
	}))
	name := "elector:" + r.version
	manifest["platform"] = object{"os": p.system, "architecture": p.arch}
	manifest["annotations"] = object{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/" + name}
	layout = append(layout,
		file{"oci-layout", 0o644, encoded(object{"imageLayoutVersion": "1.0.0"})},
		file{"index.json", 0o644, encoded(object{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []object{manifest}})},
		file{"manifest.json", 0o644, encoded([]object{{
			"Config": place(config), "RepoTags": []string{name}, "Layers": []string{place(layers[0])}}})},
	)
	packed, err := tarball(layout, r.time)
	if err != nil {
		return err
	}
	return r.write(r.name(p)+".image.tar", packed)
}

// An object is one of JSON, which is encoded in the order of its names.
type object map[string]any

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // all that is encoded is in image
	}
	return b
}

// place is where a blob stands in the layout.
func place(blob object) string {
	return "blobs/" + strings.Replace(blob["digest"].(string), ":", "/", 1)
}
