package rpc_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// Security 14: guesses over the network, in parallel, each with a forged address.
func TestSecurity14GuessesFindNothing(t *testing.T) {
	t.Parallel()
	log := &lines{}
	c := &clock{}
	s := apptest.Start(t, app.Config{Now: c.now, Log: slog.New(slog.NewTextHandler(log, nil))})
	code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	guesses := 10_000
	if testing.Short() {
		guesses = 500
	}
	began := time.Now()
	counts := guessAll(t, s, guesses)
	if counts[0] != 0 || counts[connect.CodePermissionDenied] == 0 ||
		counts[connect.CodePermissionDenied]+counts[connect.CodeResourceExhausted] != guesses {
		t.Errorf("answers: %v", counts)
	}
	most := max(guesses/5, 20+int(time.Since(began)/(100*time.Millisecond))) // the throttle has room for so many more meanwhile
	if looked := counts[connect.CodePermissionDenied]; looked > most {
		t.Errorf("%d of %d guesses were looked at: forged addresses get past the throttle", looked, guesses)
	}
	if !log.has("wrong pairing code", "peer=127.0.0.1:") {
		t.Error("the log does not say that codes were guessed")
	}
	c.set(time.Minute) // the throttle has room again
	redeem := func(code string) error {
		res, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
			Code: code, Name: "laptop", Kind: devicev1.Kind_KIND_BROWSER,
		})
		if err == nil && res.GetDeviceId() == "" {
			t.Error("a pairing without a device")
		}
		return err
	}
	if err := redeem(code.GetCode()); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("the code after the guesses: %v", err)
	}
	fresh, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := redeem(fresh.GetCode()); err != nil {
		t.Errorf("the rightful device with a new code: %v", err)
	}
}

func guessAll(t *testing.T, s *apptest.Server, guesses int) map[connect.Code]int {
	t.Helper()
	counts := map[connect.Code]int{}
	var mu sync.Mutex
	var guessers sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	t.Cleanup(transport.CloseIdleConnections)
	shared := func(headers map[string]string) *connect.Client {
		return connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: transport}, s.URL), withHeaders(headers))
	}
	for g := range 50 {
		guessers.Go(func() {
			for n := range guesses / 50 {
				forged := "10." + strconv.Itoa(g) + "." + strconv.Itoa(n%250) + ".9"
				client := devicev1connect.NewDeviceServiceClient(shared(map[string]string{
					"X-Forwarded-For": forged, "Forwarded": "for=" + forged, "X-Real-IP": forged,
				}))
				_, err := client.Pair(t.Context(), &devicev1.PairRequest{
					Code: "AAAAA-" + fmt.Sprintf("%05d", g*1000+n), Name: "thief", Kind: devicev1.Kind_KIND_BROWSER,
				})
				mu.Lock()
				if err == nil {
					counts[0]++
				} else {
					counts[connect.CodeOf(err)]++
				}
				mu.Unlock()
			}
		})
	}
	guessers.Wait()
	return counts
}

func withHeaders(headers map[string]string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			ctx, info := connect.NewClientContext(ctx)
			for k, v := range headers {
				info.RequestHeader().Set(k, v)
			}
			return next(ctx, spec)
		}
	}
}

// Security 14: five misses burn a code, wherever they come from; a code that was not missed so often works.
func TestSecurity14ACodeDiesAfterFiveMisses(t *testing.T) {
	t.Parallel()
	for misses, want := range map[int]connect.Code{4: 0, 5: connect.CodePermissionDenied} {
		s := apptest.Start(t, app.Config{})
		code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for range misses {
			_, _ = s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: "x", Name: "n", Kind: devicev1.Kind_KIND_BROWSER})
		}
		_, err = s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
			Code: code.GetCode(), Name: "n", Kind: devicev1.Kind_KIND_BROWSER,
		})
		if got := connect.CodeOf(err); (err == nil) != (want == 0) || (err != nil && got != want) {
			t.Errorf("after %d misses: %v", misses, err)
		}
	}
}

// A name of blanks is refused before the code is used up.
func TestABlankNameCostsNoCode(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		name string
		want connect.Code
	}{{"  ", connect.CodeInvalidArgument}, {"laptop", 0}} {
		_, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
			Code: code.GetCode(), Name: try.name, Kind: devicev1.Kind_KIND_BROWSER,
		})
		if (err == nil) != (try.want == 0) || (err != nil && connect.CodeOf(err) != try.want) {
			t.Errorf("%q: %v", try.name, err)
		}
	}
}
