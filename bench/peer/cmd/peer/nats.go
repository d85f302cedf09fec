package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	commands  = "commands" // to the relay
	toDevice  = "device.1"
	outcomes  = "outcomes." // to the relay, with a number
	answers   = "answers."  // to the caller, with a number
	patience  = 30 * time.Second
	unlimited = -1
)

// relay passes commands on to the device and outcomes back.
type relay struct {
	nats *server.Server
	conn *nats.Conn

	mu      sync.Mutex
	n       uint64            // guarded by mu
	waiting map[string]string // guarded by mu; where to answer to, by the number of the command
}

func startRelay() (*relay, error) {
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, err
	}
	go ns.Start()
	if !ns.ReadyForConnections(patience) {
		return nil, errors.New("the NATS server does not start")
	}
	r := &relay{nats: ns, waiting: map[string]string{}}
	if r.conn, err = nats.Connect("", nats.InProcessServer(ns)); err != nil {
		return nil, err
	}
	for subject, handle := range map[string]nats.MsgHandler{commands: r.command, outcomes + "*": r.outcome} {
		sub, err := r.conn.Subscribe(subject, handle)
		if err != nil {
			return nil, err
		}
		if err := sub.SetPendingLimits(unlimited, unlimited); err != nil {
			return nil, err
		}
	}
	return r, r.conn.Flush()
}

func (r *relay) url() string { return r.nats.ClientURL() }

func (r *relay) stop() {
	r.conn.Close()
	r.nats.Shutdown()
}

func (r *relay) command(msg *nats.Msg) {
	req := &controlv1.DispatchRequest{}
	if proto.Unmarshal(msg.Data, req) != nil {
		return // the caller waits in vain, which it reports
	}
	r.mu.Lock()
	r.n++
	id := strconv.FormatUint(r.n, 10)
	r.waiting[id] = msg.Reply
	r.mu.Unlock()
	raw, err := proto.Marshal(&devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{
		Command: &devicev1.CommandRequest{CommandId: id, Action: req.GetAction()},
	}})
	if err == nil {
		_ = r.conn.PublishRequest(toDevice, outcomes+id, raw)
	}
}

func (r *relay) outcome(msg *nats.Msg) {
	frame := &devicev1.DeviceFrame{}
	if proto.Unmarshal(msg.Data, frame) != nil {
		return
	}
	o := frame.GetOutcome()
	r.mu.Lock()
	to := r.waiting[o.GetCommandId()]
	delete(r.waiting, o.GetCommandId())
	r.mu.Unlock()
	raw, err := proto.Marshal(&controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{
		CommandId: o.GetCommandId(), Outcome: &controlv1.DeviceOutcome_Result{Result: o.GetResult()},
	}}})
	if err == nil {
		_ = r.conn.Publish(to, raw)
	}
}

func startDevice(url string) (*nats.Conn, error) {
	conn, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	sub, err := conn.Subscribe(toDevice, func(msg *nats.Msg) {
		frame := &devicev1.ServerFrame{}
		if proto.Unmarshal(msg.Data, frame) != nil {
			return
		}
		c := frame.GetCommand()
		raw, err := proto.Marshal(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: &devicev1.Outcome{
			CommandId: c.GetCommandId(), Outcome: &devicev1.Outcome_Result{Result: &commandv1.Result{
				Kind: &commandv1.Result_ActivateTab{ActivateTab: &commandv1.ActivateTab_Result{Activated: c.GetAction().GetActivateTab() != nil}},
			}},
		}}})
		if err == nil {
			_ = conn.Publish(msg.Reply, raw)
		}
	})
	if err != nil {
		return nil, err
	}
	return conn, errors.Join(sub.SetPendingLimits(unlimited, unlimited), conn.Flush())
}

// caller sends commands, as many at a time as a window has room for.
type caller struct {
	conn *nats.Conn
	done chan answer
}

type answer struct {
	number int
	good   bool
}

func newCaller(url string) (*caller, error) {
	conn, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	c := &caller{conn: conn, done: make(chan answer, 4096)}
	sub, err := conn.Subscribe(answers+"*", func(msg *nats.Msg) {
		n, err := strconv.Atoi(strings.TrimPrefix(msg.Subject, answers))
		c.done <- answer{n, err == nil && good(msg.Data)}
	})
	if err != nil {
		return nil, err
	}
	return c, errors.Join(sub.SetPendingLimits(unlimited, unlimited), conn.Flush())
}

// window sends commands and waits for all answers.
func (c *caller) window(window, n int) (Round, error) {
	sent, took := make([]time.Time, n), make([]time.Duration, 0, n)
	began, next := time.Now(), 0
	send := func() error {
		raw, err := proto.Marshal(request())
		if err != nil {
			return err
		}
		sent[next] = time.Now()
		next++
		return c.conn.PublishRequest(commands, answers+strconv.Itoa(next-1), raw)
	}
	for range min(window, n) {
		if err := send(); err != nil {
			return Round{}, err
		}
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for len(took) < n {
		select {
		case a := <-c.done:
			if !a.good {
				return Round{}, fmt.Errorf("command %d was answered wrongly", a.number)
			}
			took = append(took, time.Since(sent[a.number]))
			if next < n {
				if err := send(); err != nil {
					return Round{}, err
				}
			}
		case <-timeout.C:
			return Round{}, fmt.Errorf("%d of %d commands were answered", len(took), n)
		}
	}
	return summary(time.Since(began), took), nil
}

// calls sends commands from as many goroutines, each of which waits for its answer before it sends the next.
func (c *caller) calls(width, n int) (Round, error) {
	var mu sync.Mutex
	var failed error
	took := make([]time.Duration, 0, n)
	var next atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for range width {
		group.Go(func() {
			for next.Add(1) <= int64(n) {
				raw, err := proto.Marshal(request())
				start := time.Now()
				var msg *nats.Msg
				if err == nil {
					msg, err = c.conn.Request(commands, raw, patience)
				}
				if err == nil && !good(msg.Data) {
					err = errors.New("a command was answered wrongly")
				}
				mu.Lock()
				took, failed = append(took, time.Since(start)), errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	group.Wait()
	if failed != nil {
		return Round{}, failed
	}
	return summary(time.Since(began), took), nil
}

func request() *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{Action: &commandv1.Action{
		Kind: &commandv1.Action_ActivateTab{ActivateTab: &commandv1.ActivateTab{TabId: "abcdefgh_tb1-1"}},
	}}
}

// good says whether an answer is the result that was asked for.
func good(raw []byte) bool {
	res := &controlv1.DispatchResponse{}
	return proto.Unmarshal(raw, res) == nil && len(res.GetOutcomes()) == 1 &&
		res.GetOutcomes()[0].GetResult().GetActivateTab().GetActivated()
}
