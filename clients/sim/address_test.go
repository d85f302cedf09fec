package sim

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	throwbar "throwbar.dev/throwbar/clients/go"
)

// TestAddressTable holds the simulator to the table that the extension is held to.
func TestAddressTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../es/testdata/urls.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Addresses []struct{ Input, URL, Reason string }
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Addresses) == 0 {
		t.Fatal("the table is empty")
	}
	for _, row := range table.Addresses {
		got, err := checkAddress(row.Input)
		if got != row.URL || (err == nil) != (row.Reason == "") {
			t.Errorf("%q: %q, %v; want %q, %s", row.Input, got, err, row.URL, row.Reason)
		}
		if err != nil && throwbar.CodeOf(err) != throwbar.CodeRefused {
			t.Errorf("%q: %v", row.Input, err)
		}
	}
}

// Row 21 of the known failures: addresses that do more than open a page.
func TestSecurityRow21DangerousAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "\x01javascript:alert(1)",
		"javascript://example.com/%0aalert(1)", "data:text/html,<script>alert(1)</script>", "file:///etc/passwd", "FILE:/etc/passwd",
		"blob:https://example.com/1", "filesystem:https://example.com/x", "view-source:https://example.com", "about:blank", "chrome://settings",
		"chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/panel.html", "edge://settings", "devtools://devtools", "ftp://example.com",
		"vbscript:x", "ws://example.com", "intent://x#Intent;end", "https://user@example.com/", "https://user:secret@example.com/",
		"user:secret@example.com", "https:///example.com", "https:example.com", `https:\\example.com`, "https://exa mple.com", "https://", "",
	} {
		if got, err := checkAddress(address); throwbar.CodeOf(err) != throwbar.CodeRefused || got != "" {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
	// The reason is told, so that what asked for it does not try it in another form.
	for address, want := range map[string]string{
		"data:text/html,x": "only http and https", "file:///etc/passwd": "only http and https", "ftp://example.com": "only http and https",
		"https://user:secret@example.com/": "user name or password", "user@example.com": "user name or password",
	} {
		if _, err := checkAddress(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"example.com", "http://a:80/x?y#z", "javascript:1", "https://[::1]:8/", "https://ü.example/ß"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input string) {
		once, err := checkAddress(input)
		if err != nil {
			return
		}
		if twice, err := checkAddress(once); err != nil || twice != once {
			t.Errorf("%q becomes %q, which becomes %q, %v", input, once, twice, err)
		}
	})
}
