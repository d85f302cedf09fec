package soaktest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Load is callers that send one command after the other to devices that they draw.
type Load struct {
	Client  *throwbar.Client
	Devices func() []string // those to draw from at this moment; while there is none, callers wait
	Callers int
	Pace    time.Duration // mean pause of a caller between two commands
}

// Heard is what callers heard.
type Heard struct {
	Took    []time.Duration // from sending to any answer that is not that the device is offline, in order of size
	Offline int             // answers that the device is offline: nothing was sent
	Failed  map[string]int  // other answers that are no result, by code
}

// At is how long an answer took at most for this part of all: 0.5 for the median. Zero if there is none.
func (h Heard) At(part float64) time.Duration {
	if len(h.Took) == 0 {
		return 0
	}
	return h.Took[min(len(h.Took)-1, int(part*float64(len(h.Took))))]
}

// Run calls until the context ends. Calls that are under way then do not count.
func (l Load) Run(ctx context.Context) Heard {
	h := Heard{Failed: map[string]int{}}
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range l.Callers {
		callers.Go(func() {
			for sleep(ctx, rand.N(2*l.Pace+1)) {
				devices := l.Devices()
				if len(devices) == 0 {
					sleep(ctx, 10*time.Millisecond)
					continue
				}
				began := time.Now()
				code := l.call(ctx, devices[rand.IntN(len(devices))])
				took := time.Since(began)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				switch code {
				case "":
					h.Took = append(h.Took, took)
				case string(throwbar.CodeOffline):
					h.Offline++
				default:
					h.Took = append(h.Took, took)
					h.Failed[code]++
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	slices.SortFunc(h.Took, cmp.Compare[time.Duration])
	return h
}

// call sends one command and gives the code of what went wrong, if something did.
func (l Load) call(ctx context.Context, device string) string {
	res, err := l.Client.Commands.Dispatch(ctx, &controlv1.DispatchRequest{
		DeviceIds: []string{device}, Action: Action(),
	})
	var own *throwbar.Error
	switch {
	case errors.As(err, &own):
		return string(own.Code)
	case err != nil:
		return err.Error()
	case res.GetOutcomes()[0].GetResult() != nil:
		return ""
	case res.GetOutcomes()[0].GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_OFFLINE:
		return string(throwbar.CodeOffline)
	default:
		return res.GetOutcomes()[0].GetError().GetCode().String()
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
