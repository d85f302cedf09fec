package rpc_test

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// isID says whether a field of a request points at something that belongs to a workspace.
func isID(f protoreflect.FieldDescriptor) bool {
	target, _ := proto.GetExtension(f.Options(), optionv1.E_Target).(optionv1.Target)
	name := string(f.Name())
	return (target != optionv1.Target_TARGET_UNSPECIFIED && target != optionv1.Target_TARGET_TAB_URL) ||
		strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids") ||
		slices.Contains([]string{"page_token", "cursor", "plan_hash", "hash", "principal", "created_by", "anchor", "removed"}, name)
}

// idFields are the paths of all fields of a request that are ids, however deep. What is in whole is one path, for its own
// fields are the same wherever it is.
func idFields(m protoreflect.MessageDescriptor) []string {
	whole := []protoreflect.FullName{"throwbar.command.v1.Action", "throwbar.command.v1.Result"}
	var paths []string
	var walk func(m protoreflect.MessageDescriptor, at string, above []protoreflect.FullName)
	walk = func(m protoreflect.MessageDescriptor, at string, above []protoreflect.FullName) {
		if slices.Contains(above, m.FullName()) || !strings.HasPrefix(string(m.FullName()), "throwbar.") {
			return
		}
		above = append(slices.Clone(above), m.FullName())
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			path := strings.TrimPrefix(at+"."+string(f.Name()), ".")
			switch {
			case isID(f):
				paths = append(paths, path)
			case f.Message() != nil && slices.Contains(whole, f.Message().FullName()):
				paths = append(paths, path)
			case f.Message() != nil:
				walk(f.Message(), path, above)
			}
		}
	}
	walk(m, "", nil)
	return paths
}
