package throwbar_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// floors are the oldest versions of modules that are free of a known failure, and which.
var floors = map[string]struct{ version, why string }{
	"google.golang.org/grpc":     {"v1.79.3", "CVE-2026-33186: authorization by path was bypassed by odd paths"},
	"google.golang.org/protobuf": {"v1.33.0", "CVE-2024-24786: a JSON message made the decoder loop for ever"},
}

var required = regexp.MustCompile(`(?m)^\s*(?:require\s+)?(\S+)\s+(v\d+\.\d+\.\d+)\S*`)

// Row 8 of the known failures: also of what only tests and tools are built with.
func TestSecurityRow08LawFloorVersions(t *testing.T) {
	t.Parallel()
	for older, newer := range map[string]string{"v1.9.0": "v1.79.3", "v1.79.2": "v1.79.3", "v1.79.3": "v1.80.0", "v0.99.99": "v1.0.0"} {
		if !before(older, newer) || before(newer, older) || before(older, older) {
			t.Fatalf("the law itself is wrong about %s and %s", older, newer)
		}
	}
	seen := map[string]int{}
	for _, name := range strings.Fields(string(run(t, "git", "ls-files", "--", "go.mod", "*/go.mod"))) {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range required.FindAllStringSubmatch(string(raw), -1) {
			floor, ok := floors[m[1]]
			if !ok {
				continue
			}
			seen[m[1]]++
			if before(m[2], floor.version) {
				t.Errorf("%s: %s %s is older than %s: %s", name, m[1], m[2], floor.version, floor.why)
			}
		}
	}
	for module := range floors {
		if seen[module] == 0 {
			t.Errorf("no go.mod requires %s: is this list the right one?", module)
		}
	}
}

// before says whether a version is older than another; both are vX.Y.Z.
func before(a, b string) bool {
	as, bs := strings.Split(a[1:], "."), strings.Split(b[1:], ".")
	for i := range as {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return false
}
