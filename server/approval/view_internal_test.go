package approval

import (
	"testing"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// TestSensitiveFieldsCannotBeEdited: nobody was shown them, so an edit keeps what was proposed, and adds none.
func TestSensitiveFieldsCannotBeEdited(t *testing.T) {
	t.Parallel()
	custom := func(method, request string) *commandv1.Custom {
		return &commandv1.Custom{Method: method, Request: []byte(request), DescriptorDigest: "d"}
	}
	wrap := func(c *commandv1.Custom) proto.Message {
		return &commandv1.Action{Kind: &commandv1.Action_Custom{Custom: c}}
	}
	for name, row := range map[string]struct{ proposed, edit, want proto.Message }{
		"changed": {custom("a", "secret"), custom("b", "other"), custom("b", "secret")},
		"added":   {custom("a", ""), custom("b", "other"), &commandv1.Custom{Method: "b", DescriptorDigest: "d"}},
		"nested":  {wrap(custom("a", "secret")), wrap(custom("b", "other")), wrap(custom("b", "secret"))},
		"new message": {
			&commandv1.Action{}, wrap(custom("b", "other")), wrap(&commandv1.Custom{Method: "b", DescriptorDigest: "d"}),
		},
	} {
		to := proto.Clone(row.edit)
		keepHidden(to.ProtoReflect(), row.proposed.ProtoReflect())
		if !proto.Equal(to, row.want) {
			t.Errorf("%s: %v, want %v", name, to, row.want)
		}
	}
}
