//go:build !race

package elector_test

const raceDetector = false
