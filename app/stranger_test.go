package app_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog/catalogtest"
)

const strangerProto = `syntax = "proto3";
package throwbar.command.v1;
import "buf/validate/validate.proto";
import "throwbar/option/v1/option.proto";

// Brew a drink.
message BrewDrink {
  option (throwbar.option.v1.command) = { effect: EFFECT_REVERSIBLE approval: APPROVAL_AUTO };
  // What to brew.
  string drink = 1 [(buf.validate.field).string.min_len = 1];
  // How many cups.
  uint32 cups = 2 [(buf.validate.field).uint32 = {gte: 1, lte: 12}];
  // What brewing came to.
  message Result {
    // How many cups were brewed.
    uint32 brewed_count = 1;
  }
}
`

const strangerNumber = 5000

// strangerImage is the contract with one more command family, which exists only in this test: product code is built
// without it, and meets it in the descriptors.
func strangerImage(t *testing.T) []byte {
	t.Helper()
	return catalogtest.Image(t, catalogtest.Command{
		Name: "BrewDrink", Member: "brew_drink", Number: strangerNumber, Source: strangerProto,
	})
}

// strangerBody is the member of a union that this program was not built with.
func strangerBody(t *testing.T, m protoreflect.Message) []byte {
	t.Helper()
	raw := m.GetUnknown()
	number, _, n := protowire.ConsumeTag(raw)
	if n < 0 || number != strangerNumber {
		t.Fatalf("unknown fields %x", raw)
	}
	body, size := protowire.ConsumeBytes(raw[n:])
	if size < 0 {
		t.Fatalf("unknown fields %x", raw)
	}
	return body
}
