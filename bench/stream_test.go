package bench_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

// streamRounds is how often the three take turns.
const streamRounds = 5

// maxItems is how many commands travel in one message, by the contract.
const maxItems = 256

// round is one round of commands, as the peer reports them too.
type round struct {
	Wall, P50, P99 time.Duration

	busy int // commands that were refused because too many were under way; they count as answered
}

// stream is one DispatchStream call.
type stream struct {
	conn   controlv1connect.CommandServiceDispatchStreamClientStream
	device string
	next   uint64 // number of the next command
}

// openStream opens a stream on a connection of its own, as a program would.
func openStream(ctx context.Context, p *product, device string) (*stream, error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols}}
	transport := connecthttp.NewTransport(client, p.url, connecthttp.WithGRPC(), connecthttp.WithCompressMinBytes(4<<10))
	rpc := connect.NewClient(transport, func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok {
				info.RequestHeader().Set("Authorization", "Bearer "+p.token)
			}
			return next(ctx, spec)
		}
	})
	ctx, _ = connect.NewClientContext(ctx)
	conn, err := controlv1connect.NewCommandServiceClient(rpc).DispatchStream(ctx)
	if err != nil {
		return nil, err
	}
	return &stream{conn: conn, device: device, next: 1}, conn.SendHeaders()
}

// answered is what the reader hands on of one message.
type answered struct {
	answers []*controlv1.DispatchStreamAnswer
	err     error
}

// round sends n commands, window of them under way at a time, and waits for all answers. What there is room for at one
// moment travels in one message.
func (s *stream) round(window, n int) (round, error) {
	first := s.next
	sent, took := make([]time.Time, n), make([]time.Duration, 0, n)
	answers, stop := make(chan answered, 64), make(chan struct{})
	defer close(stop)
	go s.read(n, answers, stop)
	var r round
	began := time.Now()
	for room := min(window, n); ; {
		if err := s.send(room, first, sent); err != nil {
			return r, s.why(err)
		}
		room = 0
		for _, a := range gather(answers) {
			if a.err != nil {
				return r, a.err
			}
			for _, answer := range a.answers {
				busy, err := verdict(answer)
				if err != nil {
					return r, err
				}
				if busy {
					r.busy++
				}
				took = append(took, time.Since(sent[answer.GetNumber()-first]))
				room++
			}
		}
		if len(took) == n {
			break
		}
		room = min(room, n-int(s.next-first))
	}
	r.Wall = time.Since(began)
	slices.SortFunc(took, cmp.Compare[time.Duration])
	r.P50, r.P99 = took[n/2], took[n*99/100]
	return r, nil
}

// gather waits for one message and takes what else is there.
func gather(answers <-chan answered) []answered {
	all := []answered{<-answers}
	for {
		select {
		case a := <-answers:
			all = append(all, a)
		default:
			return all
		}
	}
}

func (s *stream) read(n int, to chan<- answered, stop <-chan struct{}) {
	for n > 0 {
		msg, err := s.conn.Receive()
		n -= len(msg.GetAnswers())
		select {
		case to <- answered{msg.GetAnswers(), err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

func (s *stream) send(n int, first uint64, sent []time.Time) error {
	for n > 0 {
		msg := &controlv1.DispatchStreamRequest{}
		for range min(n, maxItems) {
			sent[s.next-first] = time.Now()
			msg.Items = append(msg.Items, &controlv1.DispatchStreamItem{
				Number: s.next, Kind: &controlv1.DispatchStreamItem_Dispatch{Dispatch: request(s.device)},
			})
			s.next++
		}
		n -= len(msg.GetItems())
		if err := s.conn.Send(msg); err != nil {
			return err
		}
	}
	return nil
}

// verdict says whether an answer is a result, or at least a refusal because too many were under way.
func verdict(a *controlv1.DispatchStreamAnswer) (busy bool, err error) {
	failed := a.GetError()
	if outcomes := a.GetResponse().GetOutcomes(); len(outcomes) == 1 {
		if outcomes[0].GetResult().GetActivateTab().GetActivated() {
			return false, nil
		}
		failed = outcomes[0].GetError()
	}
	if failed.GetCode() == commandv1.ErrorCode_ERROR_CODE_BUSY {
		return true, nil
	}
	return false, fmt.Errorf("command %d was answered %v", a.GetNumber(), a)
}

// why is the reason for which sending failed. A stream says it only when it is read, which nobody else does any more
// then.
func (s *stream) why(err error) error {
	if _, why := s.conn.Receive(); why != nil {
		return why
	}
	return err
}

// sender sends n commands, as many at a time as its width.
type sender func(b *testing.B, width, n int) round

// BenchmarkStream prints how many commands a program gets done, beside the embedded NATS relay, which keeps nothing,
// and beside what the store alone can take: the same rows and events by the same writes. A window is one goroutine that
// has so many under way on one stream; callers are goroutines of the client library that wait for each outcome.
func BenchmarkStream(b *testing.B) {
	p := startProduct(b, 1)
	device := p.startDevice(b)
	peer := startPeer(b)
	ceiling := openCeiling(b)
	for _, size := range []struct {
		how             string
		width, commands int
	}{
		{"window", 1, 200}, {"window", 64, 2000}, {"window", 1024, 4000}, {"calls", 64, 2000}, {"calls", 512, 4000},
	} {
		b.Run(fmt.Sprintf("%s=%d", size.how, size.width), func(b *testing.B) {
			send := p.sender(b, size.how, device)
			send(b, size.width, size.commands) // warms up
			var ours, nats, store []round
			b.ResetTimer()
			for range b.N * streamRounds {
				ours = append(ours, send(b, size.width, size.commands))
				nats = append(nats, peer.round(b, size.how, size.width, size.commands))
				store = append(store, ceiling.round(b, size.width, size.commands))
			}
			b.ReportMetric(0, "ns/op") // a turn of the loop is no command
			b.ReportMetric(each(ours, size.commands), "commands/s")
			b.ReportMetric(each(nats, size.commands), "nats/s")
			b.ReportMetric(each(store, size.commands), "store/s")
			b.ReportMetric(each(ours, size.commands)/each(nats, size.commands), "nats-ratio")
			b.ReportMetric(each(ours, size.commands)/each(store, size.commands), "store-ratio")
			b.ReportMetric(micros(middle(ours)), "µs-product-p50")
			b.ReportMetric(micros(middle(nats)), "µs-nats-p50")
		})
	}
}

// sender is how the product is sent commands.
func (p *product) sender(b *testing.B, how, device string) sender {
	b.Helper()
	if how == "calls" {
		return func(b *testing.B, width, n int) round {
			s := spread(b, p.client.Commands, device, width, n)
			return round{Wall: s.wall, P50: s.median()}
		}
	}
	conn, err := openStream(b.Context(), p, device)
	check(b, err)
	b.Cleanup(func() { _ = conn.conn.Close() })
	return func(b *testing.B, width, n int) round {
		r, err := conn.round(width, n)
		check(b, err)
		return r
	}
}

// each is how many commands were done each second.
func each(rounds []round, commands int) float64 {
	var wall time.Duration
	done := 0
	for _, r := range rounds {
		wall += r.Wall
		done += commands - r.busy
	}
	return float64(done) / wall.Seconds()
}

// middle is the median of the rounds' medians.
func middle(rounds []round) time.Duration {
	var all []time.Duration
	for _, r := range rounds {
		all = append(all, r.P50)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
