package elector_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// slowStore takes no TTL below a second.
type slowStore struct{ backends.Backend }

func (slowStore) Describe() backends.Description {
	return backends.Description{Store: "slow://", MinTTL: time.Second}
}

func TestOptionsRefused(t *testing.T) {
	for what, o := range map[string]elector.Options{
		"TTL is -1s":                            {TTL: -time.Second},
		"TTL is 25h":                            {TTL: 25 * time.Hour},
		"below 1s, the shortest for this store": {TTL: 999 * time.Millisecond},
		"RenewEvery is 9s":                      {TTL: 10 * time.Second, RenewEvery: 9 * time.Second},
		"RenewEvery 8s and RequestTimeout 4s":   {TTL: 10 * time.Second, RenewEvery: 8 * time.Second},
		"one slow renewal would lose it":        {TTL: 10 * time.Second, RenewEvery: 6 * time.Second, RequestTimeout: 3*time.Second + 1},
		"did you mean 15 * time.Second?":        {TTL: 15},
		"RenewEvery is -1ns":                    {RenewEvery: -1},
		"RequestTimeout is 3s":                  {TTL: 10 * time.Second, RenewEvery: 2 * time.Second, RequestTimeout: 3 * time.Second},
		"RequestTimeout is -1ns":                {RequestTimeout: -1},
		"ReleaseTimeout is -1ns":                {ReleaseTimeout: -1},
		"ReleaseTimeout is 24h0m0.000000001s":   {ReleaseTimeout: 24*time.Hour + 1},
		"StallTimeout is -1ns":                  {StallTimeout: -1},
		"ClockDrift is -0.1":                    {ClockDrift: -0.1},
		"ClockDrift is 0.5":                     {ClockDrift: 0.5},
		"ClockDrift is NaN":                     {ClockDrift: math.NaN()},
		"MinToken is above":                     {MinToken: elector.MaxToken + 1},
		"Value has 4097 bytes":                  {Value: strings.Repeat("x", 4097)},
		"ID is not UTF-8":                       {ID: "\xff\xfe"},
		"Value has a NUL byte":                  {Value: "a\x00b"},
	} {
		_, err := elector.New(slowStore{memory.New()}, "x", &o)
		var named *elector.Error
		if !errors.Is(err, elector.ErrInvalid) || !errors.As(err, &named) || named.Election != "x" || named.Store != "slow://" {
			t.Errorf("%s: %v is not an ErrInvalid that names election and store", what, err)
		} else if !strings.Contains(err.Error(), what) {
			t.Errorf("error %q does not say %q", err, what)
		}
	}
}

func TestOptionsAccepted(t *testing.T) {
	for _, o := range []*elector.Options{
		nil,
		{},
		{TTL: 24 * time.Hour},
		{ReleaseTimeout: 24 * time.Hour},
		{TTL: time.Second, RenewEvery: 600 * time.Millisecond},
		{TTL: time.Second, RenewEvery: 800 * time.Millisecond, RequestTimeout: 100 * time.Millisecond},
		{ClockDrift: 0.001, TTL: time.Second},
	} {
		if _, err := elector.New(slowStore{memory.New()}, "x", o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestOpenRefused(t *testing.T) {
	const secret = "s3cret"
	for _, c := range []struct {
		url, name string
		want      error
		says      string
	}{
		{"memory://", "", elector.ErrName, "empty"},
		{"memory://", "../x", elector.ErrName, "dot"},
		{"memory://", strings.Repeat("x", 10_000), elector.ErrName, "10000 bytes"},
		{"", "x", elector.ErrURL, "empty"},
		{"memory://?wait=1", "x", elector.ErrURL, `unknown parameter "wait"`},
		{"memory://?a=%zz", "x", elector.ErrURL, "percent-encode"},
		{"zookeper://h", "x", elector.ErrUnknownScheme, "did you mean zookeeper://?"},
		{"oracle://app:" + secret + "@db", "x", elector.ErrUnknownScheme, "imported are memory"},
		{"etcd://app:" + secret + "@db", "x", elector.ErrUnknownScheme, `_ "github.com/elector-go/elector/backends/etcd"`},
		{"memory://app:" + secret + "@db:port:port/%zz", "x", elector.ErrURL, "cannot be parsed"},
		{"/var/lib/" + secret, "x", elector.ErrURL, "no scheme"},
	} {
		_, err := elector.Open(t.Context(), c.url, c.name, nil)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Open(%q, %.20q): %v; want %v that says %q", c.url, c.name, err, c.want, c.says)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows what may be a password: %v", err)
		}
	}
}
