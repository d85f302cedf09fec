package ident_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"throwbar.dev/throwbar/ident"
)

func TestParseReadsWhatStringMakes(t *testing.T) {
	t.Parallel()
	for _, want := range []ident.Composite{
		{Device: "k3v9x2mqta", Kind: ident.Tab, Boot: "7fq2", Native: 1043},
		{Device: "a", Kind: ident.Window, Boot: "", Native: 0},
		{Device: "zz99", Kind: ident.Group, Boot: "0", Native: 9223372036854775807},
	} {
		got, err := ident.Parse(want.String())
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v", want.String(), got, err)
		}
	}
}

func TestParseRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"", "_", "a", "a_", "a_t", "a_tb", "a_tb-", "a_xb-1", "a_tb-01", "a_tb--1", "a_tb-+1", "a_tb-1 ", "A_tb-1",
		"a_tB-1", "a_tb-99999999999999999999", "a_tb-1_2", "_tb-1", strings.Repeat("a", 33) + "_tb-1", "a b_tb-1",
	} {
		if c, err := ident.Parse(id); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", id, c)
		}
	}
}

func TestNewDeviceIDIsShortRandomAndValid(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id, err := ident.NewDeviceID(rand.Reader)
		if err != nil || len(id) != 10 || !ident.ValidDeviceID(id) || seen[id] {
			t.Fatalf("NewDeviceID = %q, %v (seen before: %v)", id, err, seen[id])
		}
		seen[id] = true
	}
	if _, err := ident.NewDeviceID(bytes.NewReader(nil)); err == nil {
		t.Error("no error without randomness")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("k3v9x2mqta_t7fq2-1043")
	f.Add("a_g-0")
	f.Fuzz(func(t *testing.T, id string) {
		c, err := ident.Parse(id)
		if err == nil && c.String() != id {
			t.Errorf("Parse(%q) = %+v, which is %q", id, c, c.String())
		}
	})
}

func TestURLPattern(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pattern, address string
		want             bool
	}{
		{"https://www.youtube.com/*", "https://www.youtube.com/watch?v=1", true},
		{"https://www.youtube.com/*", "https://www.youtube.com.evil.example/", false},
		{"*youtube.com*", "https://m.youtube.com/", true},
		{"www.youtube.com/*", "https://www.youtube.com/", true},
		{"https://a.example", "https://A.example:443/", true},
		{"a.example", "https://a.example/", true},
		{"https://a.example/x", "https://a.example/x/", false},
		{"*/a*a", "https://h/a", false},
		{"*", "about:blank", true},
		{"http://localhost:8080/*", "http://localhost:8080/x", true},
	} {
		if got := ident.URLPattern(row.pattern)(row.address); got != row.want {
			t.Errorf("URLPattern(%q)(%q) = %v", row.pattern, row.address, got)
		}
	}
}
