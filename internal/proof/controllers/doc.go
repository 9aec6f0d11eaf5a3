// Package controllers has two controller-runtime managers on a real API server, under
// elector and under client-go's own lock, and counts what an old leader writes. Its
// tests need the build tag kubernetes: see make controllers.
package controllers
