package redis

import (
	"context"
	"fmt"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// A Command is the words of a command, such as Command{"SET", "balance", 7}. They may
// have the types that the client library takes.
type Command []any

// Commit runs the commands in one script, if the lease's acquisition is still the latest:
// see Fencing in the package comment. The data must be in the election's database, and
// its user needs the rights of the commands too. Commit takes one round trip. It returns
// what the commands answer. A command has at most 7000 words, as Lua limits them; Commit
// refuses a longer one before it sends anything. Its errors are those of Guard, and:
//
//   - ErrStale if another candidate has acquired the election since, or the lease was
//     resigned. Nothing was written, and the worker must stop.
//   - The server's error for a command. Redis rolls nothing back: the commands before it
//     were run, and their answers are returned; those after it were not run.
//   - ErrDenied if the user lacks a right for the script. Nothing was written.
//   - Any other error of the request. Whether something was written is unknown.
func Commit(ctx context.Context, lease backends.Lease, commands ...Command) ([]any, error) {
	key, stem, b, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	args := []any{string(b.options.Durability), stem}
	for i, c := range commands {
		if len(c) > mostWords {
			return nil, fmt.Errorf("command %d of %d has %d words, and a command of Commit has at most %d: write it as several", i+1, len(commands), len(c), mostWords)
		}
		args = append(append(args, len(c)), c...)
	}
	var answers []any
	err = b.base.Do(ctx, "writing under the lease at key "+key+" of "+b.base.Store(), func(ctx context.Context) error {
		result, err := call(ctx, b, func() (any, error) { return commit.Run(ctx, b.client, []string{key}, args...).Result() })
		if err != nil {
			return err
		}
		var ok bool
		if answers, ok = result.([]any); !ok && result != int64(0) {
			return errNotRedis
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case answers == nil:
		return nil, fmt.Errorf("writing under the lease at key %s of %s: %w: the record is no longer this lease's; nothing was written, and the worker must stop", key, b.base.Store(), backends.ErrStale)
	}
	if n := len(answers); n > 0 {
		if refused, ok := answers[n-1].(error); ok {
			return answers[:n-1], fmt.Errorf("writing under the lease at key %s of %s: command %d of %d, and none after it was run: %w", key, b.base.Store(), n, len(commands), refused)
		}
	}
	return answers, nil
}

// mostWords is below what Lua's unpack can return.
const mostWords = 7000

// Guard returns the key of the record, and what the record begins with while the lease's
// acquisition is the latest, for a script of your own on the same server:
//
//	local record = redis.call('GET', KEYS[1])
//	if string.sub(record or '', 1, #ARGV[1]) ~= ARGV[1] then return redis.error_reply('STALE') end
//
// with the key as KEYS[1] and the prefix as ARGV[1]. Renewals do not affect it. Switch off
// the retries of your client for the script. Such a script does not see that its server was
// made from a replica, as Commit does: where a replica may ever be attached, use Commit.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on Redis, or on a server that may lose
// acknowledged writes: there no comparison finds every later acquisition.
func Guard(lease backends.Lease) (key, prefix string, err error) {
	key, prefix, _, err = conditionOf(lease)
	return key, prefix, err
}

func conditionOf(lease backends.Lease) (key, stem string, b *Backend, err error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "Redis")
	if err != nil {
		return "", "", nil, err
	}
	return b.options.Prefix + a.Election, backends.RecordPrefix(a.Election, a.Record), b, nil
}
