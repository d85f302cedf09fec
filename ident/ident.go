// Package ident makes and reads the ids of the contract: short device ids, and the composite ids of tabs, windows and
// tab groups.
//
// A composite id is <device id>_<letter><boot tag>-<native id>, for example k3v9x2mqta_t7fq2-1043. The letter tells
// what it points at: t a tab, w a window, g a group. The boot tag is new at every start of the browser, so that a
// native number that the browser uses again never hits a stranger's tab.
package ident

import (
	"encoding/base32"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind is what a composite id points at.
type Kind byte

// The kinds, by their letters.
const (
	Tab    Kind = 't'
	Window Kind = 'w'
	Group  Kind = 'g'
)

// String is the word for the kind.
func (k Kind) String() string {
	switch k {
	case Tab:
		return "tab"
	case Window:
		return "window"
	case Group:
		return "group"
	default:
		return "unknown"
	}
}

const (
	deviceIDLength  = 10
	maxDeviceID     = 32
	maxBootTag      = 16
	bootTagLength   = 4
	maxNativeDigits = 19
)

// Composite is a composite id in its parts.
type Composite struct {
	Device string
	Kind   Kind
	Boot   string
	Native int64
}

// String puts the parts together.
func (c Composite) String() string {
	return c.Device + "_" + string(rune(c.Kind)) + c.Boot + "-" + strconv.FormatInt(c.Native, 10)
}

// Parse takes a composite id apart. It accepts only what String makes.
func Parse(id string) (Composite, error) {
	device, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) == 0 {
		return Composite{}, fmt.Errorf("%q is no id of a tab, window or group: copy it from a list or search", id)
	}
	if !ValidDeviceID(device) {
		return Composite{}, fmt.Errorf("%q does not begin with a device id", id)
	}
	kind := Kind(rest[0])
	if kind != Tab && kind != Window && kind != Group {
		return Composite{}, fmt.Errorf("%q: %q is not one of the letters t, w and g", id, rest[0])
	}
	boot, number, ok := strings.Cut(rest[1:], "-")
	if !ok || !lowerAlnum(boot, maxBootTag) {
		return Composite{}, fmt.Errorf("%q has no boot tag", id)
	}
	if len(number) > maxNativeDigits {
		return Composite{}, fmt.Errorf("%q: the number is too long", id)
	}
	native, err := strconv.ParseInt(number, 10, 64)
	if err != nil || native < 0 || strconv.FormatInt(native, 10) != number {
		return Composite{}, fmt.Errorf("%q does not end with a number", id)
	}
	return Composite{Device: device, Kind: kind, Boot: boot, Native: native}, nil
}

// ValidDeviceID says whether a string has the form of a device id: 1 to 32 lower-case letters and digits.
func ValidDeviceID(id string) bool { return id != "" && lowerAlnum(id, maxDeviceID) }

// NewDeviceID makes a device id of ten characters, 50 random bits.
func NewDeviceID(random io.Reader) (string, error) { return Token(random, deviceIDLength) }

// NewBootTag makes a boot tag of four characters.
func NewBootTag(random io.Reader) (string, error) { return Token(random, bootTagLength) }

// Token makes n random lower-case base32 characters, five bits each.
func Token(random io.Reader, n int) (string, error) {
	raw := make([]byte, (n*5+7)/8)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw)
	return strings.ToLower(text[:n]), nil
}

func lowerAlnum(s string, most int) bool {
	if len(s) > most {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
