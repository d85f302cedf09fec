//go:build unix

package agent_test

import (
	"syscall"
	"time"
)

// processor is the processor time that this process has used, by all its threads: on a machine that does other work too it
// says more than the clock.
func processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
