package throwbar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

const (
	rotateTimeout = 10 * time.Second
	// rotateAgain is the wait after a rotation that failed; it is doubled with each try.
	rotateAgain   = 5 * time.Second
	rotateSlowest = 5 * time.Minute
)

var errRotated = errors.New("the device has another token")

// keeper has the identity of a device as it is now. A new token is kept before it is used, together with the one before
// it, which works until the new one is first used: whatever is lost on the way, one of the two is good.
type keeper struct {
	keep func(Identity) error // nil if nobody keeps it

	mu       sync.Mutex
	identity Identity // guarded by mu
}

func (k *keeper) get() Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.identity
}

func (k *keeper) token() string { return k.get().Token }

// put keeps an identity and then uses it.
func (k *keeper) put(i Identity) error {
	if k.keep != nil {
		if err := k.keep(i); err != nil {
			return fmt.Errorf("keep the identity: %w", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.identity = i
	return nil
}

// proven forgets the token before: the server has taken the present one.
func (k *keeper) proven() error {
	i := k.get()
	if i.Previous == "" {
		return nil
	}
	i.Previous = ""
	return k.put(i)
}

// fallBack goes back to the token before, if there is one and the present one is what the server does not take.
func (k *keeper) fallBack(err error) bool {
	var own *Error
	i := k.get()
	if i.Previous == "" || !errors.As(err, &own) || !own.remote || own.Code != CodeUnauthenticated {
		return false
	}
	i.Token, i.Previous = i.Previous, ""
	k.mu.Lock()
	k.identity = i
	k.mu.Unlock()
	if k.keep != nil {
		_ = k.keep(i) // if it is not written, the next start finds both and falls back again
	}
	return true
}

// rotator asks the server for another token.
func rotator(c HTTPClient, server string, token func() string) func(context.Context) (string, error) {
	client := devicev1connect.NewDeviceServiceClient(newRPCWith(c, server, token))
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, rotateTimeout)
		defer cancel()
		res, err := client.RotateToken(ctx, &devicev1.RotateTokenRequest{})
		if err != nil {
			return "", err
		}
		if res.GetToken() == "" {
			return "", Errorf(CodeInternal, "the server gave an empty token")
		}
		return res.GetToken(), nil
	}
}

// rotate takes another token and ends the link, so that the next one is opened with it. It tries until the link ends.
func (s *session) rotate(linkCtx context.Context) {
	if s.cfg.Keep == nil {
		s.cfg.Log.InfoContext(linkCtx, "the server asks for a new token, and there is nowhere to keep one",
			slog.String("device_id", s.cfg.Identity.DeviceID))
		return
	}
	for wait := rotateAgain; ; wait = min(2*wait, rotateSlowest) {
		err := s.takeToken(linkCtx)
		if err == nil {
			s.cancel(errRotated)
			return
		}
		if linkCtx.Err() != nil {
			return
		}
		s.cfg.Log.WarnContext(linkCtx, "no new token yet", slog.String("device_id", s.cfg.Identity.DeviceID),
			slog.Any("error", err), slog.Duration("retry_in", wait))
		if !sleep(linkCtx, wait) {
			return
		}
	}
}

func (s *session) takeToken(ctx context.Context) error {
	token, err := s.getToken(ctx)
	if err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	i := s.keeper.get()
	i.Token, i.Previous = token, i.Token
	return s.keeper.put(i)
}
