package schema_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
)

var update = flag.Bool("update", false, "write the golden files and docs/tool-schemas.md")

// Bars in tokens of o200k. The other systems that were measured on the reference tools need 815 without any text of fields,
// limits or correct required, and 1,870 to 2,858 with them.
const (
	barRich   = 960
	barStrict = 1140
	barBare   = 760
)

// printing is one way to write a list of tools.
type printing struct {
	set     string
	profile schema.Profile
	tools   []tooltest.Function
	bar     int // none if 0; not kept in the golden file if below
}

// TestTokens: the thirteen tools stay within the bars, and every change of a size is seen in testdata/tokens.golden.
func TestTokens(t *testing.T) {
	t.Parallel()
	var golden strings.Builder
	fmt.Fprintf(&golden, "%-26s %-14s %6s %7s\n", "thirteen tools", "profile", "bytes", "tokens")
	for _, p := range printings(t) {
		text := tooltest.Array(t, p.tools)
		tokens := tooltest.Tokens(t, text)
		if p.bar < 0 { // the contract grows; its size is only shown
			t.Logf("%s as %s: %d bytes, %d tokens", p.set, p.profile, len(text), tokens)
			continue
		}
		fmt.Fprintf(&golden, "%-26s %-14s %6d %7d\n", p.set, p.profile, len(text), tokens)
		if p.bar > 0 && tokens > p.bar {
			t.Errorf("%s as %s: %d tokens, the bar is %d\n%s", p.set, p.profile, tokens, p.bar, text)
		}
	}
	t.Logf("\n%s", golden.String())
	compareGolden(t, "testdata/tokens.golden", golden.String())
}

func printings(t *testing.T) []printing {
	t.Helper()
	file := tooltest.Compile(t, `syntax="proto3"; package snippet; import "buf/validate/validate.proto";`+reference)
	own, c := load(t)
	messages := func(d protoreflect.Descriptor) string {
		if _, ok := d.(protoreflect.MessageDescriptor); ok {
			return comment(d)
		}
		return ""
	}
	out := []printing{
		{"reference, no field texts", schema.ProfilePortable, functions(file, schema.ProfilePortable, messages, false), barBare},
		{"reference, every text", schema.ProfilePortable, functions(file, schema.ProfilePortable, comment, true), barRich},
	}
	for _, profile := range profiles() {
		bar := barRich
		if profile == schema.ProfileStrict {
			bar = barStrict
		}
		out = append(out,
			printing{"reference", profile, functions(file, profile, comment, false), bar},
			printing{"our own", profile, offered(own, profile, sourceTools()), bar})
	}
	var all []string
	for _, e := range slices.Concat(c.Queries(), c.Commands(), c.Facilities()) {
		all = append(all, e.Name)
	}
	for _, profile := range profiles() {
		out = append(out, printing{fmt.Sprintf("all our %d tools", len(all)), profile, offered(own, profile, all), -1})
	}
	return out
}

// sourceTools are the thirteen tools of the first set.
func sourceTools() []string {
	return strings.Fields("searchTabs listTabs listWindows listDevices countByDomain closeTabs openTab activateTab saveTabs groupTabs pinTabs muteTabs reloadTabs")
}

func load(t testing.TB) (*tool.Set, *catalog.Catalogue) {
	t.Helper()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	return set, c
}

// functions are the messages of a file as tools, with texts that repeat names or without.
func functions(file protoreflect.FileDescriptor, profile schema.Profile, comment func(protoreflect.Descriptor) string, every bool) []tooltest.Function {
	var out []tooltest.Function
	for i := range file.Messages().Len() {
		name := string(file.Messages().Get(i).Name())
		o, _ := schema.Of(file.Messages().Get(i), comment)
		for _, p := range o.Properties {
			p.Node.Plain = p.Node.Plain && !every
		}
		out = append(out, tooltest.Function{
			Name: strings.ToLower(name[:1]) + name[1:], Description: o.Text, Parameters: schema.Print(profile, o),
			Strict: profile == schema.ProfileStrict && schema.Strictable(o),
		})
	}
	return out
}

// offered are tools of the contract by name.
func offered(set *tool.Set, profile schema.Profile, names []string) []tooltest.Function {
	var out []tooltest.Function
	for _, name := range names {
		tl, _ := set.Lookup(name)
		out = append(out, tooltest.Function{
			Name: tl.Name, Description: tl.Description, Parameters: schema.Print(profile, tl.Schema),
			Strict: profile == schema.ProfileStrict && schema.Strictable(tl.Schema),
		})
	}
	return out
}

func comment(d protoreflect.Descriptor) string { return strings.TrimSpace(tooltest.Comment(d)) }

// compareGolden compares a text with a file, or writes it.
func compareGolden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := os.ReadFile(path)
	if err != nil || string(saved) != text {
		t.Errorf("%s is not what the code says (%v); run with -update and look at the difference", path, err)
	}
}

// BenchmarkPrint prints a thousand tools, as many as a large catalogue may have, in one profile.
func BenchmarkPrint(b *testing.B) {
	set, _ := load(b)
	for _, profile := range profiles() {
		b.Run(string(profile), func(b *testing.B) {
			for b.Loop() {
				for i := range 1000 {
					schema.Print(profile, set.Tools()[i%len(set.Tools())].Schema)
				}
			}
		})
	}
}
