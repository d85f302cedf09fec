package auth_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// memory is a store of tokens. Writing takes a while, so that what may happen meanwhile does.
type memory struct {
	fail atomic.Bool

	mu   sync.Mutex
	kept []auth.Token // guarded by mu
	uses int          // guarded by mu
}

var errFull = errors.New("the disk is full")

func (m *memory) Tokens(context.Context) ([]auth.Token, error) { return m.kept, nil }

func (m *memory) write(then func()) error {
	<-time.After(time.Millisecond)
	if m.fail.Load() {
		return errFull
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	then()
	return nil
}

func (m *memory) AddToken(_ context.Context, t auth.Token) error {
	return m.write(func() { m.kept = append(m.kept, t) })
}
func (m *memory) RevokeToken(context.Context, auth.Token) error { return m.write(func() {}) }
func (m *memory) AskRotation(context.Context, auth.Token) error { return m.write(func() {}) }
func (m *memory) RotateToken(context.Context, auth.Token, auth.Token) error {
	return m.write(func() {})
}
func (m *memory) UseToken(context.Context, auth.Token) error { return m.write(func() { m.uses++ }) }

func start(t *testing.T, m *memory) *auth.Tokens {
	t.Helper()
	var n atomic.Int64
	known, err := auth.New(t.Context(), m, rand.Reader, time.Now, func() string { return "t" + strconv.FormatInt(n.Add(1), 10) })
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func ofDevice(secret string) auth.Token {
	return auth.Token{
		ID: "d1", Workspace: "w", Name: "d", Scope: optionv1.Scope_SCOPE_DEVICE, Device: "dev", Hash: auth.HashOf(secret),
		CreatedAt: time.Now(),
	}
}

// Every scope against every other: viewer, operator and owner include the ones before, device and hook nothing.
func TestScopesIncludeWhatTheyShould(t *testing.T) {
	t.Parallel()
	const pub, viewer, operator, owner, device, hook = optionv1.Scope_SCOPE_PUBLIC, optionv1.Scope_SCOPE_VIEWER,
		optionv1.Scope_SCOPE_OPERATOR, optionv1.Scope_SCOPE_OWNER, optionv1.Scope_SCOPE_DEVICE, optionv1.Scope_SCOPE_HOOK
	may := map[optionv1.Scope][]optionv1.Scope{
		viewer: {pub, viewer}, operator: {pub, viewer, operator}, owner: {pub, viewer, operator, owner}, device: {pub, device},
		hook: {pub}, optionv1.Scope_SCOPE_UNSPECIFIED: {pub}, pub: {pub}, 7: {pub},
	}
	for have, wants := range may {
		for want := range optionv1.Scope(9) {
			ok := false
			for _, w := range wants {
				ok = ok || w == want
			}
			if err := auth.Allowed(have, want); (err == nil) != ok {
				t.Errorf("%v for %v: %v", have, want, err)
			}
		}
	}
}

// Two owners that are revoked at once do not leave the workspace without one.
func TestOneOfTwoLastOwnersStays(t *testing.T) {
	t.Parallel()
	for range 50 {
		known := start(t, &memory{})
		var ids []string
		for range 2 {
			token, _, err := known.Issue(t.Context(), "w", "owner", optionv1.Scope_SCOPE_OWNER, 0)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, token.ID)
		}
		var group sync.WaitGroup
		var refused atomic.Int32
		for _, id := range ids {
			group.Go(func() {
				if err := known.Revoke(t.Context(), "w", id); fault.CodeOf(err) == fault.Refused {
					refused.Add(1)
				}
			})
		}
		group.Wait()
		if left := len(known.List("w")); left != 1 || refused.Load() != 1 {
			t.Fatalf("%d owners left, %d refused", left, refused.Load())
		}
	}
}

// Many calls at once with a new token use it once, and all are let through.
func TestANewTokenIsUsedOnce(t *testing.T) {
	t.Parallel()
	store := &memory{kept: []auth.Token{ofDevice("old")}}
	known := start(t, store)
	secret, err := known.Rotate(t.Context(), store.kept[0])
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			token, err := known.Authenticate(secret)
			if err == nil {
				err = known.Use(t.Context(), token)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if store.uses != 1 {
		t.Errorf("used %d times", store.uses)
	}
	if _, err := known.Authenticate("old"); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("the old token: %v", err)
	}
}

// What cannot be written down changes nothing.
func TestAStoreThatFailsLosesNoToken(t *testing.T) {
	t.Parallel()
	store := &memory{kept: []auth.Token{ofDevice("old")}}
	known := start(t, store)
	secret, err := known.Rotate(t.Context(), store.kept[0])
	if err != nil {
		t.Fatal(err)
	}
	token, err := known.Authenticate(secret)
	if err != nil {
		t.Fatal(err)
	}
	store.fail.Store(true)
	if err := known.Use(t.Context(), token); !errors.Is(err, errFull) {
		t.Errorf("use: %v", err)
	}
	if _, err := known.Rotate(t.Context(), store.kept[0]); !errors.Is(err, errFull) {
		t.Errorf("rotate: %v", err)
	}
	if err := known.AskRotation(t.Context(), "w", "dev", "o"); !errors.Is(err, errFull) || known.ShouldRotate(store.kept[0]) {
		t.Errorf("ask: %v", err)
	}
	for _, s := range []string{"old", secret} {
		if _, err := known.Authenticate(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// A call ends when its token is void, and says why; one that ends before leaves nothing behind.
func TestACallEndsWithItsToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known := start(t, &memory{})
		short, _, err := known.Issue(t.Context(), "w", "p", optionv1.Scope_SCOPE_VIEWER, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		long, _, err := known.Issue(t.Context(), "w", "p", optionv1.Scope_SCOPE_VIEWER, 0)
		if err != nil {
			t.Fatal(err)
		}
		ends := map[string]context.Context{}
		for name, token := range map[string]auth.Token{"short": short, "long": long} {
			ctx, release := known.Bind(t.Context(), token)
			defer release()
			ends[name] = ctx
		}
		<-time.After(time.Hour - time.Second)
		synctest.Wait()
		if ends["short"].Err() != nil || ends["long"].Err() != nil {
			t.Fatal("a call ended too early")
		}
		<-time.After(time.Second)
		synctest.Wait()
		if cause := context.Cause(ends["short"]); fault.CodeOf(cause) != fault.Unauthenticated || ends["long"].Err() != nil {
			t.Errorf("after the hour: %v, %v", cause, ends["long"].Err())
		}
		if err := known.Revoke(t.Context(), "w", long.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if cause := context.Cause(ends["long"]); fault.CodeOf(cause) != fault.Unauthenticated {
			t.Errorf("after the revocation: %v", cause)
		}
		ctx, release := known.Bind(t.Context(), long) // authenticated a moment before
		defer release()
		if fault.CodeOf(context.Cause(ctx)) != fault.Unauthenticated {
			t.Errorf("with a token that is void: %v", context.Cause(ctx))
		}
	})
}

// A wall clock that is set forward ends calls, though no time has passed.
func TestAClockThatIsSetEndsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		known, err := auth.New(t.Context(), &memory{}, rand.Reader, now, func() string { return "t" })
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := known.Issue(t.Context(), "w", "p", optionv1.Scope_SCOPE_VIEWER, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		ctx, release := known.Bind(t.Context(), token)
		defer release()
		ahead.Store(int64(48 * time.Hour))
		<-time.After(time.Minute)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("it goes on")
		}
	})
}

func BenchmarkBind(b *testing.B) {
	store := &memory{kept: []auth.Token{{ID: "t", Workspace: "w", Scope: optionv1.Scope_SCOPE_OWNER, Hash: auth.HashOf("s")}}}
	known, err := auth.New(b.Context(), store, rand.Reader, time.Now, func() string { return "t" })
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		token, err := known.Authenticate("s")
		if err != nil {
			b.Fatal(err)
		}
		_, release := known.Bind(b.Context(), token)
		release()
	}
}
