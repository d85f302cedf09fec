package throwbar

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

type noHTTP struct{}

func (noHTTP) Do(*http.Request) (*http.Response, error) { return nil, errors.New("no network here") }

func TestCommandIsAcknowledgedThenRunThenAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := start(t, func(c *DeviceConfig) {
			c.Actions, c.Version, c.Agent, c.Platform, c.BootTag = []string{"openTab"}, "1", "test 1", "linux", "b0"
		})
		r.handler.open = func(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			<-release
			return &commandv1.OpenTab_Result{TabId: "d_tb0-1", Url: a.GetUrl()}, nil
		}
		l := r.welcomed()
		want := &devicev1.Hello{
			DeviceId: "d", Version: "1", Agent: "test 1", Platform: "linux", BootTag: "b0",
			Actions: []string{"openTab"}, CatalogueDigest: catalogue().Digest(),
		}
		if got := time.Since(l.hello.GetTime().AsTime()); got != 0 { // virtual time
			t.Errorf("the hello's clock is %v off", got)
		}
		want.Time = l.hello.GetTime()
		if !proto.Equal(l.hello, want) {
			t.Errorf("hello %v, want %v", l.hello, want)
		}
		l.command("c1", openTab("https://a.example/"), time.Minute)
		l.wantAck(t, "c1")
		l.wantNothing(t)
		close(release)
		if got := l.wantOutcome(t, "c1").GetResult().GetOpenTab().GetUrl(); got != "https://a.example/" {
			t.Errorf("url %q", got)
		}
		if e, ok := r.device.cfg.Journal.Lookup("c1"); !ok || e.Outcome == nil || e.Receipted {
			t.Errorf("journal: %+v, %v", e, ok)
		}
		l.receipt("c1")
		synctest.Wait()
		if e, _ := r.device.cfg.Journal.Lookup("c1"); !e.Receipted {
			t.Error("the receipt is not in the journal")
		}
		r.end()
	})
}

func TestHeartbeatsSayWhatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		l := r.welcomed()
		l.heartbeat(7)
		time.Sleep(testHeartbeat + time.Second)
		synctest.Wait()
		if f := <-l.up; f.GetHeartbeat().GetSeen() != 7 {
			t.Errorf("frame %v", f)
		}
		r.end()
	})
}

func TestRepeatedCommandRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := start(t, nil)
		r.handler.close = func(context.Context, *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
			<-release
			return &commandv1.CloseTabs_Result{ClosedCount: 1}, nil
		}
		l := r.welcomed()
		l.command("c1", closeTabs("d_t-1"), time.Minute)
		l.wantAck(t, "c1")
		l.command("c1", closeTabs("d_t-1"), time.Minute)
		l.wantAck(t, "c1") // again, for the first may be lost
		close(release)
		first := l.wantOutcome(t, "c1")
		l.command("c1", closeTabs("d_t-1"), time.Minute) // before the receipt
		if again := l.wantOutcome(t, "c1"); !proto.Equal(first, again) {
			t.Errorf("answered %v, then %v", first, again)
		}
		l.receipt("c1")
		l.command("c1", closeTabs("d_t-1"), time.Minute) // after it
		if again := l.wantOutcome(t, "c1"); !proto.Equal(first, again) {
			t.Errorf("answered %v, then %v", first, again)
		}
		if n := r.handler.ran("c1"); n != 1 {
			t.Errorf("ran %d times", n)
		}
		r.end()
	})
}

func TestNothingStartsAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *DeviceConfig) { c.Concurrent = 1 })
		r.handler.open = func(ctx context.Context, _ *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			time.Sleep(20 * time.Second)
			return &commandv1.OpenTab_Result{}, nil
		}
		l := r.welcomed()
		l.command("dead", openTab("a"), 0)
		l.wantError(t, "dead", commandv1.ErrorCode_ERROR_CODE_EXPIRED)
		l.command("never", &commandv1.Action{Kind: openTab("a").Kind}, -time.Second)
		l.wantError(t, "never", commandv1.ErrorCode_ERROR_CODE_EXPIRED)
		l.command("first", openTab("a"), time.Minute)
		l.wantAck(t, "first")
		l.command("waits", openTab("b"), 10*time.Second)
		time.Sleep(11 * time.Second)
		if ce := l.wantError(t, "waits", commandv1.ErrorCode_ERROR_CODE_EXPIRED); !ce.GetRetryable() {
			t.Error("not retryable, though nothing was done")
		}
		time.Sleep(10 * time.Second)
		l.wantOutcome(t, "first")
		if r.handler.ran("dead")+r.handler.ran("never")+r.handler.ran("waits") != 0 {
			t.Error("an expired command ran")
		}
		r.end()
	})
}

func TestTimeRunsOutWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.handler.open = func(ctx context.Context, _ *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		l := r.welcomed()
		l.command("c1", openTab("a"), 5*time.Second)
		l.wantAck(t, "c1")
		time.Sleep(5*time.Second - 10*time.Millisecond)
		l.cancelCommand("c1") // as the server does when the time is up
		l.wantError(t, "c1", commandv1.ErrorCode_ERROR_CODE_EXPIRED)
		l.command("c2", openTab("a"), 5*time.Second)
		l.wantAck(t, "c2")
		time.Sleep(6 * time.Second)
		l.wantError(t, "c2", commandv1.ErrorCode_ERROR_CODE_EXPIRED)
		r.end()
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := start(t, func(c *DeviceConfig) { c.Concurrent = 2 })
		r.handler.open = func(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			if a.GetUrl() == "stubborn" {
				<-release
				return &commandv1.OpenTab_Result{}, nil
			}
			<-ctx.Done()
			if a.GetUrl() == "done" {
				return &commandv1.OpenTab_Result{Url: "done"}, nil
			}
			return nil, ctx.Err()
		}
		l := r.welcomed()
		l.command("obeys", openTab("x"), time.Minute)
		l.wantAck(t, "obeys")
		l.command("stubborn", openTab("stubborn"), time.Minute)
		l.wantAck(t, "stubborn")
		l.command("waits", openTab("x"), time.Minute)
		l.wantNothing(t) // both places are taken
		l.cancelCommand("waits")
		if ce := l.wantError(t, "waits", commandv1.ErrorCode_ERROR_CODE_CANCELLED); !strings.Contains(ce.GetMessage(), "nothing was done") {
			t.Errorf("message %q", ce.GetMessage())
		}
		l.cancelCommand("obeys")
		l.wantError(t, "obeys", commandv1.ErrorCode_ERROR_CODE_CANCELLED)
		l.cancelCommand("stubborn")
		l.wantNothing(t)
		time.Sleep(stopGrace)
		l.wantError(t, "stubborn", commandv1.ErrorCode_ERROR_CODE_CANCELLED)
		close(release)
		l.wantNothing(t) // it has its one outcome
		l.command("done", openTab("done"), time.Minute)
		l.wantAck(t, "done")
		l.cancelCommand("done")
		if l.wantOutcome(t, "done").GetResult() == nil {
			t.Error("what was done in spite of the cancel is not told")
		}
		l.cancelCommand("unknown")
		l.wantNothing(t)
		if r.handler.ran("waits") != 0 {
			t.Error("a cancelled command ran")
		}
		r.end()
	})
}

func TestWhatAHandlerMayReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.handler.open = func(_ context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			switch a.GetUrl() {
			case "panic":
				panic("oh no")
			case "refused":
				return nil, Errorf(CodeRefused, "not %s", "this")
			case "unauthenticated":
				return nil, Errorf(CodeUnauthenticated, "no code of a command")
			case "plain":
				return nil, errors.New("disk \xff full")
			case "nothing":
				return nil, nil
			case "latin1":
				return &commandv1.OpenTab_Result{Url: "caf\xe9"}, nil
			case "huge":
				return &commandv1.OpenTab_Result{Url: strings.Repeat("x", outcomeBytes+1)}, nil
			default:
				return nil, commandv1.ErrUnsupported
			}
		}
		l := r.welcomed()
		for url, want := range map[string]commandv1.ErrorCode{
			"panic": commandv1.ErrorCode_ERROR_CODE_FAILED, "refused": commandv1.ErrorCode_ERROR_CODE_REFUSED,
			"unauthenticated": commandv1.ErrorCode_ERROR_CODE_FAILED, "plain": commandv1.ErrorCode_ERROR_CODE_FAILED,
			"nothing": commandv1.ErrorCode_ERROR_CODE_FAILED, "declined": commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED,
			"latin1": commandv1.ErrorCode_ERROR_CODE_FAILED, "huge": commandv1.ErrorCode_ERROR_CODE_FAILED,
		} {
			l.command(url, openTab(url), time.Minute)
			l.wantAck(t, url)
			ce := l.wantError(t, url, want)
			if ce.GetMessage() == "" || strings.Contains(ce.GetMessage(), "oh no") {
				t.Errorf("%s: message %q", url, ce.GetMessage())
			}
		}
		r.end()
	})
}

func TestActionsThatAreNotRun(t *testing.T) {
	t.Parallel()
	future := &commandv1.Action{}
	if err := proto.Unmarshal(protowire.AppendBytes(protowire.AppendTag(nil, 77, protowire.BytesType), []byte("x")), future); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		l := r.welcomed()
		l.command("future", future, time.Minute)
		if ce := l.wantError(t, "future", commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED); !strings.Contains(ce.GetMessage(), "77") {
			t.Errorf("message %q does not name the action", ce.GetMessage())
		}
		l.command("empty", &commandv1.Action{}, time.Minute)
		l.wantError(t, "empty", commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED)
		l.command("invalid", closeTabs(), time.Minute)
		l.wantError(t, "invalid", commandv1.ErrorCode_ERROR_CODE_INVALID)
		l.command("declined", &commandv1.Action{Kind: &commandv1.Action_GetActiveTab{GetActiveTab: &commandv1.GetActiveTab{}}}, time.Minute)
		l.wantAck(t, "declined")
		if ce := l.wantError(t, "declined", commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED); !strings.Contains(ce.GetMessage(), "getActiveTab") {
			t.Errorf("message %q does not name the action", ce.GetMessage())
		}
		if r.handler.ran("invalid") != 0 {
			t.Error("an invalid command ran")
		}
		r.end()
	})
}

func TestTooManyCommandsAreRefusedNotQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.handler.open = func(ctx context.Context, _ *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		l := r.welcomed()
		go func() { // the acknowledgements
			for range l.up {
			}
		}()
		defer close(l.up)
		for i := range inFlightMost {
			l.command(string(rune('a'+i%26))+strings.Repeat("x", i/26), openTab("a"), time.Minute)
		}
		synctest.Wait()
		l.command("one more", openTab("a"), time.Minute)
		synctest.Wait()
		if n := r.handler.ran("one more"); n != 0 {
			t.Errorf("ran %d times", n)
		}
		l.end(devicev1.EndReason_END_REASON_VIOLATION, 0)
		next := r.link()
		if len(next.hello.GetOutcomes()) != 1 || next.hello.GetOutcomes()[0].GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_BUSY {
			t.Errorf("outcomes %v", next.hello.GetOutcomes())
		}
		if n := len(next.hello.GetRunningCommandIds()); n != defaultConcurrent {
			t.Errorf("%d run", n)
		}
		r.end()
	})
}

func TestStopIsClean(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.handler.open = func(ctx context.Context, _ *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		l := r.welcomed()
		l.command("c1", openTab("a"), time.Minute)
		l.wantAck(t, "c1")
		r.stop()
		l.wantError(t, "c1", commandv1.ErrorCode_ERROR_CODE_INTERRUPTED)
		if f := l.next(); f.GetGoodbye() == nil {
			t.Fatalf("frame %v, want a goodbye", f)
		}
		if !l.finished {
			t.Error("the link is not finished")
		}
		l.command("late", openTab("a"), time.Minute)
		synctest.Wait()
		close(l.down)
		if err := <-r.ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if _, known := r.device.cfg.Journal.Lookup("late"); known || r.handler.ran("late") != 0 {
			t.Error("a command was taken on after the goodbye")
		}
	})
}

func TestRunTwiceAtATimeIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.welcomed()
		if err := r.device.Run(t.Context()); err == nil {
			t.Error("a second Run began")
		}
		r.end()
		go func() { r.ended <- r.device.Run(t.Context()) }() // one after the other is fine
		r.link().end(devicev1.EndReason_END_REASON_REPLACED, 0)
		if err := <-r.ended; !errors.Is(err, ErrReplaced) {
			t.Errorf("Run = %v", err)
		}
	})
}
