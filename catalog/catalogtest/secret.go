package catalogtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Secretive is a command with sensitive fields in every position: arguments and a result that nothing may repeat.
func Secretive() Command {
	return Command{Name: "KeepSecret", Member: "keep_secret", Number: 5001, Source: `syntax = "proto3";
package throwbar.command.v1;
import "buf/validate/validate.proto";
import "google/protobuf/any.proto";
import "throwbar/option/v1/option.proto";

// Keep a secret.
message KeepSecret {
  option (throwbar.option.v1.command) = { effect: EFFECT_REVERSIBLE approval: APPROVAL_AUTO };
  // What may be read.
  string label = 1;
  // A text.
  string password = 2 [(throwbar.option.v1.sensitive) = true, (buf.validate.field).string.max_len = 64];
  // Bytes.
  bytes key = 3 [(throwbar.option.v1.sensitive) = true];
  // A list.
  repeated string pins = 4 [(throwbar.option.v1.sensitive) = true];
  // A map.
  map<string, string> vault = 5 [
    (throwbar.option.v1.sensitive) = true,
    (buf.validate.field).map.values.string.max_len = 64
  ];
  // A map of messages.
  map<string, SecretBox> boxes = 6;
  // A message.
  SecretBox box = 7;
  // A list of messages.
  repeated SecretBox list = 8;
  // A message of which nothing may be read.
  SecretBox hidden = 9 [(throwbar.option.v1.sensitive) = true];
  // One of several.
  oneof choice {
    // A text.
    string code = 10 [(throwbar.option.v1.sensitive) = true];
    // A message.
    SecretBox chosen = 11;
    // Bytes.
    bytes raw = 12 [(throwbar.option.v1.sensitive) = true];
  }
  // Anything.
  google.protobuf.Any any = 13;
  // A number.
  uint64 number = 14 [(throwbar.option.v1.sensitive) = true];
  // A text that may be left out.
  optional string maybe = 15 [
    (throwbar.option.v1.sensitive) = true,
    (buf.validate.field).cel = {
      id: "maybe.short"
      expression: "size(this) <= 64 ? '' : 'too long: ' + this"
    }
  ];
  // What keeping it came to.
  message Result {
    // A text.
    string answer = 1 [(throwbar.option.v1.sensitive) = true];
    // Bytes.
    bytes blob = 2 [(throwbar.option.v1.sensitive) = true];
    // A message.
    SecretBox box = 3;
    // A number.
    uint32 secret_count = 4 [(throwbar.option.v1.sensitive) = true];
    // A number that may be read.
    uint32 open_count = 5;
    // An id.
    string secret_id = 6 [(throwbar.option.v1.sensitive) = true, (throwbar.option.v1.target) = TARGET_SAVED];
  }
}

// A box.
message SecretBox {
  // What is in it.
  string secret = 1 [(throwbar.option.v1.sensitive) = true];
  // What stands on it.
  string label = 2;
  // A box in it.
  SecretBox inner = 3;
}
`}
}

// Canaries are texts and numbers that are nowhere else, to be looked for where they must not be. Any goroutine may make
// them.
type Canaries struct {
	mu  sync.Mutex
	n   int      // guarded by mu
	all []string // guarded by mu
}

// All are those that were made and added.
func (c *Canaries) All() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// Add takes in what somebody else has made.
func (c *Canaries) Add(secrets ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, secrets...)
}

// Text is another canary.
func (c *Canaries) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	text := fmt.Sprintf("cnry%05dx", 10_000+c.n*7)
	c.all = append(c.all, text)
	return text
}

// number is a canary that fits into 32 bits.
func (c *Canaries) number() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	n := uint32(1_900_000_000 + c.n*7919)
	c.all = append(c.all, fmt.Sprint(n))
	return n
}

// Plain is what stands in fields that are not sensitive.
const Plain = "plain"

// Fill sets every field of a message: the sensitive ones, and all inside of them, to canaries. Of a oneof it sets the
// member with that number, counted round.
func (c *Canaries) Fill(t testing.TB, m protoreflect.Message, member int, known *catalog.Catalogue) {
	t.Helper()
	filler{t, c, member, known}.message(m, false, 0)
}

type filler struct {
	t      testing.TB
	c      *Canaries
	member int
	known  *catalog.Catalogue
}

// deepest is how far a message is filled that has itself inside.
const deepest = 5

func (f filler) message(m protoreflect.Message, secret bool, depth int) {
	if m.Descriptor().FullName() == "google.protobuf.Any" {
		f.any(m)
		return
	}
	for n := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(n)
		if union := fd.ContainingOneof(); union != nil && !union.IsSynthetic() && union.Fields().Get(f.member%union.Fields().Len()) != fd {
			continue
		}
		if fd.Message() != nil && depth >= deepest {
			continue
		}
		f.field(m, fd, secret || catalog.Sensitive(fd), depth)
	}
}

func (f filler) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, secret bool, depth int) {
	switch {
	case fd.IsMap():
		to := m.Mutable(fd).Map()
		value := to.NewValue()
		if fd.MapValue().Message() != nil {
			f.message(value.Message(), secret, depth+1)
		} else {
			value = f.scalar(fd.MapValue(), secret)
		}
		to.Set(f.scalar(fd.MapKey(), secret).MapKey(), value)
	case fd.IsList():
		to := m.Mutable(fd).List()
		for range 2 {
			if fd.Message() == nil {
				to.Append(f.scalar(fd, secret))
				continue
			}
			value := to.NewElement()
			f.message(value.Message(), secret, depth+1)
			to.Append(value)
		}
	case fd.Message() != nil:
		f.message(m.Mutable(fd).Message(), secret, depth+1)
	default:
		m.Set(fd, f.scalar(fd, secret))
	}
}

func (f filler) scalar(fd protoreflect.FieldDescriptor, secret bool) protoreflect.Value {
	text := Plain
	if secret && (fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind) {
		text = f.c.Text()
	}
	number := uint32(1)
	if secret && fd.Kind() != protoreflect.BoolKind && fd.Kind() != protoreflect.EnumKind && text == Plain {
		number = f.c.number()
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(number)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(number))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(number))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(number))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(number))
	default:
		f.t.Fatalf("%s: a field of the kind %s", fd.FullName(), fd.Kind())
		return protoreflect.Value{}
	}
}

// any puts a message with canaries into an Any: one of ours, or one that only the catalogue has.
func (f filler) any(m protoreflect.Message) {
	var held proto.Message = &controlv1.CreateTokenResponse{Secret: f.c.Text(), Token: &controlv1.Token{Name: Plain}}
	if f.known != nil && f.member%2 == 1 {
		if e, ok := f.known.Lookup("keepSecret"); ok {
			box := e.New().NewField(e.In.Fields().ByName("box")).Message()
			f.message(box, false, deepest-1)
			held = box.Interface()
		}
	}
	packed, err := anypb.New(held)
	if err != nil {
		f.t.Fatal(err)
	}
	raw, err := proto.Marshal(packed)
	if err == nil {
		err = proto.Unmarshal(raw, m.Interface())
	}
	if err != nil {
		f.t.Fatal(err)
	}
}
