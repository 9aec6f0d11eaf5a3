package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/elector-go/elector/backends"
)

// An Endpoint is where a Service leads to while its process is the leader.
type Endpoint struct {
	Service  string     // of the handle's namespace. It has no selector: see PointService
	Address  netip.Addr // of the pod, its status.podIP
	Port     int        // of the pod
	PortName string     // of the Service's port; empty if that has none
	Pod      string     // name of the pod, for people and kubectl; may be empty

	// Logger gets a line for each new reason why the Service cannot be changed. Nil
	// means slog.Default().
	Logger *slog.Logger
}

// A Holder is the lease of package elector, or of package partition.
type Holder interface {
	backends.Lease
	Remaining() time.Duration
}

// PointService returns work with a Service beside it that leads to this pod alone, while
// this process leads: for clients that know no leader. Pass the result to
// elector.Elector.Run.
//
// The Service has no selector, so no controller manages its endpoints. PointService keeps
// them in the EndpointSlice SERVICE-leader, of which it needs the right to get, create and
// update it. It puts the address in when work begins, and takes it out when work is told
// to stop, before work returns and so before the lease ends; and also while the lease is
// about to end, when less than a quarter of its TTL is left, because the election's store
// does not answer. It takes it out after a loss too, for 5 s.
//
// A leader that cannot reach the API server cannot take its address out. Then the next
// leader replaces it, TTL*(1+ClockDrift) after the last renewal; until then the former
// leader gets requests, and refuses them by Lease.Check. The slice has the fencing token in
// the annotation [TokenAnnotation], and is changed by compare-and-swap, so a late write of
// a former leader does not undo that of the next one. A Service belongs to one election.
//
// The endpoints of a Service are known to its clients a moment later. PointService does
// not block work: an API server that does not answer stops no leader. It returns
// [backends.ErrMisconfigured] for an Endpoint that no Service can have, and
// [backends.ErrReadOnly] if b was opened for reading alone.
func PointService[L Holder](b *Backend, e Endpoint, work func(context.Context, L) error) (func(context.Context, L) error, error) {
	switch {
	case !namespaceName.MatchString(e.Service):
		return nil, fmt.Errorf("%w: %q is not the name of a Service", backends.ErrMisconfigured, e.Service)
	case !e.Address.IsValid() || e.Address.IsUnspecified() || e.Address.Zone() != "":
		return nil, fmt.Errorf("%w: %v is not the address of a pod", backends.ErrMisconfigured, e.Address)
	case e.Port < 1 || e.Port > 65535:
		return nil, fmt.Errorf("%w: %d is not a port", backends.ErrMisconfigured, e.Port)
	}
	if err := b.Describe().Writable(); err != nil {
		return nil, err
	}
	if e.Logger == nil {
		e.Logger = slog.Default()
	}
	return func(ctx context.Context, lease L) error {
		a, err := lease.Acquisition()
		if err != nil {
			return err
		}
		p := &pointer{b: b, e: e, lease: lease, token: a.Record.Token, ttl: a.Record.TTL}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.follow(ctx)
		}()
		defer func() { // also if work panics
			cancel()
			<-done
		}()
		return work(ctx, lease)
	}, nil
}

// A pointer keeps the endpoints of a Service in one term. One goroutine owns it.
type pointer struct {
	b     *Backend
	e     Endpoint
	lease Holder
	token uint64
	ttl   time.Duration

	known  slice  // what the slice has, as far as this process knows
	sent   bool   // a write with the address may still be applied, unless another one is before it
	logged string // why it could not be changed
}

// A slice is whether the EndpointSlice has this pod's address.
type slice uint8

const (
	unknown slice = iota
	without
	with
)

// The times of a pointer.
const (
	pointTimeout = 5 * time.Second // of a change, and of all tries after the end
	pointPause   = 250 * time.Millisecond
)

// follow points the Service to this pod while the lease has time left, and away from it
// once ctx has ended.
func (p *pointer) follow(ctx context.Context) {
	for ctx.Err() == nil {
		left, wanted, wait := p.lease.Remaining()-p.ttl/4, without, p.ttl/20
		if left > 0 {
			wanted, wait = with, left
		}
		switch err := p.point(ctx, wanted); {
		case errors.Is(err, backends.ErrStale):
			return // another process leads, and points the Service
		case err != nil:
			wait = pointPause
		}
		pause(ctx, wait)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), pointTimeout)
	defer cancel()
	for last.Err() == nil {
		if err := p.point(last, without); err == nil || errors.Is(err, backends.ErrStale) {
			return
		}
		pause(last, pointPause)
	}
}

// pause blocks for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(d, time.Millisecond))
	defer cancel()
	<-ctx.Done()
}

// point makes the slice have the address, or not, and logs why it could not.
func (p *pointer) point(ctx context.Context, wanted slice) error {
	if p.known == wanted {
		return nil
	}
	p.known = unknown // a write may be applied later
	limited, cancel := context.WithTimeout(ctx, pointTimeout)
	defer cancel()
	err := p.b.base.Do(limited, "pointing Service "+p.e.Service+" to the leader", func(ctx context.Context) error {
		return p.write(ctx, wanted == with)
	})
	switch {
	case err == nil:
		p.known, p.logged = wanted, ""
	case ctx.Err() == nil && err.Error() != p.logged && !errors.Is(err, backends.ErrConflict):
		p.logged = err.Error()
		p.e.Logger.Warn("elector: the Service does not follow the leader", "service", p.e.Service, "error", err)
	}
	return err
}

// An endpointSlice is an object of discovery.k8s.io/v1.
type endpointSlice struct {
	APIVersion  string         `json:"apiVersion"`
	Kind        string         `json:"kind"`
	Metadata    metadata       `json:"metadata"`
	AddressType string         `json:"addressType"`
	Endpoints   []endpoint     `json:"endpoints"`
	Ports       []endpointPort `json:"ports"`
}

type endpoint struct {
	Addresses  []string        `json:"addresses"`
	Conditions map[string]bool `json:"conditions,omitempty"`
	TargetRef  *targetRef      `json:"targetRef,omitempty"`
}

type endpointPort struct {
	Name     string `json:"name"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

type targetRef struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

const serviceLabel = "kubernetes.io/service-name"

// write makes the slice that of this term, with or without the address, unless a later
// term's leader has written it.
func (p *pointer) write(ctx context.Context, wanted bool) error {
	name := p.e.Service + "-leader"
	path := "/apis/discovery.k8s.io/v1/namespaces/" + p.b.namespace + "/endpointslices"
	var s endpointSlice
	err := p.b.call(ctx, http.MethodGet, path+"/"+name, nil, &s)
	var refusal *status
	switch absent := errors.As(err, &refusal) && refusal.Code == http.StatusNotFound && refusal.Details.Kind == "endpointslices"; {
	case absent && !wanted && !p.sent:
		return nil
	case absent:
		s = endpointSlice{Metadata: metadata{Name: name, Labels: map[string]string{serviceLabel: p.e.Service, "endpointslice.kubernetes.io/managed-by": managedByElector}}}
	case err != nil:
		return p.refused(err)
	}
	if there := s.Metadata.ResourceVersion != ""; there {
		text, ours := s.Metadata.Annotations[TokenAnnotation]
		token, err := strconv.ParseUint(text, 10, 64)
		switch {
		case !ours || err != nil:
			return fmt.Errorf("%w: EndpointSlice %s/%s has no fencing token in its annotation %s, so another program made it; delete it, or use another Service", backends.ErrMisconfigured, p.b.namespace, name, TokenAnnotation)
		case token > p.token:
			return fmt.Errorf("%w: a leader with token %d has pointed the Service", backends.ErrStale, token)
		case token < p.token && !wanted && !p.sent:
			return nil
		}
	}
	s.APIVersion, s.Kind = "discovery.k8s.io/v1", "EndpointSlice"
	if s.Metadata.Annotations == nil {
		s.Metadata.Annotations = map[string]string{}
	}
	s.Metadata.Annotations[TokenAnnotation] = strconv.FormatUint(p.token, 10)
	family := "IPv4"
	if p.e.Address.Unmap().Is6() {
		family = "IPv6"
	}
	if s.AddressType != "" && s.AddressType != family {
		return fmt.Errorf("%w: EndpointSlice %s/%s has addresses of %s, and this pod has %s; delete it", backends.ErrMisconfigured, p.b.namespace, name, s.AddressType, family)
	}
	s.AddressType = family
	s.Ports = []endpointPort{{p.e.PortName, p.e.Port, "TCP"}}
	s.Endpoints = []endpoint{}
	if wanted {
		p.sent = true
		e := endpoint{Addresses: []string{p.e.Address.Unmap().String()}, Conditions: map[string]bool{"ready": true}}
		if p.e.Pod != "" {
			e.TargetRef = &targetRef{"Pod", p.e.Pod, p.b.namespace}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	if s.Metadata.ResourceVersion == "" {
		return p.refused(p.b.call(ctx, http.MethodPost, path, s, &s))
	}
	return p.refused(p.b.call(ctx, http.MethodPut, path+"/"+name, s, &s))
}

// refused adds what to do to a refusal of the API server.
func (p *pointer) refused(err error) error {
	var s *status
	switch {
	case !errors.As(err, &s):
	case s.Code == http.StatusConflict: // another process has changed it: read it again
		return backends.ErrConflict
	case s.Code == http.StatusForbidden && !s.starting:
		return fmt.Errorf("%w: the account needs the verbs get, create and update for endpointslices of discovery.k8s.io in namespace %s: %w", backends.ErrDenied, p.b.namespace, err)
	}
	return err
}
