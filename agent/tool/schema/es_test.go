package schema_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// TestDevicesReadTheSame: what a model wrote, decoded here and sent, is read by protobuf-es as the same value. Devices
// are written in TypeScript. Each message goes there as bytes and comes back as JSON, and as bytes of that JSON.
func TestDevicesReadTheSame(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../../node_modules/@bufbuild/protobuf"); err != nil {
		t.Skip("protobuf-es is not installed; make npm does that")
	}
	var in bytes.Buffer
	var sent []*dynamicpb.Message
	for _, sample := range tooltest.Corpus(t) {
		random := rand.New(rand.NewPCG(3, uint64(len(sample.Name))))
		in.WriteString(base64.StdEncoding.EncodeToString(marshal(t, files(sample.In.ParentFile()))) + "\n")
		for range 25 {
			m := tooltest.Random(random, sample.In)
			if m == nil {
				continue
			}
			got, err := args.Decode(result.Arguments(m).String(), dynamicpb.NewMessage(sample.In), args.Options{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, got.Message)
			in.WriteString(string(sample.In.FullName()) + " " + base64.StdEncoding.EncodeToString(marshal(t, got.Message)) + "\n")
		}
	}
	lines := read(t, &in)
	if len(lines) != len(sent) || len(sent) < 400 {
		t.Fatalf("%d messages were sent and %d read", len(sent), len(lines))
	}
	for i, line := range lines {
		raw, text, _ := strings.Cut(line, " ")
		asJSON, asBytes := sent[i].New().Interface(), sent[i].New().Interface()
		if err := protojson.Unmarshal([]byte(text), asJSON); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !proto.Equal(asJSON, sent[i]) {
			t.Fatalf("sent %v\nread %s", sent[i], text)
		}
		if err := proto.Unmarshal(unbase64(t, raw), asBytes); err != nil || !proto.Equal(asBytes, sent[i]) {
			t.Fatalf("sent %v\nits JSON became %v, %v", sent[i], asBytes, err)
		}
	}
}

// read has protobuf-es read messages, all in one process.
func read(t *testing.T, in io.Reader) []string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "node", "testdata/read.mjs")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// files are a file and all that it imports, imports first.
func files(fd protoreflect.FileDescriptor) *descriptorpb.FileDescriptorSet {
	set, seen := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(fd protoreflect.FileDescriptor) {
		if seen[fd.Path()] {
			return
		}
		seen[fd.Path()] = true
		for i := range fd.Imports().Len() {
			add(fd.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
	}
	add(fd)
	return set
}

func unbase64(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
