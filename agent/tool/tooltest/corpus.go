package tooltest

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
)

const v = "(buf.validate.field)"

// zoo has a field of every kind and most rules. What strict mode cannot say stands in free.
const zoo = `
enum Color { COLOR_UNSPECIFIED=0; COLOR_RED=1; COLOR_BLUE=2; COLOR_OLD=3 [deprecated=true]; }
message Part { string name=1 [` + v + `.string={min_len:1,max_len:9}]; repeated In again=2 [` + v + `.repeated.max_items=1]; int64 n=3; }
message In {
	bool b=1; int32 i=2 [` + v + `.int32={gt:-100000,lte:100000}]; optional sint64 s=3; uint64 u=4; fixed32 f=5; sfixed64 sf=6;
	float fl=7; double d=8 [` + v + `.double={finite:true,gt:-1e6,lt:1e6}]; string text=9 [` + v + `.string={max_bytes:40}];
	optional string prefixed=10 [` + v + `.string={prefix:"a.b",suffix:"z"}]; bytes raw=11 [` + v + `.bytes={max_len:7}];
	Color color=12; repeated Color colors=13 [` + v + `.repeated.unique=true]; repeated int64 ids=14 [` + v + `.repeated={min_items:1,max_items:4}];
	map<string,string> map=15 [` + v + `.map={max_pairs:6,keys:{string:{max_len:20}}}]; map<int64,Part> parts=16; map<bool,double> flags=17;
	map<uint32,Color> shades=18; Part part=19; repeated Part more=20; oneof which { string url=21; int64 tab=22; Part inner=23; }
	google.protobuf.Timestamp at=24; google.protobuf.Duration pause=25; google.protobuf.FieldMask mask=26;
	google.protobuf.Int64Value wrapped=30; google.protobuf.Empty empty=31;
	google.protobuf.Any any=32; int64 small=33 [` + v + `.int64={gte:-5,lte:500}]; uint64 js=34 [jstype=JS_NUMBER];
	optional string choice=35 [` + v + `.string={in:["x","y \"z\""]}]; google.protobuf.BoolValue truth=36; google.protobuf.UInt64Value big=37;
	optional int32 level=38 [` + v + `.int32={in:[5,7,9]}]; optional int32 odd=39 [` + v + `.int32={gt:10,lt:5}];
	optional string code=40 [` + v + `.string={pattern:"^[A-Z]{2}\\d{3}$"}]; optional string host=41 [` + v + `.string={hostname:true}];
}`

const free = `message In {
	google.protobuf.Value value=1; repeated google.protobuf.Value values=2; google.protobuf.Struct struct=3; google.protobuf.ListValue list=4;
	oneof which { google.protobuf.NullValue none=5; string some=6; } map<string,google.protobuf.Value> named=7; string name=8;
}`

const edition = `enum Op { option features.enum_type=CLOSED; OP_KEEP=1; OP_DROP=2; }
message Part { string name=1; repeated In again=2 [features.message_encoding=DELIMITED]; }
message In {
	Op op=1; Part part=2 [features.message_encoding=DELIMITED]; string must=3 [features.field_presence=LEGACY_REQUIRED];
	int32 plain=4 [features.field_presence=IMPLICIT]; repeated Op ops=5 [features.repeated_field_encoding=EXPANDED];
	map<string,Part> parts=6; oneof which { Part left=7 [features.message_encoding=DELIMITED]; int64 right=8; }
}`

const trees = `message Leaf { string a=1; }
message Pair { Leaf left=1; Leaf right=2; }
message In {
	// Where it begins.
	Pair from=1;
	// Where it ends.
	Pair to=2;
	In next=3; repeated In kids=4; map<string,In> named=5; Leaf leaf=6;
	option (buf.validate.message).oneof={fields:["leaf","next"]};
}`

// Sample is a message that tests run over.
type Sample struct {
	Name    string
	In      protoreflect.MessageDescriptor
	Comment func(protoreflect.Descriptor) string
}

// Corpus are messages with fields of every kind, then those of the contract: every command, query and facility.
func Corpus(t testing.TB) []Sample {
	t.Helper()
	own := func(protoreflect.Descriptor) string { return "" }
	samples := []Sample{
		{"zoo", Message(t, zoo), own}, {"free", Message(t, free), own}, {"edition", Edition(t, edition), own},
		{"trees", Message(t, trees), Comment}, {"empty", Message(t, "message In {}"), own},
	}
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]*catalog.Entry{c.Commands(), c.Queries(), c.Facilities()} {
		for _, e := range list {
			samples = append(samples, Sample{e.Name, e.In, c.Comment})
		}
	}
	return samples
}

// Comment is the comment of a descriptor that Compile made.
func Comment(d protoreflect.Descriptor) string {
	return d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
}
