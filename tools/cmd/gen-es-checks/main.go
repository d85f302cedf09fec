// Command gen-es-checks writes the validation of the browser extension. The protovalidate library would triple the
// extension's worker, so the rules that are present become a small table beside a small checker, and a rule that the
// checker cannot express stops the generation. A table of cases, judged by protovalidate itself, goes with it; tests in
// both languages run it.
package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

const actionName protoreflect.FullName = "throwbar.command.v1.Action"

//go:embed checker.ts
var checker string

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen-es-checks <descriptor image> <output folder>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen-es-checks:", err)
		os.Exit(1)
	}
}

func run(imagePath, folder string) error {
	image, err := os.ReadFile(imagePath)
	if err != nil {
		return err
	}
	action, err := findAction(image)
	if err != nil {
		return err
	}
	tables, err := readTables(action)
	if err != nil {
		return err
	}
	cases, err := makeCases(tables)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(image)
	source, err := emit(tables, hex.EncodeToString(sum[:]))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "checks.ts"), source, 0o644); err != nil { //nolint:gosec // generated code is for everybody
		return err
	}
	return os.WriteFile(filepath.Join(folder, "checks.json"), cases, 0o644) //nolint:gosec // as above
}

// findAction links the image, filling in the imports that are linked into this program.
func findAction(image []byte) (protoreflect.MessageDescriptor, error) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(image, set); err != nil {
		return nil, fmt.Errorf("read descriptor image: %w", err)
	}
	have := map[string]bool{}
	for _, f := range set.GetFile() {
		have[f.GetName()] = true
	}
	for i := 0; i < len(set.GetFile()); i++ { // the list grows while it is read
		for _, dep := range set.GetFile()[i].GetDependency() {
			if have[dep] {
				continue
			}
			fd, err := protoregistry.GlobalFiles.FindFileByPath(dep)
			if err != nil {
				return nil, fmt.Errorf("find import %s: %w", dep, err)
			}
			have[dep] = true
			set.File = append(set.File, protodesc.ToFileDescriptorProto(fd))
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("link descriptor image: %w", err)
	}
	d, err := files.FindDescriptorByName(actionName)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", actionName, err)
	}
	m, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no message", actionName)
	}
	return m, nil
}
