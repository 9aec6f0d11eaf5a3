package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// processorTime returns what a process and its descendants have used of processors.
func processorTime(root int) (sum time.Duration, ok bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	const tick = time.Second / 100 // of the times in /proc, on every Linux
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
