package model

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// read reads body as a client does whose history holds the call id call_0. It fails the test if the pieces given to
// the sink are not the turn.
func read(tb testing.TB, body io.Reader, media string) (Turn, error) {
	tb.Helper()
	var text, reasoning strings.Builder
	fresh := 0
	reader := answer{
		sink: Sink{
			OnText:      func(s string) { text.WriteString(s) },
			OnReasoning: func(s string) { reasoning.WriteString(s) },
		},
		taken: map[string]bool{"call_0": true},
		fresh: func() string { fresh++; return fmt.Sprint("fresh", fresh) },
	}
	turn, err := reader.read(body, media)
	if text.String() != turn.Text || reasoning.String() != turn.Reasoning {
		tb.Errorf("sink got %q, %q; turn has %q, %q", text.String(), reasoning.String(), turn.Text, turn.Reasoning)
	}
	if turn.CutOff != (err != nil) {
		tb.Errorf("cut off is %v with error %v", turn.CutOff, err)
	}
	return turn, err
}

func (f fixture) contentType() string {
	switch f.media {
	case "":
		return "text/event-stream; charset=utf-8"
	case "-":
		return ""
	}
	return f.media
}

func (f fixture) check(tb testing.TB, turn Turn, err error) {
	tb.Helper()
	if !reflect.DeepEqual(turn, f.want) {
		tb.Errorf("turn:\n got %+v\nwant %+v", turn, f.want)
	}
	switch {
	case f.err == "" && err != nil:
		tb.Errorf("error %v", err)
	case f.err != "" && (err == nil || !strings.Contains(err.Error(), f.err)):
		tb.Errorf("error %v, want one with %q", err, f.err)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			turn, err := read(t, strings.NewReader(f.body), f.contentType())
			f.check(t, turn, err)
		})
	}
}

// variants are other ways to write the same answer.
func (f fixture) variants() map[string]string {
	out := map[string]string{"": f.body, "byte order mark": "\uFEFF" + f.body}
	if !strings.Contains(f.body, "\r") {
		out["crlf"] = strings.ReplaceAll(f.body, "\n", "\r\n")
		out["lone cr"] = strings.ReplaceAll(f.body, "\n", "\r")
	}
	return out
}

// TestAnswerAnySplit reads every fixture in every variant cut in two, byte by byte, and in random pieces. It cuts at every
// byte of short fixtures and at some of the others; with THROWBAR_SPLITS=all at every byte of all variants, which takes
// minutes under the race detector.
func TestAnswerAnySplit(t *testing.T) {
	t.Parallel()
	for i, f := range fixtures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for name, body := range f.variants() {
				check := func(how string, in io.Reader) {
					t.Helper()
					turn, err := read(t, in, f.contentType())
					f.check(t, turn, err)
					if t.Failed() {
						t.Fatalf("variant %q, %s", name, how)
					}
				}
				step := 1
				switch {
				case os.Getenv("THROWBAR_SPLITS") == "all":
				case name != "":
					step = 41
				case len(body) > 300:
					step = 7
				}
				for at := 0; at < len(body); at += step {
					check(fmt.Sprint("cut at ", at), io.MultiReader(strings.NewReader(body[:at]), strings.NewReader(body[at:])))
				}
				check("byte by byte", iotest.OneByteReader(strings.NewReader(body)))
				check("end with data", iotest.DataErrReader(strings.NewReader(body)))
				for seed := range 5 {
					check("pieces", &pieceReader{rest: body, rand: rand.New(rand.NewPCG(uint64(i), uint64(seed)))})
				}
			}
		})
	}
}

type pieceReader struct {
	rest string
	rand *rand.Rand
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, r.rest[:1+r.rand.IntN(min(len(r.rest), 40))])
	r.rest = r.rest[n:]
	return n, nil
}

// TestAnswerReset breaks the connection of every complete fixture at every byte: whatever is cut off, no call is run
// that the whole answer does not have, and the text is a beginning of the whole text.
func TestAnswerReset(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset by peer")
	for _, f := range fixtures() {
		if f.err != "" || len(f.body) > 2000 {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for n := range f.body {
				turn, err := read(t, io.MultiReader(strings.NewReader(f.body[:n]), iotest.ErrReader(reset)), f.contentType())
				if err != nil && !errors.Is(err, ErrCutOff) {
					t.Fatalf("cut at %d: error %v", n, err)
				}
				if err != nil && (len(turn.Calls) > 0 || !strings.HasPrefix(f.want.Text, strings.TrimSuffix(turn.Text, "\uFFFD"))) {
					t.Fatalf("cut at %d: %+v", n, turn)
				}
				if err == nil && (!reflect.DeepEqual(turn.Calls, f.want.Calls) || turn.Text != f.want.Text) {
					t.Fatalf("cut at %d and believed: %+v", n, turn)
				}
			}
		})
	}
}

func TestAnswerResetIsVisible(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset by peer")
	turn, err := read(t, io.MultiReader(strings.NewReader(sse(say("Hello"))), iotest.ErrReader(reset)), "text/event-stream")
	if !errors.Is(err, ErrCutOff) || !errors.Is(err, reset) || turn.Text != "Hello" {
		t.Fatalf("got %+v, %v", turn, err)
	}
}

func TestAnswerBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine)
	many := make([]string, maxCalls+1)
	for i := range many {
		many[i] = calls(fmt.Sprintf(`"index":%d,"id":"c%d",%s`, i, i, fn("f", "{}")))
	}
	for _, tt := range []struct {
		name, media, body, err string
		text                   int
	}{
		{name: "line", body: sse(say("ok"), say(long)), err: "8 MiB", text: 2},
		{name: "line that never ends", body: "data: " + long + long, err: "8 MiB"},
		{name: "event", body: sse(say("ok")) + strings.Repeat("data: "+long[:maxLine/4]+"\n", 5), err: "8 MiB", text: 2},
		{name: "document", media: jsonType, body: `{"choices":[{"message":{"content":"` + long + `"}}]}`, err: "8 MiB"},
		{name: "turn", body: strings.Repeat(sse(say(long[:maxLine-1000])), 3), err: "too long", text: 3 * (maxLine - 1000)},
		{name: "calls", body: sse(many...), err: "too many tool calls"},
		{name: "line within bounds", body: sse(say(long[:maxLine-1000]), end("stop")), text: maxLine - 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turn, err := read(t, strings.NewReader(tt.body), tt.media)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if len(turn.Text) != tt.text || len(turn.Calls) > 0 {
				t.Errorf("%d bytes of text, %d calls", len(turn.Text), len(turn.Calls))
			}
		})
	}
}

// forever repeats a text, and counts what was read of it.
type forever struct {
	text string
	read int64
}

func (f *forever) Read(p []byte) (int, error) {
	n := copy(p, f.text[f.read%int64(len(f.text)):])
	f.read += int64(n)
	return n, nil
}

// TestAnswerEnds has bodies without end: each is left after a bounded number of bytes.
func TestAnswerEnds(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20 // of those that would go on to maxBody
	for name, tt := range map[string]struct {
		text  string
		reads int64
		err   string
	}{
		"line":               {"x", maxLine, "8 MiB"},
		"line of data":       {"data: x", maxLine, "8 MiB"},
		"lines of one event": {"data: xxxxxxxxxxxxxxx\n", 2 * maxLine, "8 MiB"},
		"document":           {`{"a":`, maxLine, "not JSON"},
		"page":               {"<p>", maxErrorBody, "answered 200"},
		"text":               {sse(say(strings.Repeat("x", 1000))), 2 * maxTurn, "too long"},
		"reasoning":          {sse(delta(`"reasoning":"` + strings.Repeat("x", 1000) + `"`)), 2 * maxTurn, "too long"},
		"arguments":          {sse(calls(`"index":0,"id":"a",` + fn("f", strings.Repeat("x", 1000)))), 2 * maxTurn, "too long"},
		"calls":              {sse(calls(`"id":"a",`+fn("f", "{}"), `"id":"b",`+fn("g", `{"x":1}`))), limit, "too long"},
		"extras":             {sse(calls(`"index":0,"id":"a","x":"` + strings.Repeat("x", 1000) + `",` + fn("f", ""))), limit, "too long"},
		"nothing":            {sse("{}"), limit, "too long"},
		"remarks":            {": still there\n\n", limit, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &forever{text: strings.Repeat(tt.text, 1+64<<10/len(tt.text))} // long, so that reading costs little
			reader := answer{fresh: freshID}
			if tt.reads == limit {
				reader.limit = limit
			}
			_, err := reader.read(in, "text/event-stream")
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v", err)
			}
			if in.read > tt.reads+64<<10 {
				t.Errorf("read %d bytes", in.read)
			}
		})
	}
}

// TestAnswerIsFast reads events that could take the time of their square, which no test would wait for.
func TestAnswerIsFast(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty lines of data":    strings.Repeat("data:\n", 2<<20),
		"beginnings of a value":  strings.Repeat("data: {\n", 1<<20),
		"ends of a value":        strings.Repeat("data: }\n", 1<<20),
		"values and empty lines": "data: {}" + strings.Repeat("\ndata:", 1<<20) + strings.Repeat("\ndata: {", 1<<10),
		"names of fields":        strings.Repeat("data:", 1<<20) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if turn, err := read(t, strings.NewReader("data: x\n"+body), "text/event-stream"); err == nil {
				t.Errorf("%+v", turn)
			}
		})
	}
}

func TestSnapshotsCostNoMemory(t *testing.T) {
	t.Parallel()
	var args argText
	whole := `{"x":"` + strings.Repeat("y", 50_000)
	for n := 10; n < len(whole); n += 10 {
		args.add(whole[:n])
		if held := cap(args.pieces.text); n > 1000 && held > 0 {
			t.Fatalf("holds %d bytes of pieces after %d", held, n)
		}
	}
	args.add(whole + `"}`)
	if args.text() != whole+`"}` {
		t.Error("lost the arguments")
	}
}

// TestNoProxyFromEnvironment looks at the transport, because a proxy of the environment is not used for loopback
// servers in any case.
func TestNoProxyFromEnvironment(t *testing.T) {
	t.Parallel()
	if transport, ok := plainTransport().(*http.Transport); !ok || transport.Proxy != nil {
		t.Errorf("transport %+v", transport)
	}
}

func BenchmarkAnswer(b *testing.B) {
	chunks := make([]string, 1000)
	for i := range chunks {
		chunks[i] = say("word ")
	}
	body := sse(append(chunks, end("stop"), usage(1, 1000))...) + done
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := (answer{}).read(strings.NewReader(body), "text/event-stream"); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, fx := range fixtures() {
		f.Add([]byte(fx.body), fx.contentType())
	}
	f.Fuzz(func(t *testing.T, body []byte, media string) {
		turn, err := read(t, strings.NewReader(string(body)), media)
		size := len(turn.Text) + len(turn.Reasoning)
		for _, call := range append(turn.Calls, turn.Open...) {
			size += len(call.Arguments)
			for _, s := range []string{call.ID, call.Name, call.Arguments, string(call.Extra)} {
				if !isClean(s) {
					t.Errorf("call has unclean text %q", s)
				}
			}
			if call.ID == "" {
				t.Error("call without id")
			}
		}
		if !isClean(turn.Text) || !isClean(turn.Reasoning) || !isClean(turn.Finish) {
			t.Errorf("unclean text in %+v", turn)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("error text %q", err)
		}
		if size > 3*len(body)+2*len("{}")*len(turn.Calls)+100 {
			t.Errorf("%d bytes out of %d", size, len(body))
		}
		if fault := Lint(Repair([]Message{{Role: RoleUser, Text: "go"}, turn.Message()})); fault != nil {
			t.Error(fault)
		}
	})
}
