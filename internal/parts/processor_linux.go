package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// idleTime returns for how long the processors together had nothing to do since the machine
// began, not counting waits for its disk.
func idleTime() (idle time.Duration, ok bool) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(content)) // cpu, user, nice, system, idle
	if len(fields) < 5 {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[4], 10, 64)
	return time.Duration(n) * tick, err == nil
}

// tick is the unit of the times in /proc, on every Linux.
const tick = time.Second / 100

// processorTime returns what a process and its descendants have used of processors.
func processorTime(root int) (sum time.Duration, ok bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	used, children := map[int]time.Duration{}, map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		content, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The fields after the name, which is in parentheses and may hold anything.
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if len(fields) < 15 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		for _, field := range fields[11:15] { // its own, and its children's that have ended
			n, _ := strconv.Atoi(field)
			used[pid] += time.Duration(n) * tick
		}
		children[parent] = append(children[parent], pid)
	}
	for next := []int{root}; len(next) > 0; next = next[1:] {
		sum += used[next[0]]
		next = append(next, children[next[0]]...)
	}
	return sum, true
}
