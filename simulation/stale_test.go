package simulation

import (
	"testing"
	"time"
)

// What a killed program has written may still bring its Hello to the server, later than that of the program's next
// start. The device has to be there afterwards.
func TestAStaleHelloDoesNotSendTheDeviceAway(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		t.Skip("one seed was asked for")
	}
	for seed := range uint64(20) {
		p := newPlan(seed)
		p.points = [devices][]point{}
		p.faults = []fault{
			{at: 4 * time.Second, kind: late, host: deviceHost(0), long: 30 * time.Second},
			{at: 5 * time.Second, kind: cutBoth, host: deviceHost(0)},
			{at: 9500 * time.Millisecond, kind: deviceKill, long: 100 * time.Millisecond},
		}
		broken, trace := carryOut(t, p, nil)
		report(t, seed, broken, trace)
	}
}
