// Package faults kills the built programs at random instants and looks at what
// is left on the disk. It knows them from outside only: their arguments, their
// exit statuses and their files. It never looks into the product's packages.
//
//	HANDOFF_KILLS=500 go test -count=1 -v ./scripts/faults
package faults
