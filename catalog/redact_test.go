package catalog_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/catalog/catalogtest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

func secretive(t *testing.T) *catalog.Catalogue {
	t.Helper()
	c, err := catalog.New(catalogtest.Image(t, catalogtest.Secretive()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// found are the canaries that an encoding of a message has.
func found(t *testing.T, m proto.Message, canaries []string) []string {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(fmt.Sprint(m))
	var all []string
	for _, c := range canaries {
		encoded := []byte(base64.RawStdEncoding.EncodeToString([]byte(c))[:len(c)])
		if bytes.Contains(raw, []byte(c)) || bytes.Contains(text, []byte(c)) || bytes.Contains(text, encoded) {
			all = append(all, c)
		}
	}
	return all
}

// TestRedactLeavesNoSensitiveValueOfAnyMessage (security 16, 22) fills every message of the contract, and a command with
// sensitive fields in every position, with canaries.
func TestRedactLeavesNoSensitiveValueOfAnyMessage(t *testing.T) {
	t.Parallel()
	c := secretive(t)
	messages, canaries := 0, 0
	var each func(protoreflect.MessageDescriptors)
	each = func(all protoreflect.MessageDescriptors) {
		for n := range all.Len() {
			md := all.Get(n)
			each(md.Messages())
			if md.IsMapEntry() {
				continue
			}
			for member := range 4 {
				known := &catalogtest.Canaries{}
				m := dynamicpb.NewMessage(md)
				known.Fill(t, m, member, c)
				if had := found(t, m, known.All()); len(had) == 0 && len(known.All()) > 0 {
					t.Errorf("%s: the canaries are not in it to begin with", md.FullName())
				}
				clean := c.Redact(m)
				if left := found(t, clean, known.All()); len(left) > 0 {
					t.Errorf("%s, member %d: %v are left in %v", md.FullName(), member, left, clean)
				}
				if c.Harmless(m) && (len(known.All()) > 0 || !proto.Equal(m, clean)) {
					t.Errorf("%s, member %d, is called harmless, and redacted it is another: %v", md.FullName(), member, clean)
				}
				plain := &catalogtest.Canaries{}
				if again := dynamicpb.NewMessage(md); len(known.All()) == 0 {
					plain.Fill(t, again, member, c)
					if !proto.Equal(again, clean) {
						t.Errorf("%s has nothing sensitive and is another after redaction: %v", md.FullName(), clean)
					}
				}
				messages++
				canaries += len(known.All())
			}
		}
	}
	c.Files().RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(string(fd.Package()), "throwbar.") {
			each(fd.Messages())
		}
		return true
	})
	if messages < 400 || canaries < 100 {
		t.Errorf("only %d messages with %d canaries", messages, canaries)
	}
}

// TestHarmless: what is looked through and has no secret is not copied; what has one, or something that cannot be looked
// into, is.
func TestHarmless(t *testing.T) {
	t.Parallel()
	c := secretive(t)
	unknown := &commandv1.OpenTab{Url: "https://a.example"}
	unknown.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "secret"))
	for name, m := range map[string]struct {
		action *commandv1.Action
		want   bool
	}{
		"none":          {&commandv1.Action{}, true},
		"plain":         {&commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example"}}}, true},
		"unknown field": {&commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: unknown}}, false},
		"sensitive":     {&commandv1.Action{Kind: &commandv1.Action_Custom{Custom: &commandv1.Custom{Request: []byte("secret")}}}, false},
		"not set":       {&commandv1.Action{Kind: &commandv1.Action_Custom{Custom: &commandv1.Custom{Method: "a.B.C"}}}, true},
	} {
		if got := c.Harmless(m.action); got != m.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRedactKeepsWhatIsNotSensitive, and says where a text was.
func TestRedactKeepsWhatIsNotSensitive(t *testing.T) {
	t.Parallel()
	c := secretive(t)
	e, _ := c.Lookup("keepSecret")
	args := e.New()
	(&catalogtest.Canaries{}).Fill(t, args, 0, c)
	before := proto.Clone(args)
	raw, err := protojson.Marshal(c.Redact(args))
	if err != nil {
		t.Fatal(err)
	}
	var flat bytes.Buffer
	for _, b := range raw {
		if b != ' ' {
			flat.WriteByte(b)
		}
	}
	for _, want := range []string{
		`"label":"plain"`, `"password":"[redacted]"`, `"pins":["[redacted]"]`, `"boxes":{"plain":{"secret":"[redacted]","label":"plain"`,
		`"code":"[redacted]"`, `"inner":{"secret":"[redacted]"`, `"maybe":"[redacted]"`,
	} {
		if !strings.Contains(flat.String(), want) {
			t.Errorf("%s is missing in %s", want, flat.String())
		}
	}
	for _, not := range []string{`"key"`, `"vault"`, `"hidden"`, `"number"`} {
		if strings.Contains(flat.String(), not) {
			t.Errorf("%s is left in %s", not, flat.String())
		}
	}
	if !proto.Equal(before, args) {
		t.Error("the original has changed")
	}
}

// TestRedactOfWhatTheProgramWasNotBuiltWith: by the catalogue it is looked into, without one it is left out.
func TestRedactOfWhatTheProgramWasNotBuiltWith(t *testing.T) {
	t.Parallel()
	c := secretive(t)
	e, _ := c.Lookup("keepSecret")
	canaries := &catalogtest.Canaries{}
	args := e.New()
	canaries.Fill(t, args, 1, c)
	action, err := e.Wrap(args)
	if err != nil {
		t.Fatal(err)
	}
	record := &controlv1.AuditRecord{Name: "keepSecret", Action: action}
	if had := found(t, record, canaries.All()); len(had) < 10 {
		t.Fatalf("only %v to begin with", had)
	}
	clean, ok := c.Redact(record).(*controlv1.AuditRecord)
	if !ok || len(found(t, clean, canaries.All())) > 0 {
		t.Errorf("left in %v", clean)
	}
	body, err := e.Args(clean.GetAction())
	if err != nil || body.Get(e.In.Fields().ByName("label")).String() != "plain" {
		t.Errorf("the rest is gone: %v, %v", body, err)
	}
	blind, ok := catalog.Redact(record).(*controlv1.AuditRecord)
	if !ok || len(found(t, blind, canaries.All())) > 0 || blind.GetName() != "keepSecret" {
		t.Errorf("without a catalogue: %v", blind)
	}
	// What nobody knows is left out, also inside of what is known.
	strange := &commandv1.OpenTab{Url: "https://a.example"}
	strange.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "unheard-of"))
	packed, err := anypb.New(strange)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]proto.Message{
		"nested":              &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: strange}},
		"in an Any":           &commandv1.CommandError{Details: []*anypb.Any{packed}},
		"an Any of who knows": &commandv1.CommandError{Details: []*anypb.Any{{TypeUrl: "type.googleapis.com/none.Such", Value: []byte("unheard-of")}}},
	} {
		if got := found(t, c.Redact(m), []string{"unheard-of"}); len(got) > 0 {
			t.Errorf("%s: an unknown field is left", name)
		}
	}
	if left := found(t, catalog.Redact(&devicev1.PairRequest{Code: "K7QP-M2XW", Name: "n"}), []string{"K7QP-M2XW"}); len(left) > 0 {
		t.Error("a pairing code is left")
	}
}

func TestSecretsAndScrub(t *testing.T) {
	t.Parallel()
	c := secretive(t)
	e, _ := c.Lookup("keepSecret")
	canaries := &catalogtest.Canaries{}
	args := e.New()
	canaries.Fill(t, args, 0, c)
	secrets := catalog.Secrets(args)
	for _, canary := range canaries.All() {
		inAny := strings.Contains(args.Get(e.In.Fields().ByName("any")).String(), canary)
		if strings.HasPrefix(canary, "cnry") && !slices.Contains(secrets, canary) && !inAny {
			t.Errorf("%s is not among the secrets", canary)
		}
	}
	text := "cannot log in with " + secrets[0] + "!"
	if got := catalog.Scrub(text, secrets); got != "cannot log in with [redacted]!" {
		t.Errorf("scrubbed: %q", got)
	}
}

// TestProblemsHaveNoValues (security 16): neither a rule that repeats what it was given nor the key of a map gets through.
func TestProblemsHaveNoValues(t *testing.T) {
	t.Parallel()
	c := secretive(t)
	e, _ := c.Lookup("keepSecret")
	long := strings.Repeat("canary", 20)
	for name, set := range map[string]func(m *dynamicpb.Message){
		"password: ": func(m *dynamicpb.Message) {
			m.Set(e.In.Fields().ByName("password"), protoreflect.ValueOfString(long))
		},
		"maybe: it breaks the rule maybe.short": func(m *dynamicpb.Message) {
			m.Set(e.In.Fields().ByName("maybe"), protoreflect.ValueOfString(long))
		},
		"vault[…]: ": func(m *dynamicpb.Message) {
			m.Mutable(e.In.Fields().ByName("vault")).Map().Set(
				protoreflect.ValueOfString("canary").MapKey(), protoreflect.ValueOfString(long))
		},
	} {
		m := e.New()
		set(m)
		err := protovalidate.Validate(m)
		if err == nil {
			t.Fatalf("%s: no rule is broken", name)
		}
		if got := catalog.Problem(err); strings.Contains(got, "canary") || !strings.HasPrefix(got, name) {
			t.Errorf("%s: %q", name, got)
		}
	}
	err := protovalidate.Validate(&controlv1.CreateTokenRequest{})
	if got := catalog.Problem(err); !strings.Contains(got, "name: ") || strings.Contains(got, "breaks the rule") {
		t.Errorf("an ordinary rule is told as %q", got)
	}
}
