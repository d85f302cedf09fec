package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

// nested is a message that holds itself, n deep.
func nested(n int) []byte {
	var raw []byte
	for range n { // Value.list_value = 6, ListValue.values = 1
		list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), raw)
		raw = protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), list)
	}
	return raw
}

func TestSecurityRow09ScansBoundDepth(t *testing.T) {
	t.Parallel()
	value := (&structpb.Value{}).ProtoReflect().Descriptor()
	if err := scanWire(nested(maxDepth/2-1), value); err != nil {
		t.Errorf("as deep as it may be: %v", err)
	}
	if err := scanWire(nested(maxDepth/2+1), value); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("deeper: %v", err)
	}
	for _, open := range []string{`[`, `{"a":`} {
		if err := scanJSON([]byte(strings.Repeat(open, maxDepth))); err != nil {
			t.Errorf("%s, as deep as it may be: %v", open, err)
		}
		if err := scanJSON([]byte(strings.Repeat(open, maxDepth+1))); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s, deeper: %v", open, err)
		}
	}
	if err := scanJSON([]byte(`{"a":"` + strings.Repeat(`[{\"`, 1000) + `"}`)); err != nil {
		t.Errorf("brackets in a text: %v", err)
	}
}

func TestSecurityRow09ScansFindDoubledKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"a":1,"b":2}`: false, `{"a":1,"a":2}`: true, `{"a":1,"b":1,"a":2}`: true, `{"a":1,"b":1,"b":2}`: true, `{"a":{"a":1},"b":{"a":1}}`: false,
		`{"a":[{"b":1},{"b":2}]}`: false, `{"":1,"":2}`: true, `{"":1,"a":1,"":2}`: true, `{"a":1,"\u0061":2}`: true, `{"a":"a","b":"a"}`: false,
		`{"a\"":1,"a":2}`: false, `["a","a"]`: false, `{"a":1,"b":{"c":1,"d":2,"c":3}}`: true, `{"a":["b","b"],"b":1}`: false,
		`{"a":{},"a":{}}`: true, `{"a\\":1,"a\\":2}`: true, `"a`: false, `{"a`: false, `{"a\`: false,
	} {
		if got := scanJSON([]byte(text)) != nil; got != want {
			t.Errorf("%s: doubled %v, want %v", text, got, want)
		}
	}
}

func TestSecurityRow09ScansCountElements(t *testing.T) {
	t.Parallel()
	// packed numbers, of a byte and of four and of eight
	for kind, size := range map[protoreflect.Kind]int{protoreflect.Int32Kind: 1, protoreflect.Fixed32Kind: 4, protoreflect.DoubleKind: 8} {
		if got := packed(make([]byte, 1000*size), kind); got != 1000 {
			t.Errorf("%v: %d", kind, got)
		}
	}
	set := (&descriptorpb.FileDescriptorSet{}).ProtoReflect().Descriptor()
	row := []byte{0x0a, 0x00} // an empty file
	if err := scanWire(bytes.Repeat(row, maxElements), set); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
	if err := scanWire(bytes.Repeat(row, maxElements+1), set); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("more: %v", err)
	}
	if err := scanJSON([]byte("[" + strings.Repeat("1,", maxElements) + "1]")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("more in JSON: %v", err)
	}
}

// inputs are the messages that callers send, and a descriptor set, which is what a schema comes as.
func inputs() []protoreflect.MessageDescriptor {
	all := []protoreflect.MessageDescriptor{(&descriptorpb.FileDescriptorSet{}).ProtoReflect().Descriptor()}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				if strings.HasPrefix(string(file.Package()), "throwbar.") {
					all = append(all, methods.Get(j).Input())
				}
			}
		}
		return true
	})
	return all
}

// allocated is what a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// swollen are messages of up to four megabytes, with so many rows, that become as much as they can in memory: one empty message after another, in
// each field that takes a list of them, three levels down.
func swollen(message protoreflect.MessageDescriptor, rows, level int) [][]byte {
	var all [][]byte
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if field.Message() == nil || field.IsMap() {
			continue
		}
		if field.IsList() {
			row := protowire.AppendBytes(protowire.AppendTag(nil, field.Number(), protowire.BytesType), nil)
			all = append(all, bytes.Repeat(row, min(rows, (maxMessage-64)/len(row))))
		}
		if level < 3 {
			for _, inner := range swollen(field.Message(), rows, level+1) {
				all = append(all, protowire.AppendBytes(protowire.AppendTag(nil, field.Number(), protowire.BytesType), inner))
			}
		}
	}
	if len(all) > 8 { // some of each are enough
		all = all[:8]
	}
	return all
}

func TestSecurityRow09DecodingHasAMemoryCeiling(t *testing.T) { //nolint:paralleltest // it measures what the process allocates
	const ceiling = 192 << 20
	codec, tried := newBoundedWire(), 0
	for _, message := range inputs() {
		for _, raw := range append(swollen(message, maxMessage, 0), swollen(message, maxElements-10, 0)...) {
			typed, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
			if err != nil {
				t.Fatal(err)
			}
			tried++
			msg := typed.New().Interface()
			if took := allocated(func() { _ = codec.UnmarshalRead(t.Context(), bytes.NewBuffer(raw), msg) }); took > ceiling {
				t.Errorf("%s: %d bytes become %d MiB", message.FullName(), len(raw), took>>20)
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d messages were tried", tried)
	}
}

func TestSecurityRow09BucketsRefillAndStayBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := newBuckets(2, 4, 1, 3, func() time.Time { return now })
	for i := range 4 {
		if wait := b.take("a"); wait != 0 {
			t.Errorf("%d of the burst has to wait %s", i, wait)
		}
	}
	if wait := b.take("a"); wait != 500*time.Millisecond {
		t.Errorf("the next one waits %s", wait)
	}
	now = now.Add(500 * time.Millisecond)
	if b.take("a") != 0 || b.take("a") == 0 {
		t.Error("half a second later there is one, and no second")
	}
	now = now.Add(-time.Hour) // the clock is set back
	if b.take("a") == 0 {
		t.Error("a clock that is set back gives something")
	}
	now = now.Add(time.Hour)
	for i := range 1000 { // all but two share a bucket
		b.take(fmt.Sprint("k", i))
	}
	if len(b.byKey) > 3 {
		t.Errorf("%d buckets are kept", len(b.byKey))
	}
	if b.take("new") == 0 {
		t.Error("newcomers beyond what is kept share one bucket, which is empty")
	}
	now = now.Add(time.Minute)
	if b.take("new") != 0 || len(b.byKey) != 1 {
		t.Errorf("full buckets make room: %d", len(b.byKey))
	}
	done, _, _ := b.enter("open")
	if again, _, open := b.enter("open"); again != nil || !open {
		t.Error("a second one is let in while one is open")
	}
	now = now.Add(time.Hour)
	b.take("x")
	b.take("y")
	if _, there := b.byKey["open"]; !there {
		t.Error("what is open was forgotten")
	}
	done()
	if again, _, _ := b.enter("open"); again == nil {
		t.Error("nobody is let in after the end")
	}
}

func TestPeersAreKnownByTheirSocket(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[::ffff:10.0.0.1]:5": "10.0.0.1", "[2001:db8::1]:5": "2001:db8::/64", "[2001:db8::ffff:2]:9": "2001:db8::/64",
		"[::1]:5": "::1", "[fe80::1%eth0]:5": "fe80::/64", "pipe": "pipe", "@:1": "@",
	} {
		if got := peerKey(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// fuzzed checks one input: nothing panics, and what it allocates is in proportion.
func fuzzed(t *testing.T, raw []byte, decode func()) {
	t.Helper()
	if took := allocated(decode); took > 2<<20+1024*uint64(len(raw)) {
		t.Errorf("%d bytes become %d KiB", len(raw), took>>10)
	}
}

func FuzzWire(f *testing.F) {
	f.Add(nested(40))
	f.Add(bytes.Repeat([]byte{0xa3, 0x06}, 100))
	f.Add(bytes.Repeat([]byte{0x0a, 0x00}, 300))
	codec := newBoundedWire()
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, msg := range []proto.Message{
			&devicev1.ReportRequest{}, &devicev1.ConnectRequest{}, &controlv1.DispatchRequest{}, &structpb.Value{}, &controlv1.DispatchStreamRequest{},
		} {
			fuzzed(t, raw, func() { _ = codec.UnmarshalRead(t.Context(), bytes.NewBuffer(raw), msg) })
			// What the scan lets through is no deeper than it may be, so that what follows need not ask.
			if depth := depthOf(msg.ProtoReflect()); depth > maxDepth {
				t.Errorf("%d deep", depth)
			}
		}
	})
}

func depthOf(m protoreflect.Message) int {
	deepest := 0
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil {
			return true
		}
		switch {
		case field.IsMap():
			value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				if field.MapValue().Message() != nil {
					deepest = max(deepest, depthOf(v.Message()))
				}
				return true
			})
		case field.IsList():
			for i := range value.List().Len() {
				deepest = max(deepest, depthOf(value.List().Get(i).Message()))
			}
		default:
			deepest = max(deepest, depthOf(value.Message()))
		}
		return true
	})
	return deepest + 1
}

func FuzzDescriptors(f *testing.F) {
	small, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("a.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("A")}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	f.Add(bytes.Repeat([]byte{0x0a, 0x02, 0x22, 0x00}, 50))
	codec := newBoundedWire()
	f.Fuzz(func(t *testing.T, raw []byte) {
		set := &descriptorpb.FileDescriptorSet{}
		fuzzed(t, raw, func() { _ = codec.UnmarshalRead(t.Context(), bytes.NewBuffer(raw), set) })
		dynamic := dynamicpb.NewMessage(set.ProtoReflect().Descriptor())
		fuzzed(t, raw, func() { _ = codec.UnmarshalRead(t.Context(), bytes.NewBuffer(raw), dynamic) })
	})
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"deviceIds":["x"],"action":{"openTab":{"url":"a.example"}}}`, `{"a":1,"a":2}`, `[[[[`, `{"a":{"b":[1,"\u00e4",null,true]}}`, `{"\ud800":1}`,
		strings.Repeat(`{"listValue":`, 70), `{"details":[{"@type":"type.googleapis.com/google.protobuf.Value","value":1}]}`,
	} {
		f.Add([]byte(text))
	}
	strict, lenient := newBoundedJSON(true), newBoundedJSON(false)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, codec := range []boundedJSON{strict, lenient} {
			for _, msg := range []proto.Message{&controlv1.DispatchRequest{}, &devicev1.ReportRequest{}, &structpb.Struct{}} {
				var err error
				fuzzed(t, raw, func() { err = codec.UnmarshalRead(t.Context(), bytes.NewBuffer(raw), msg) })
				var known *fault.Error
				if err != nil && !errors.As(err, &known) {
					t.Errorf("an error that is no fault: %v", err)
				}
				// The scan refuses nothing that the decoder would take, but for its own bounds.
				if err != nil && known.Unwrap() == nil && len(raw) < 64 && protojson.Unmarshal(raw, msg) == nil && !strings.Contains(known.Message, "twice") {
					t.Errorf("%q is refused: %v", raw, err)
				}
			}
		}
	})
}
