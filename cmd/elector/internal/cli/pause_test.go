package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/operate"
)

// pause and resume say what they have done, or why they have not.
func TestPause(t *testing.T) {
	dir := t.TempDir()
	env := []string{"ELECTOR_URL=file://" + dir}
	for _, command := range []string{"pause", "resume"} {
		if r := run(t, env, command, "never"); r.code != exitVacant || !strings.Contains(r.err, "no election of this name") {
			t.Errorf("%s of an election that never was: %+v", command, r)
		}
	}
	finish := make(chan struct{})
	close(finish)
	works(t, env[0][len("ELECTOR_URL="):], "jobs", "a", finish)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--reason", strings.Repeat("a", 10<<10)}, "the reason has 10240 bytes"},
		{[]string{"--for", "0s"}, "--for is 0s"},
		{[]string{"--for", "9000h"}, "not between 0 and 8784h"},
		{[]string{"--wait", "0s"}, "--wait is 0s"},
	} {
		if r := run(t, env, append([]string{"pause", "jobs"}, c.args...)...); r.code != exitUsage || !strings.Contains(r.err, c.says) {
			t.Errorf("%.40q: %.300v", c.args, r)
		}
	}
	if r := run(t, env, "resume", "jobs"); r.code != exitVacant || !strings.Contains(r.err, `not paused: "a" leads`) {
		t.Errorf("resume while an election is held: %+v", r)
	}
	if r := run(t, env, "pause", "jobs", "--reason", "migration 42", "--for", "1h"); r.code != 0 || r.err != "" {
		t.Errorf("pause: %+v", r)
	}
	if r := run(t, env, "pause", "jobs"); r.code != exitHeld || !strings.Contains(r.err, `"migration 42"`) {
		t.Errorf("a second pause: %+v", r)
	}
	if r := run(t, env, "leader", "jobs"); r.code != exitVacant || !strings.Contains(r.out, "\tpaused\t") || !strings.Contains(r.out, "for 1h0m0s: migration 42") {
		t.Errorf("leader: %+v", r)
	}
	if r := run(t, env, "leader", "jobs", "-o", "json"); !strings.Contains(r.out, `"pause_reason":"migration 42","pause_seconds":3600`) {
		t.Errorf("leader: %+v", r)
	}
	if r := run(t, env, "history", "jobs"); !strings.Contains(r.out, "paused") {
		t.Errorf("history: %+v", r)
	}
	if r := run(t, env, "resume", "jobs"); r.code != 0 {
		t.Errorf("resume: %+v", r)
	}
	if r := run(t, env, "resume", "jobs"); r.code != exitVacant {
		t.Errorf("a second resume: %+v", r)
	}
}

// A pause that did not come to stand is no election without a leader.
func TestPauseCodes(t *testing.T) {
	var out bytes.Buffer
	tool := &tool{out: &out, err: &out, env: environ([]string{"ELECTOR_URL=file://" + t.TempDir()})}
	for _, c := range []struct {
		err  error
		code int
	}{
		{elector.ErrLost, exitLost},
		{elector.ErrNotLeader, exitVacant},
		{operate.ErrNotPaused, exitVacant},
		{exitCode{exitHeld, operate.ErrNotPaused}, exitHeld},
		{elector.ErrPaused, exitHeld},
		{context.DeadlineExceeded, exitHeld},
		{errors.Join(context.DeadlineExceeded, elector.ErrUnavailable), exitUnavailable},
	} {
		err := tool.operate(t.Context(), "jobs", time.Minute, func(context.Context, operate.Operator) error {
			return fmt.Errorf("pause: %w", c.err)
		})
		if code := codeOf(err); code != c.code {
			t.Errorf("%v: the exit code is %d, not %d", c.err, code, c.code)
		}
	}
}
