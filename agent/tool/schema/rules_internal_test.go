package schema

import (
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestEveryRuleIsAccountedFor sets each rule that protovalidate has by itself: it is a keyword, a sentence, or listed
// as neither, and a sentence is there to be read.
func TestEveryRuleIsAccountedFor(t *testing.T) {
	t.Parallel()
	members := (&validate.FieldRules{}).ProtoReflect().Descriptor().Oneofs().ByName("type").Fields()
	total := map[Use]int{}
	for i := range members.Len() {
		member := members.Get(i)
		fields := member.Message().Fields()
		for j := range fields.Len() {
			rule := fields.Get(j)
			rules := &validate.FieldRules{}
			setSample(rules.ProtoReflect().Mutable(member).Message(), rule)
			b := &builder{}
			node := &Node{Kind: KindNumber}
			if member.Name() == "string" || member.Name() == "bytes" || member.Name() == "enum" {
				node.Kind = KindString
			}
			b.apply(node, rule, rules)
			if len(b.rules) != 1 || b.rules[0].Use == 0 {
				t.Errorf("%s.%s: %v", member.Name(), rule.Name(), b.rules)
				continue
			}
			if use := b.rules[0].Use; use == Sentence && (len(node.Notes) != 1 || node.Notes[0] == "") {
				t.Errorf("%s.%s: sentences %q", member.Name(), rule.Name(), node.Notes)
			}
			total[b.rules[0].Use]++
		}
	}
	t.Logf("keyword %d, weaker %d, sentence %d, neither %d", total[Keyword], total[Weaker], total[Sentence], total[Neither])
}

func setSample(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	if fd.IsList() {
		list := m.Mutable(fd).List()
		if fd.Message() != nil {
			list.AppendMutable()
			return
		}
		list.Append(sample(fd))
		return
	}
	if fd.Message() != nil {
		m.Mutable(fd)
		return
	}
	m.Set(fd, sample(fd))
}

func sample(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("a")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("a"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(1)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(1)
	default:
		return protoreflect.ValueOfUint64(1)
	}
}
