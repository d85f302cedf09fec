package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const codeLife = 5 * time.Minute

var errCodeExpired = errors.New("the pairing code has expired")

// pairVerb makes a pairing code and waits for the device.
func (p *program) pairVerb() *cobra.Command {
	var noWait bool
	c := &cobra.Command{
		Use:     "pair",
		Short:   "Make a pairing code for a new device, and wait for the device",
		GroupID: groupDevices,
		Args:    p.takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return p.runPair(c.Context(), !noWait) },
	}
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the device")
	return c
}

func (p *program) runPair(ctx context.Context, wait bool) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	if !wait {
		code, err := s.Devices.CreatePairingCode(ctx, &controlv1.CreatePairingCodeRequest{})
		if err != nil {
			return fmt.Errorf("make a pairing code: %w", err)
		}
		return p.showCode(code)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := p.watchPairing(ctx)
	defer w.stop()
	select { // watch first, so that a quick device is not missed
	case <-w.open:
	case err := <-w.end:
		return err
	}
	code, err := s.Devices.CreatePairingCode(ctx, &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		return fmt.Errorf("make a pairing code: %w", err)
	}
	if err := p.showCode(code); err != nil {
		return err
	}
	expired := time.NewTimer(min(code.GetExpiresAt().AsTime().Sub(p.Now()), codeLife))
	defer expired.Stop()
	select {
	case event := <-w.paired:
		return p.showPaired(event)
	case err := <-w.end:
		return err
	case <-expired.C:
		return Errorf(Expired, "%w: run `throwbar pair` again", errCodeExpired)
	}
}

// pairingWatch waits for the event of a new device.
type pairingWatch struct {
	open   chan struct{}
	paired chan *controlv1.WatchEventsResponse
	end    chan error
	stop   func() // ends the watch and waits for it
}

func (p *program) watchPairing(ctx context.Context) *pairingWatch {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &pairingWatch{
		open:   make(chan struct{}, 1),
		paired: make(chan *controlv1.WatchEventsResponse, 1),
		end:    make(chan error, 1),
	}
	done := make(chan struct{})
	w.stop = func() {
		cancel(nil)
		<-done
	}
	go func() {
		defer close(done)
		w.end <- p.follow(ctx, &controlv1.WatchEventsRequest{}, func() { offer(w.open, struct{}{}) },
			func(frame *controlv1.WatchEventsResponse) error {
				if frame.GetEvent().GetDevice().GetChange() == controlv1.DeviceChange_DEVICE_CHANGE_PAIRED {
					offer(w.paired, frame)
				}
				return nil
			})
	}()
	return w
}

// offer sends if there is room.
func offer[T any](to chan<- T, value T) {
	select {
	case to <- value:
	default:
	}
}

func (p *program) showCode(code *controlv1.CreatePairingCodeResponse) error {
	if p.flags.json() {
		return p.printJSON(code, false)
	}
	p.out.Line(term.Plain, "On the new device, open the page of the Throwbar extension and type:")
	p.out.Print("\n")
	p.out.Facts(outcomeIndent, [2]string{"server", p.flags.server}, [2]string{"code", code.GetCode()})
	p.out.Print("\n")
	left := term.When(code.GetExpiresAt().AsTime(), p.Now())
	p.out.Line(term.Plain, "The code is for one device and ends %s. The device then shows a word, which has to be:", left)
	p.out.Print("\n  " + p.out.Paint(term.Bold, term.Visible(code.GetCheckWord())) + "\n\n")
	return nil
}

func (p *program) showPaired(frame *controlv1.WatchEventsResponse) error {
	if p.flags.json() {
		return p.printJSON(frame, false)
	}
	e := frame.GetEvent()
	p.out.Line(term.Green, "%s (%s) is paired.", e.GetDevice().GetName(), e.GetDeviceId())
	p.out.Line(term.Plain, "If it showed another word, it is not yours: `throwbar devices revoke %s`", e.GetDeviceId())
	return nil
}
