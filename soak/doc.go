// Package soak drives the real program hard: it kills servers, devices and databases at random moments under load, and
// holds ten thousand devices through restarts. Short versions run with every `go test`, where nothing is judged by the
// clock; `make soak` runs the long ones and judges their figures.
package soak
