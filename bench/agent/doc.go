// Package agent measures what the agent itself takes: of a turn, without the model and the devices; to print the schemas of
// a thousand tools; and to make a history ready for a model. Each is beside a floor in the same run.
package agent
