// Command print-validate writes buf/validate/validate.proto below the folder it is given. The text is printed from the
// descriptor inside the Go module that the server links, so the rules buf lints and the rules that run are one version.
package main

import (
	"fmt"
	"os"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: print-validate <folder>")
		os.Exit(2)
	}
	files := []protoreflect.FileDescriptor{validate.File_buf_validate_validate_proto}
	if err := new(protoprint.Printer).PrintProtosToFileSystem(files, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "print-validate:", err)
		os.Exit(1)
	}
}
