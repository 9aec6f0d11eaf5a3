package kubernetes

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// TokenAnnotation is the annotation in which a fenced object keeps the token of the
// leader that wrote it, in decimal: see Fencing.
const TokenAnnotation = "elector-go.github.io/token"

// What a Lease of an election has in its metadata.
const (
	recordAnnotation   = "elector-go.github.io/record"
	electionAnnotation = "elector-go.github.io/election"
	managedBy          = "app.kubernetes.io/managed-by" // a label
	managedByElector   = "elector"
)

// A lease is an object of coordination.k8s.io/v1. What is left out of its metadata
// belongs to the API server, which keeps it.
type lease struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name            string            `json:"name"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	OwnerReferences json.RawMessage   `json:"ownerReferences,omitempty"`
	Finalizers      []string          `json:"finalizers,omitempty"`
	Untouched       untouched         `json:"managedFields,omitzero"` // read only
}

// version returns what a Swap compares: the UID and the resource version. A third part
// shows that the Lease is untouched.
func (m metadata) version() backends.Version {
	v := m.UID + "/" + m.ResourceVersion
	if m.Untouched {
		v += untouchedMark
	}
	return backends.Version(v)
}

const untouchedMark = "/untouched"

// parseVersion takes a version apart.
func parseVersion(v backends.Version) (uid, resourceVersion string, ok bool) {
	text, _ := strings.CutSuffix(string(v), untouchedMark)
	uid, resourceVersion, ok = strings.Cut(text, "/")
	return uid, resourceVersion, ok && uid != "" && resourceVersion != ""
}

// untouched is set if the API server knows that an elector wrote the record last: another
// program that changes the annotation, to restore it for example, becomes its manager.
type untouched bool

// UnmarshalJSON reads metadata.managedFields.
func (u *untouched) UnmarshalJSON(text []byte) error {
	var all []struct {
		Manager  string
		FieldsV1 struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
	}
	*u = false
	if json.Unmarshal(text, &all) != nil {
		return nil // it is for the API server alone
	}
	for _, m := range all {
		if _, has := m.FieldsV1.Metadata.Annotations["f:"+recordAnnotation]; has {
			if *u = m.Manager == userAgent; !*u {
				return nil
			}
		}
	}
	return nil
}

// SameWrite implements [backends.SameWriter]. Labels, annotations and owners that other
// programs add, by kubectl annotate for example, change the resource version, but not the
// manager of the record.
func (b *Backend) SameWrite(before, after backends.Version) bool {
	was, _, ok := parseVersion(before)
	is, _, ok2 := parseVersion(after)
	return ok && ok2 && was == is && strings.HasSuffix(string(after), untouchedMark)
}

// A spec is for people and kubectl. The elector never reads it.
type spec struct {
	HolderIdentity       string `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds int    `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          string `json:"acquireTime,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
	LeaseTransitions     int    `json:"leaseTransitions,omitempty"`
}

// with returns the Lease of a state with another record.
func (s state) with(name string, next backends.Record) lease {
	l := s.lease
	l.Metadata.Untouched = false // of the API server
	l.APIVersion, l.Kind, l.Metadata.Name = "coordination.k8s.io/v1", "Lease", objectName(name)
	l.Metadata.Labels = added(l.Metadata.Labels, managedBy, managedByElector)
	l.Metadata.Annotations = added(l.Metadata.Annotations, electionAnnotation, name)
	l.Metadata.Annotations = added(l.Metadata.Annotations, recordAnnotation, string(backends.Encode(name, next)))
	if next.Attempt == s.record.Attempt {
		return l // another process has changed an extension
	}
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	if next.Attempt.Nonce != s.record.Attempt.Nonce && !next.Vacant() {
		l.Spec.AcquireTime = now
		if s.record.Exists() {
			l.Spec.LeaseTransitions++
		}
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime = next.Holder, now
	l.Spec.LeaseDurationSeconds = int((next.TTL + time.Second - 1) / time.Second)
	return l
}

func added(m map[string]string, key, value string) map[string]string {
	if m = maps.Clone(m); m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

var (
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	hashed    = regexp.MustCompile(`--[0-9a-v]{16}$`)
	notPlain  = regexp.MustCompile(`[^a-z0-9]+`)
	base32hex = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)
)

// objectName returns the name of the election's Lease. That is the name itself if
// Kubernetes allows it: lower-case letters, digits, '-' and '.', with a letter or
// digit on both sides of each '.' and at both ends. In any other name '-' stands
// for what Kubernetes does not allow, and 80 bits of the name's SHA-256 follow, in
// a form that no name keeps for itself. The record has the name too, so that even
// two names with one hash could not share a record.
func objectName(name string) string {
	if subdomain.MatchString(name) && !hashed.MatchString(name) {
		return name
	}
	readable := strings.Trim(notPlain.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if readable == "" {
		readable = "election"
	}
	sum := sha256.Sum256([]byte(name))
	return readable + "--" + base32hex.EncodeToString(sum[:10])
}
