package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/soak/soaktest"
)

// roleDevice is one device with a journal in a file. Its argument is its folder, which has its identity.
const roleDevice = "device"

const (
	identityFile = "identity"
	effectsFile  = "effects"
	slowest      = 20 * time.Millisecond // that a command takes before and after its effect
)

// playDevice runs a device until it is stopped or killed.
func playDevice(ctx context.Context, s *soaktest.Stage) error {
	dir := s.Args[0]
	identity, err := throwbar.LoadIdentity(filepath.Join(dir, identityFile))
	if err != nil {
		return err
	}
	journal, err := throwbar.OpenJournal(filepath.Join(dir, "journal"))
	if err != nil {
		return err
	}
	// What is written is there as soon as the system has it: it outlives a killed process, which is all that dies here.
	effects, err := os.OpenFile(filepath.Join(dir, effectsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	h := &oracle{effects: effects}
	h.Device, h.Executed = identity.DeviceID, &atomic.Int64{}
	h.Executed.Store(time.Now().UnixNano() >> 20) // numbers of tabs are new ones after each start
	device, err := throwbar.NewDevice(throwbar.DeviceConfig{
		Identity: identity, Handler: h, Actions: soaktest.Actions(), BootTag: "b1", Journal: journal,
		// The devices of this test may all come back at once, and soon: what is tested is what they find.
		Jitter: func() float64 { return rand.Float64() / 8 },
	})
	if err != nil {
		return err
	}
	ctx = s.Listen(ctx, func(string) any { return nil })
	s.Ready()
	return device.Run(ctx)
}

// oracle runs commands and writes down which: a command's effect is one line of a file.
type oracle struct {
	soaktest.Handler

	effects *os.File
}

// OpenTab has its effect somewhere in the midst of the time that it takes.
func (o *oracle) OpenTab(ctx context.Context, req *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	dawdle(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, err := o.effects.WriteString(throwbar.CallInfoFrom(ctx).CommandID + "\n"); err != nil {
		return nil, fmt.Errorf("write effect: %w", err)
	}
	dawdle(ctx)
	return o.Handler.OpenTab(ctx, req)
}

func dawdle(ctx context.Context) {
	timer := time.NewTimer(rand.N(slowest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
