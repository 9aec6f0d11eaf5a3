// Package task tells a process of a campaign what to do.
package task

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// A Task is what one candidate needs to know.
type Task struct {
	URL        string        // of the store, maybe through proxies
	Data       string        // URL of the data in it
	Election   string        // the name in the store; that of the group if there are Partitions
	Candidate  string        // the ID of this process
	TTL        time.Duration // of its leases
	Priority   int           // see elector.Options
	Partitions int           // of a group; 0 for an election
	Resource   string        // URL at which the protected resource takes writes

	WriteEvery time.Duration // how long a leader waits after a write
	ReadEvery  time.Duration // how long everybody waits after reading who leads
}

// variable holds the task in the environment of a process.
const variable = "ELECTOR_CHAOS_TASK"

// Environment returns the variable that gives the task to a process.
func (t Task) Environment() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // it has nothing that JSON could not say
	}
	return variable + "=" + string(text)
}

// FromEnvironment returns the task of this process.
func FromEnvironment() (t Task, err error) {
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &t); err != nil {
		return t, fmt.Errorf("%s holds no task: %w; this program is started by cmd/chaos and tests, not by hand", variable, err)
	}
	return t, nil
}
