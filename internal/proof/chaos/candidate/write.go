package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// write sends a write under the lease to the resource, and returns what became of
// it. The lease's context does not end it: once sent, nothing takes it back.
func (c *candidate) write(election string, lease lease, number uint64) history.Event {
	e := history.Event{Token: lease.Token(), Number: number, Before: history.BootTime()}
	status, refused, err := c.post(election, lease, number)
	switch {
	case err != nil:
		e.Kind, e.Detail = history.Failed, err.Error()
	case status == http.StatusNoContent:
		e.Kind = history.Wrote
	case refused:
		e.Kind = history.Refused
	default:
		e.Kind, e.Detail = history.Failed, fmt.Sprintf("the resource answers with status %d", status)
	}
	return e
}

func (c *candidate) post(election string, lease lease, number uint64) (status int, refused bool, err error) {
	client := &http.Client{Transport: &fencehttp.Transport{Lease: lease, Base: &c.stop}}
	answer, err := client.Post(fmt.Sprintf("%s?election=%s&candidate=%s&number=%d", c.task.Resource, election, c.task.Candidate, number), "", nil)
	if err != nil {
		return 0, false, err
	}
	highest, refused := fencehttp.Refused(answer)
	if refused && highest <= lease.Token() {
		err = fmt.Errorf("the resource refused token %d and has seen only %d", lease.Token(), highest)
	}
	return answer.StatusCode, refused, errors.Join(err, answer.Body.Close())
}

// network has no time limit for the whole request: a stop of the process would
// use it up.
var network = &http.Transport{ResponseHeaderTimeout: 10 * time.Second}
