// Package simulation proves the protocol in simulated time: its tests run
// electors on machines whose clocks drift, step, stand still and stop, behind a
// network that loses, delays and repeats, on a store that forgets, and a
// checker that sees the true time of every node holds them to the guarantees.
//
//	go test ./internal/simulation -run . -seeds=5000 -v
//	go test ./internal/simulation -run TestSimulation/sim/random -seed=17 -v
//
// About half of the seeds are wild: options differ from node to node, Electors
// share processes and names, workers linger, stall and panic, every method is
// called at any time, and people edit the record.
//
// A run depends on its seed alone: what happens to a request is a function of
// the seed, the Elector and the instant, and not of how goroutines are
// scheduled.
package simulation
