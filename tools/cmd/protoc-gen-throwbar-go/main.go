// Command protoc-gen-throwbar-go is a protoc plugin. From the file that holds both unions, Action and Result, it writes
// the Go code that ties each command to its outcome at compile time: one handler interface per family, the structs that
// decline a whole family, and the typed switch. It refuses a contract whose unions do not match pair by pair.
package main

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	protogen.Options{}.Run(generate)
}

// generate looks for the unions in the files it was asked for; other files give no output.
func generate(plugin *protogen.Plugin) error {
	plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL |
		pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS)
	plugin.SupportedEditionsMinimum = descriptorpb.Edition_EDITION_PROTO3
	plugin.SupportedEditionsMaximum = descriptorpb.Edition_EDITION_2023
	for _, file := range plugin.Files {
		if !file.Generate {
			continue
		}
		pairs, err := readPairs(plugin, file)
		if err != nil {
			return err
		}
		if len(pairs) > 0 {
			write(plugin, file, pairs)
		}
	}
	return nil
}
