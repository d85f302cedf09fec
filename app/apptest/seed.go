package apptest

import (
	"testing"

	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/store"
)

// Seed is Enrol for a test: paired devices in a folder that no server uses yet. The identities still need the server's
// address.
func Seed(t testing.TB, dir string, n int) []throwbar.Identity {
	t.Helper()
	identities, err := Enrol(t.Context(), store.Config{Dir: dir}, "", n)
	if err != nil {
		t.Fatal(err)
	}
	return identities
}
