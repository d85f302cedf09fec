package term

import "testing"

// The key Escape has no end: what is pressed after it is not part of it, but for what begins a sequence.
func TestEscapeIsAKeyToo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		chunks        []string
		line, pressed string
	}{
		{[]string{"\x1b", "b"}, "b", ""},
		{[]string{"\x1bb"}, "\x1b[1;3D", ""},
		{[]string{"\x1b", "[D"}, "\x1b[D", ""},
		{[]string{"\x1b\x1b", "\x03"}, "", "\x03"},
		{[]string{"\x1b[1;", "2A", "x\x03y\x1a"}, "xy", "\x03\x1a"},
		{[]string{"\x1b[1\x03"}, "", "\x03"},
		{[]string{"\xc3", "\xa9\xff\xe2\x82", "z"}, "éz", ""},
		{[]string{"\x1b[200~a\x03", "\r", "\nb", "\x1b[20", "x\x1b[201", "~\x03"}, "\x1b[200~a\vb[20x\x1b[201~", "\x03"},
	} {
		var d decoder
		var line, pressed []byte
		for _, chunk := range row.chunks {
			l, p := d.decode([]byte(chunk))
			line, pressed = append(line, l...), append(pressed, p...)
		}
		if string(line) != row.line || string(pressed) != row.pressed {
			t.Errorf("%q: line %q, pressed %q", row.chunks, line, pressed)
		}
	}
}
