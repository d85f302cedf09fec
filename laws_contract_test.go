package throwbar_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/gen"
	_ "throwbar.dev/throwbar/gen/go/throwbar/agent/v1" // these link what the contract imports
	_ "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	_ "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// untargeted are id fields that point at nothing a command can act on: "message.field".
var untargeted = exceptions{}

// contract loads the embedded image; its imports come from the linked packages.
func contract(t *testing.T) *protoregistry.Files {
	t.Helper()
	var image descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(gen.Descriptors, &image); err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, f := range image.GetFile() {
		own[f.GetName()] = true
	}
	for i := 0; i < len(image.GetFile()); i++ {
		for _, dep := range image.GetFile()[i].GetDependency() {
			if own[dep] {
				continue
			}
			own[dep] = true
			linked, err := protoregistry.GlobalFiles.FindFileByPath(dep)
			if err != nil {
				t.Fatalf("%s: %v; import a generated package that links it", dep, err)
			}
			image.File = append(image.File, protodesc.ToFileDescriptorProto(linked))
		}
	}
	files, err := protodesc.NewFiles(&image)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// message finds a message of the contract.
func message(t *testing.T, name protoreflect.FullName) protoreflect.MessageDescriptor {
	t.Helper()
	d, err := contract(t).FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		t.Fatalf("%s is no message", name)
	}
	return m
}

// member is one command: its fields in the two unions. result is nil where the pair is broken.
type member struct{ action, result protoreflect.FieldDescriptor }

func members(t *testing.T) []member {
	t.Helper()
	actions := message(t, "throwbar.command.v1.Action").Oneofs().ByName("kind").Fields()
	results := message(t, "throwbar.command.v1.Result").Oneofs().ByName("kind").Fields()
	if actions.Len() == 0 || actions.Len() != results.Len() {
		t.Fatalf("%d actions and %d results", actions.Len(), results.Len())
	}
	var all []member
	for i := range actions.Len() {
		all = append(all, member{actions.Get(i), results.ByNumber(actions.Get(i).Number())})
	}
	return all
}

func methodsOf(t *testing.T) []protoreflect.MethodDescriptor {
	t.Helper()
	var all []protoreflect.MethodDescriptor
	contract(t).RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				all = append(all, methods.Get(j))
			}
		}
		return true
	})
	if len(all) == 0 {
		t.Fatal("the contract has no method")
	}
	return all
}

func comment(d protoreflect.Descriptor) string {
	return strings.TrimSpace(d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments)
}

func command(m protoreflect.MessageDescriptor) *optionv1.Command {
	c, _ := proto.GetExtension(m.Options(), optionv1.E_Command).(*optionv1.Command)
	return c
}

func TestLawCommandsAreDeclaredWhole(t *testing.T) {
	t.Parallel()
	all := members(t)
	taken := map[string]string{}
	for _, m := range all {
		name, in := m.action.Name(), m.action.Message()
		if m.result == nil || m.result.Name() != name || m.result.Message().FullName() != in.FullName().Append("Result") {
			t.Errorf("%s has no result of the same number and name, nested in its message", name)
		}
		c := command(in)
		if c.GetEffect() == optionv1.Effect_EFFECT_UNSPECIFIED || c.GetApproval() == optionv1.Approval_APPROVAL_UNSPECIFIED {
			t.Errorf("%s says no effect or no approval", name)
		}
		if c.GetMaxTargets() > 500 {
			t.Errorf("%s: at most 500 targets without approval", name)
		}
		if u := c.GetUndo(); u != "" && !slices.ContainsFunc(all, func(o member) bool { return string(o.action.Name()) == u }) {
			t.Errorf("%s: its undo %s is no command", name, u)
		}
		for _, alias := range append(c.GetAliases(), m.action.JSONName(), string(name)) {
			if other := taken[alias]; other != "" && other != string(name) {
				t.Errorf("%s is a name of both %s and %s", alias, other, name)
			}
			taken[alias] = string(name)
		}
		if comment(m.action) == "" || comment(in) == "" {
			t.Errorf("%s has no comment: it is the text of the tool, the help and the form", name)
		}
		walk(in, func(f protoreflect.FieldDescriptor) {
			if comment(f) == "" {
				t.Errorf("%s has no comment", f.FullName())
			}
		})
	}
}

// walk visits every field of a message of ours and of the messages in it, once.
func walk(m protoreflect.MessageDescriptor, visit func(protoreflect.FieldDescriptor)) {
	seen := map[protoreflect.FullName]bool{}
	var into func(protoreflect.MessageDescriptor)
	into = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] || !strings.HasPrefix(string(m.FullName()), "throwbar.") {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			visit(f)
			if f.Message() != nil {
				into(f.Message())
			}
		}
	}
	into(m)
}

// Routing, splitting, thresholds and undo read the target of an id and nothing else.
func TestLawIdsHaveTargets(t *testing.T) {
	t.Parallel()
	breaches := map[string]string{}
	check := func(f protoreflect.FieldDescriptor) {
		name := string(f.Name())
		if f.Kind() != protoreflect.StringKind || !strings.HasSuffix(name, "_id") && !strings.HasSuffix(name, "_ids") && name != "id" && name != "ids" {
			return
		}
		if target, _ := proto.GetExtension(f.Options(), optionv1.E_Target).(optionv1.Target); target == optionv1.Target_TARGET_UNSPECIFIED {
			breaches[strings.TrimPrefix(string(f.FullName()), "throwbar.")] = "the field is an id without (throwbar.option.v1.target)"
		}
	}
	for _, m := range members(t) {
		walk(m.action.Message(), check)
	}
	for _, m := range methodsOf(t) {
		if proto.HasExtension(m.Options(), optionv1.E_Tool) {
			walk(m.Input(), check)
		}
	}
	untargeted.check(t, breaches)
}

func TestLawMethodsSayWhoMayCall(t *testing.T) {
	t.Parallel()
	for _, m := range methodsOf(t) {
		access, _ := proto.GetExtension(m.Options(), optionv1.E_Access).(*optionv1.Access)
		if access.GetScope() == optionv1.Scope_SCOPE_UNSPECIFIED {
			t.Errorf("%s has no access option: nobody may call it", m.FullName())
		}
		if comment(m) == "" {
			t.Errorf("%s has no comment", m.FullName())
		}
	}
}

// buf runs in a copy of the contract, changed by edit, and returns its output and exit code.
func buf(t *testing.T, edit func(dir string), args ...string) (string, int) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "node_modules", ".bin", "buf")
	if _, err := os.Stat(bin); err != nil {
		t.Fatal("buf is not installed: run make npm")
	}
	dir := t.TempDir()
	for _, p := range tracked(t) {
		if p == "buf.yaml" || under(p, "proto", "third_party") {
			to := filepath.Join(dir, p)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, read(t, p), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit(dir)
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A released name is for ever: callers in JSON would lose it without a word.
func TestLawRenamedFieldBreaks(t *testing.T) {
	t.Parallel()
	against := []string{"breaking", "proto", "--against", "proto/baseline.binpb"}
	if out, code := buf(t, func(string) {}, against...); code != 0 {
		t.Fatalf("the contract breaks its baseline:\n%s", out)
	}
	out, code := buf(t, func(dir string) {
		file := filepath.Join(dir, "proto", "throwbar", "command", "v1", "tabs.proto")
		renamed := strings.Replace(string(read(t, file)), "repeated string tab_ids = 1", "repeated string tabs_ids = 1", 1)
		if err := os.WriteFile(file, []byte(renamed), 0o644); err != nil {
			t.Fatal(err)
		}
	}, against...)
	if code == 0 || !strings.Contains(out, "tab_ids") {
		t.Errorf("a renamed field passes (exit %d):\n%s", code, out)
	}
}

// The rules that buf lints are printed from a Go module: it must be the one the server runs, and the plugins must be
// of the runtime they generate for.
func TestLawToolsMatchRuntime(t *testing.T) {
	t.Parallel()
	root, tools := string(read(t, "go.mod")), string(read(t, "tools/go.mod"))
	for _, m := range []string{
		"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go", "google.golang.org/protobuf", "connectrpc.com/connect/v2",
	} {
		version := regexp.MustCompile(regexp.QuoteMeta(m) + ` (v\S+)`)
		a, b := version.FindStringSubmatch(root), version.FindStringSubmatch(tools)
		if a == nil || b == nil || a[1] != b[1] {
			t.Errorf("%s: go.mod has %v, tools/go.mod has %v", m, a, b)
		}
	}
}
