package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	image, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto")}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data  []byte
		fault string
	}{
		"an image": {image, ""},
		"no image": {[]byte("\xff\xff"), "no descriptor image"},
		"no files": {nil, "holds no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "contract.binpb")
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			err := write(file)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("got %v, want %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(filepath.Join(dir, "embed.go"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(source), "//go:embed contract.binpb\nvar Descriptors []byte") {
				t.Errorf("wrote\n%s", source)
			}
		})
	}
}
