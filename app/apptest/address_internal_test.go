package apptest

import (
	"errors"
	"testing"
)

func TestPortsAreOutsideOfTheRangeForConnections(t *testing.T) {
	t.Parallel()
	for written, want := range map[string][2]int{
		"32768\t60999\n": {15_000, 32_000},
		"20000\t60999\n": {15_000, 20_000},
		"1024\t60999\n":  {61_000, 65_536},
		"1024 65535":     {15_000, 32_000}, // there are none
		"49152\t65535\n": {15_000, 32_000},
		"":               {15_000, 32_000},
		"a b":            {15_000, 32_000},
	} {
		if first, last := outside([]byte(written), nil); first != want[0] || last != want[1] {
			t.Errorf("%q: %d to %d, want %v", written, first, last, want)
		}
	}
	if first, last := outside(nil, errors.New("no such file")); first != 15_000 || last != 32_000 {
		t.Errorf("without the file: %d to %d", first, last)
	}
}

// TestNoAddressIsGivenTwice: the port of a server that is down for a moment is not free.
func TestNoAddressIsGivenTwice(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 300 {
		address := FreeAddress(t)
		if seen[address] {
			t.Fatalf("%q again", address)
		}
		seen[address] = true
	}
}
