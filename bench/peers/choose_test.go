package peers

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		wanted, kinds string
		want          string // name@store
	}{
		{"pglock", "", "elector@postgres pglock@postgres pglock/pgx@postgres"},
		{"pglock/pgx", "", "elector@postgres pglock/pgx@postgres"},
		{"client-go/release", "", "elector@kubernetes client-go/release@kubernetes"},
		{"etcd dynamolock", "", "elector@etcd etcd@etcd elector@dynamodb dynamolock@dynamodb"},
		{"etcd dynamolock", "etcd", "elector@etcd etcd@etcd"},
		{"", "nats redis", "elector@redis redislock@redis rueidislock@redis elector@nats"},
	} {
		chosen, err := Choose(strings.Fields(c.wanted), strings.Fields(c.kinds))
		var got []string
		for _, l := range chosen {
			got = append(got, l.Name+"@"+l.Store)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s on %s chooses %v, error %v; want %s", c.wanted, c.kinds, got, err, c.want)
		}
	}
	if all, err := Choose(nil, nil); err != nil || len(all) != len(All()) {
		t.Errorf("nothing wanted chooses %d libraries, error %v; want all %d", len(all), err, len(All()))
	}
	for _, unknown := range []string{"consul", "pg", "elector"} {
		if _, err := Choose([]string{unknown}, nil); err == nil || !strings.Contains(err.Error(), `"`+unknown+`"`) {
			t.Errorf("%s: error %v; want one that names it", unknown, err)
		}
	}
	if _, err := Choose(nil, []string{"gcs"}); err == nil || !strings.Contains(err.Error(), `"gcs"`) {
		t.Errorf("a store without a library: error %v; want one that names it", err)
	}
}
