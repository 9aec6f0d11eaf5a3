package engine

import "testing"

func TestImage(t *testing.T) {
	for _, kind := range Kinds() {
		t.Setenv(Variable(kind), "")
		if got := Image(kind); got != official[kind] || got == "" && kind != "s3" {
			t.Errorf("the image for %s is %q", kind, got)
		}
		t.Setenv(Variable(kind), "mirror.example:5000/"+kind)
		if got := Image(kind); got != "mirror.example:5000/"+kind {
			t.Errorf("the image for %s is %q in spite of %s", kind, got, Variable(kind))
		}
	}
}

func TestRegistry(t *testing.T) {
	for name, want := range map[string]string{
		"postgres:17":                         "docker.io",
		"amazon/dynamodb-local:3.3.1":         "docker.io",
		"gcr.io/etcd-development/etcd:v3.7.3": "gcr.io",
		"localhost/etcd":                      "localhost",
		"mirror:5000/etcd:v3":                 "mirror:5000",
	} {
		if got := registry(name); got != want {
			t.Errorf("the registry of %s is %s, want %s", name, got, want)
		}
	}
}
