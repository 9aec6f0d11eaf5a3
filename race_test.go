//go:build race

package elector_test

// raceDetector slows memory accesses and not time.Now: ratios mean nothing.
const raceDetector = true
