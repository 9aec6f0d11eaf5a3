package handover

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/internal/proof/stores"
)

// etcdWatchers is how many watches there are on the server, as its metrics tell:
// each waiter of elector watches the record, each of Election the key of the
// one before it.
func etcdWatchers(ctx context.Context, s *stores.Store) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	return value(text, "etcd_debugging_mvcc_watcher_total")
}

// kubernetesWatches is how many watches of a single Lease there are on the server, as
// its metrics tell: each waiter of elector has one.
func kubernetesWatches(ctx context.Context, s *stores.Store) (int, error) {
	text, err := s.AskKubernetes(ctx, stores.KubernetesAdmin, http.MethodGet, "/metrics", "", nil)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `resource="leases",scope="resource"`) {
			return strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
		}
	}
	return 0, nil // there has been none
}

// zooKeeperWatches is how many watches there are on the server: each waiter of
// elector watches the record, each of go-zookeeper's Lock the node of the one
// before it.
func zooKeeperWatches(ctx context.Context, s *stores.Store) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return 0, err
	}
	return value(text, "zk_watch_count")
}

// value finds a number in lines of a name and a number.
func value(text []byte, name string) (int, error) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == name {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, fmt.Errorf("the server does not tell %s", name)
}

// postgresListeners is how many connections listen: each waiter of elector has
// one. Such a connection says nothing else, but a ping after 30 s of silence.
func postgresListeners(ctx context.Context, s *stores.Store) (count int, err error) {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE application_name = 'elector' AND state = 'idle' AND (query ILIKE 'listen %' OR query = '-- ping')`).Scan(&count)
	return count, errors.Join(err, conn.Close(ctx))
}
