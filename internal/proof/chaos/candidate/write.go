package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// client asks the resource. A write has nothing to do with the lease's context:
// once it is on its way nothing takes it back.
var client = &http.Client{Timeout: 10 * time.Second}

// write sends a write with its token, and returns what became of it.
func (c *candidate) write(token elector.Token, number uint64) history.Event {
	e := history.Event{Token: token, Number: number, Before: history.BootTime()}
	status, err := c.post(token, number)
	switch {
	case err != nil:
		e.Kind, e.Detail = history.Failed, err.Error()
	case status == http.StatusNoContent:
		e.Kind = history.Wrote
	case status == http.StatusConflict:
		e.Kind = history.Refused
	default:
		e.Kind, e.Detail = history.Failed, fmt.Sprintf("the resource answers with status %d", status)
	}
	return e
}

func (c *candidate) post(token elector.Token, number uint64) (status int, err error) {
	r, err := http.NewRequest(http.MethodPost, c.task.Resource+"?candidate="+c.task.Candidate+"&number="+strconv.FormatUint(number, 10), nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set(elector.TokenHeader, token.String())
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
