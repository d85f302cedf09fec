package schema_test

import (
	"strings"
	"testing"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
)

func TestScratch(t *testing.T) {
	file := tooltest.Compile(t, `syntax="proto3"; package snippet; import "buf/validate/validate.proto";`+reference)
	for _, p := range []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal} {
		var fs []tooltest.Function
		for i := range file.Messages().Len() {
			name := string(file.Messages().Get(i).Name())
			o, _ := schema.Of(file.Messages().Get(i), comment)
			fs = append(fs, tooltest.Function{Name: strings.ToLower(name[:1]) + name[1:], Description: o.Text, Parameters: schema.Print(p, o), Strict: p == schema.ProfileStrict})
		}
		a := tooltest.Array(t, fs)
		t.Logf("%s %d %d\n%s", p, len(a), tooltest.Tokens(t, a), strings.ReplaceAll(a, `{"type":"function"`, "\n{\"type\":\"function\""))
	}
	c, _ := catalog.New(gen.Descriptors)
	for _, p := range []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal} {
		var fs []tooltest.Function
		for _, e := range append(c.Queries(), c.Commands()...) {
			o, _ := schema.Of(e.In, c.Comment)
			fs = append(fs, tooltest.Function{Name: e.Name, Description: e.Summary, Parameters: schema.Print(p, o), Strict: p == schema.ProfileStrict})
		}
		a := tooltest.Array(t, fs)
		t.Logf("%s %d %d\n%s", p, len(a), tooltest.Tokens(t, a), strings.ReplaceAll(a, `{"type":"function"`, "\n{\"type\":\"function\""))
	}
}
