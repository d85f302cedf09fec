// Command peer is what streamed dispatch is measured beside: the same messages by the same road, caller → server →
// device → server → caller, over NATS with its server embedded in the relay. It stores nothing and checks nothing. It
// is a module of its own, so that the product does not depend on NATS for a benchmark.
//
//	peer relay            runs the NATS server and the relay, and prints the server's address
//	peer device <server>  answers every command at once
//	peer caller <server>  reads lines "<how> <width> <commands>" and prints a Round for each
//
// A caller sends by a "window" of commands that are under way at a time, or by "calls" of as many goroutines.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Round is one round of commands.
type Round struct {
	Wall time.Duration // from the first command to the last answer
	P50  time.Duration // of each command
	P99  time.Duration
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "relay":
		r, err := startRelay()
		if err != nil {
			return err
		}
		defer r.stop()
		fmt.Fprintln(out, r.url())
		return untilEnd(in)
	case len(args) == 2 && args[0] == "device":
		d, err := startDevice(args[1])
		if err != nil {
			return err
		}
		defer d.Close()
		fmt.Fprintln(out, "ready")
		return untilEnd(in)
	case len(args) == 2 && args[0] == "caller":
		return call(args[1], in, out)
	default:
		return errors.New("say relay, device <server> or caller <server>")
	}
}

// untilEnd waits until whoever started this process goes away.
func untilEnd(in io.Reader) error {
	_, err := io.Copy(io.Discard, in)
	return err
}

func call(server string, in io.Reader, out io.Writer) error {
	c, err := newCaller(server)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	fmt.Fprintln(out, "ready")
	for scan := bufio.NewScanner(in); scan.Scan(); {
		var how string
		var width, commands int
		if _, err := fmt.Sscan(scan.Text(), &how, &width, &commands); err != nil {
			return fmt.Errorf("read %q: %w", scan.Text(), err)
		}
		send := c.window
		if how == "calls" {
			send = c.calls
		}
		round, err := send(width, commands)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(round)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, string(raw))
	}
	return nil
}

// summary is the round that single commands make.
func summary(wall time.Duration, took []time.Duration) Round {
	slices.SortFunc(took, cmp.Compare[time.Duration])
	return Round{Wall: wall, P50: took[len(took)/2], P99: took[len(took)*99/100]}
}
