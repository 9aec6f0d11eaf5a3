package main

import "slices"

// suite is the package of the conformance suite.
const suite = "./conformance"

// mutants are the known ways to get it wrong, most of them seen in other
// libraries. The texts to change are short, so that they survive changes around
// them; one that is gone is an error.
var mutants = slices.Concat(clockMutants, recordMutants, handoverMutants, pauseMutants, sharingMutants, partitionMutants, stepMutants, traceMutants, coldMutants, ringMutants, ruleMutants, backendMutants, fenceMutants)
