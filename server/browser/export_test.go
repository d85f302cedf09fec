package browser

import (
	"context"
	"math/bits"
)

// Texts is what a tab is searched by.
func Texts(title, url string) []string { return texts(title, url) }

// DomainOf is the domain that an address counts for.
func DomainOf(url string) string { return domainOf(url) }

// Has is the quick way to what search.Match says of Texts.
func Has(title, url, word string) bool { return new(reader).has(title, url, word) }

// Flush stores what has changed.
func (s *State) Flush(ctx context.Context) error { return s.flush(ctx) }

// Used is how many pages of the index have an owner, and how many of their slots are in use.
func (s *State) Used() int {
	n := 0
	for _, own := range s.owners {
		if own.device != nil {
			n += 1 + bits.OnesCount64(own.device.pages[int(own.first)/64].used)
		}
	}
	return n + len(s.domains.ids)
}

// Touch makes a device's state one that has to be stored.
func (s *State) Touch(device string) { s.devices[device].changed++ }

// Former is how many ids that tabs had before are remembered for a device, in the larger one of the two ways.
func (s *State) Former(device string) int {
	a := &s.devices[device].aliases
	n := 0
	for _, ids := range a.was {
		n += len(ids)
	}
	return max(n, len(a.now))
}
