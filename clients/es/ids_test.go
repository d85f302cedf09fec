package es_test

import (
	"strconv"
	"testing"

	"throwbar.dev/throwbar/ident"
)

// TestIDTable holds the Go side to the table that the TypeScript side is held to.
func TestIDTable(t *testing.T) {
	t.Parallel()
	var table struct {
		Valid   []struct{ ID, Device, Kind, Boot, Native string }
		Invalid []string
	}
	read(t, "testdata/ids.json", &table)
	if len(table.Valid) == 0 || len(table.Invalid) == 0 {
		t.Fatal("the table is empty")
	}
	for _, want := range table.Valid {
		c, err := ident.Parse(want.ID)
		native := strconv.FormatInt(c.Native, 10)
		if err != nil || c.Device != want.Device || c.Kind.String() != want.Kind || c.Boot != want.Boot || native != want.Native {
			t.Errorf("Parse(%q) = %+v, %v", want.ID, c, err)
		}
	}
	for _, id := range table.Invalid {
		if c, err := ident.Parse(id); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", id, c)
		}
	}
}

// TestURLPatternTable holds the server's match of addresses to the extension's.
func TestURLPatternTable(t *testing.T) {
	t.Parallel()
	var table struct {
		Matches []struct {
			Pattern, URL string
			Match        bool
		}
	}
	read(t, "testdata/urls.json", &table)
	if len(table.Matches) == 0 {
		t.Fatal("the table is empty")
	}
	for _, want := range table.Matches {
		if got := ident.URLPattern(want.Pattern)(want.URL); got != want.Match {
			t.Errorf("URLPattern(%q)(%q) = %v", want.Pattern, want.URL, got)
		}
	}
}
