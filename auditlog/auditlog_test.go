package auditlog_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/auditlog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const size = 6

// chain is a record of so many entries.
func chain(t testing.TB, n int) []*controlv1.AuditEntry {
	t.Helper()
	head := auditlog.Genesis()
	var all []*controlv1.AuditEntry
	for i := range n {
		e, err := auditlog.Seal(head, &controlv1.AuditRecord{
			Sequence: uint64(i + 1), Time: timestamppb.New(time.UnixMilli(1_700_000_000_000 + int64(i))), Workspace: "default",
			Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_ACCEPTED, Actor: "person", SubjectId: fmt.Sprint("c", i), Name: "open <b>&\u2028",
			Action: &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example/?q=1&r=2"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		head = e.GetHash()
	}
	return all
}

func export(t testing.TB, entries []*controlv1.AuditEntry, after uint64) []byte {
	t.Helper()
	var out bytes.Buffer
	w := auditlog.NewWriter(&out, after)
	for _, e := range entries {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTheHashIsWhatTheContractSays, counted by hand: SHA-256 over 32 zero bytes and the record.
func TestTheHashIsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	all := chain(t, 2)
	first := sha256.Sum256(append(make([]byte, 32), all[0].GetRecord()...))
	second := sha256.Sum256(append(first[:], all[1].GetRecord()...))
	if !bytes.Equal(all[0].GetHash(), first[:]) || !bytes.Equal(all[1].GetHash(), second[:]) || !bytes.Equal(all[1].GetPrevious(), first[:]) {
		t.Errorf("hashes %x and %x", all[0].GetHash(), all[1].GetHash())
	}
}

func TestASoundFileIsIntact(t *testing.T) {
	t.Parallel()
	all := chain(t, size)
	for name, c := range map[string]struct {
		from int
		n    uint64
	}{"whole": {0, size}, "a part": {3, size - 3}, "one": {5, 1}, "none": {6, 0}} {
		steps := uint64(0)
		report, problem, err := auditlog.Verify(bytes.NewReader(export(t, all[c.from:], uint64(c.from))), nil, func(n uint64) { steps = n })
		if err != nil || problem != nil || report.Checked != c.n || steps != c.n || report.First != uint64(c.from+1) {
			t.Errorf("%s: %+v, %v, %v", name, report, problem, err)
		}
	}
	file := export(t, all, 0)
	if again := export(t, all, 0); !bytes.Equal(file, again) {
		t.Error("the same record makes another file")
	}
	if _, problem, err := auditlog.Verify(bytes.NewReader(file), all[2].GetHash(), nil); problem != nil || err != nil {
		t.Errorf("with an anchor: %v, %v", problem, err)
	}
	_, problem, err := auditlog.Verify(bytes.NewReader(file), make([]byte, 32), nil)
	if err != nil || problem == nil || problem.Kind != auditlog.Anchor {
		t.Errorf("with an anchor of nothing: %v, %v", problem, err)
	}
	var line struct {
		Entry struct {
			Kind, Name string
			Action     struct{ OpenTab struct{ URL string } }
		}
	}
	if err := json.Unmarshal(bytes.Split(file, []byte("\n"))[1], &line); err != nil || line.Entry.Action.OpenTab.URL == "" ||
		line.Entry.Kind != "AUDIT_KIND_COMMAND_ACCEPTED" {
		t.Errorf("what can be read: %+v, %v", line, err)
	}
}

// forged is a line with a record that somebody else made, hashed as it should be.
func forged(t *testing.T, of *controlv1.AuditEntry, change func(*controlv1.AuditRecord)) *controlv1.AuditEntry {
	t.Helper()
	record := &controlv1.AuditRecord{}
	if err := proto.Unmarshal(of.GetRecord(), record); err != nil {
		t.Fatal(err)
	}
	change(record)
	e, err := auditlog.Seal(of.GetPrevious(), record)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestVerifyNamesWhatWasTamperedWithInAFile (security 22): lines[n] is entry n, lines[0] the header, the last the trailer.
func TestVerifyNamesWhatWasTamperedWithInAFile(t *testing.T) {
	t.Parallel()
	all := chain(t, size)
	line := func(e *controlv1.AuditEntry) string {
		return string(bytes.Split(export(t, []*controlv1.AuditEntry{e}, 0), []byte("\n"))[1])
	}
	replace := func(n int, old, new string) func([]string) []string {
		return func(lines []string) []string {
			if !strings.Contains(lines[n], old) {
				t.Errorf("line %d has no %q", n, old)
			}
			lines[n] = strings.Replace(lines[n], old, new, 1)
			return lines
		}
	}
	drop := func(n int) func([]string) []string {
		return func(lines []string) []string { return slices.Delete(lines, n, n+1) }
	}
	for name, c := range map[string]struct {
		do   func(lines []string) []string
		bad  uint64
		kind auditlog.Kind
	}{
		"drop the first":  {drop(1), 1, auditlog.Gap},
		"drop a middle":   {drop(4), 4, auditlog.Gap},
		"drop the last":   {drop(size), size, auditlog.Head},
		"drop the end":    {drop(size + 1), size + 1, auditlog.Head},
		"drop the header": {drop(0), 1, auditlog.File},
		"reorder": {func(lines []string) []string {
			lines[3], lines[4] = lines[4], lines[3]
			return lines
		}, 3, auditlog.Gap},
		"duplicate":                {func(lines []string) []string { return slices.Insert(lines, 3, lines[3]) }, 3, auditlog.Order},
		"duplicate an earlier one": {func(lines []string) []string { return slices.Insert(lines, 5, lines[2]) }, 5, auditlog.Order},
		"insert a sound one": {func(lines []string) []string {
			return slices.Insert(lines, 4, line(forged(t, all[3], func(r *controlv1.AuditRecord) { r.Name = "forged" })))
		}, 4, auditlog.Order},
		"rewrite with its hash": {func(lines []string) []string {
			lines[4] = line(forged(t, all[3], func(r *controlv1.AuditRecord) { r.Name = "forged" }))
			return lines
		}, 4, auditlog.Hash},
		"rewrite the last with its hash": {func(lines []string) []string {
			lines[size] = line(forged(t, all[size-1], func(r *controlv1.AuditRecord) { r.Name = "forged" }))
			return lines
		}, size, auditlog.Head},
		"another workspace": {func(lines []string) []string {
			lines[4] = line(forged(t, all[3], func(r *controlv1.AuditRecord) { r.Workspace = "other" }))
			return lines
		}, 4, auditlog.Workspace},
		"another actor to read":      {replace(4, `"actor":"person"`, `"actor":"nobody"`), 4, auditlog.Fields},
		"another argument to read":   {replace(4, "a.example", "b.example"), 4, auditlog.Fields},
		"another time to read":       {replace(4, `"time":"2023-11-14T22:13:20.003Z"`, `"time":"2023-11-14T22:13:20.004Z"`), 4, auditlog.Fields},
		"another number to read":     {replace(4, `{"sequence":4,`, `{"sequence":5,`), 4, auditlog.Fields},
		"nothing to read":            {replace(4, `"entry":`, `"entry":null,"x":`), 4, auditlog.Decode},
		"a field more":               {replace(4, `{"sequence"`, `{"note":"all is well","sequence"`), 4, auditlog.Decode},
		"a field twice":              {replace(4, `{"sequence":4,`, `{"sequence":9,"sequence":4,`), 4, auditlog.Decode},
		"no JSON":                    {replace(4, `{"sequence"`, `{sequence`), 4, auditlog.Decode},
		"a header of another start":  {replace(0, `"first":1`, `"first":2`), 1, auditlog.Order},
		"an end with another count":  {replace(size+1, `"entries":6`, `"entries":7`), size + 1, auditlog.File},
		"an end further on":          {replace(size+1, `"last":6`, `"last":7`), size + 1, auditlog.Head},
		"lines after the end":        {func(lines []string) []string { return append(lines, lines[1]) }, size + 1, auditlog.File},
		"nothing":                    {func([]string) []string { return nil }, 1, auditlog.File},
		"a newer format":             {replace(0, `"format":1`, `"format":2`), 1, auditlog.File},
		"an end with another hash":   {replace(size+1, `"head":"`, `"head":"00`), size, auditlog.Head},
		"a previous hash that is no": {replace(4, `"previous":"`, `"previous":"zz`), 4, auditlog.Decode},
	} {
		lines := strings.Split(strings.TrimSuffix(string(export(t, all, 0)), "\n"), "\n")
		_, problem, err := auditlog.Verify(strings.NewReader(strings.Join(c.do(lines), "\n")), nil, nil)
		if err != nil || problem == nil || problem.Sequence != c.bad || problem.Kind != c.kind {
			t.Errorf("%s: verify says %v (%+v), %v, want %s of entry %d", name, problem, problem, err, c.kind, c.bad)
		}
	}
}

// TestNoBitOfAFileCanBeFlipped, and where it is in an entry that entry is named.
func TestNoBitOfAFileCanBeFlipped(t *testing.T) {
	t.Parallel()
	file := export(t, chain(t, 3), 0)
	lineOf := func(n int) uint64 { return uint64(bytes.Count(file[:n], []byte("\n"))) }
	for n := range len(file) - 1 {
		for bit := range 8 {
			bad := bytes.Clone(file)
			bad[n] ^= 1 << bit
			_, problem, err := auditlog.Verify(bytes.NewReader(bad), nil, nil)
			if err != nil || problem == nil {
				t.Fatalf("bit %d of byte %d was flipped: %v, %v\n%s", bit, n, problem, err, bad)
			}
			if at := lineOf(n); at >= 1 && at <= 3 && problem.Sequence != at {
				t.Fatalf("bit %d of byte %d, in entry %d, was flipped: verify names %d", bit, n, at, problem.Sequence)
			}
		}
	}
}

// TestAnEntryOfANewerProgramIsCheckedByItsBytes: what can be read of it cannot be compared, and that is said.
func TestAnEntryOfANewerProgramIsCheckedByItsBytes(t *testing.T) {
	t.Parallel()
	record := &controlv1.AuditRecord{Sequence: 1, Time: timestamppb.New(time.UnixMilli(1)), Workspace: "w"}
	raw, err := proto.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	raw = protowire.AppendString(protowire.AppendTag(raw, 900, protowire.BytesType), "of a later version")
	e := &controlv1.AuditEntry{Record: raw, Previous: auditlog.Genesis(), Hash: auditlog.HashOf(auditlog.Genesis(), raw)}
	file := strings.Replace(string(export(t, []*controlv1.AuditEntry{e}, 0)), `"entry":{`, `"entry":{"later":"of a later version",`, 1)
	report, problem, err := auditlog.Verify(strings.NewReader(file), nil, nil)
	if err != nil || problem != nil || report.Newer != 1 {
		t.Errorf("%+v, %v, %v", report, problem, err)
	}
	bad := strings.Replace(file, base64.StdEncoding.EncodeToString(raw)[8:16], "AAAAAAAA", 1)
	if _, problem, _ := auditlog.Verify(strings.NewReader(bad), nil, nil); problem == nil || problem.Sequence != 1 {
		t.Errorf("its bytes were changed: %v", problem)
	}
}

// small is a record of the least entries.
func small(t testing.TB, n int) []*controlv1.AuditEntry {
	t.Helper()
	head := auditlog.Genesis()
	var all []*controlv1.AuditEntry
	for i := range n {
		e, err := auditlog.Seal(head, &controlv1.AuditRecord{Sequence: uint64(i + 1), Workspace: "w"})
		if err != nil {
			t.Fatal(err)
		}
		all, head = append(all, e), e.GetHash()
	}
	return all
}

// FuzzVerify reads any file: what it calls intact is what an export of the entries in it writes. The seeds are small: the
// fuzzer makes what it finds as short as it can, which takes it all its time with long ones.
func FuzzVerify(f *testing.F) {
	f.Add(export(f, small(f, 1), 0))
	f.Add(export(f, small(f, 2)[1:], 1))
	f.Add(export(f, nil, 0))
	f.Add([]byte(`{"throwbar":"audit","format":1,"first":1,"previous":""}`))
	one := export(f, small(f, 1), 0)
	f.Add(bytes.ReplaceAll(one, []byte("\n"), []byte("\r\n")))
	f.Add(append(bytes.TrimSuffix(one, []byte("\n")), '\r'))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, problem, err := auditlog.Verify(bytes.NewReader(file), nil, nil)
		if err != nil || problem != nil {
			return
		}
		var lines [][]byte // a \r at the end of a line is none of it, also where the last line has no \n
		scan := bufio.NewScanner(bytes.NewReader(file))
		scan.Buffer(nil, len(file)+1)
		for scan.Scan() {
			lines = append(lines, bytes.Clone(scan.Bytes()))
		}
		var out bytes.Buffer
		var head struct{ First uint64 }
		if err := json.Unmarshal(lines[0], &head); err != nil {
			t.Fatal(err)
		}
		w := auditlog.NewWriter(&out, head.First-1)
		for _, l := range lines[1 : len(lines)-1] {
			var e struct {
				Record         []byte
				Previous, Hash string
			}
			if err := json.Unmarshal(l, &e); err != nil {
				t.Fatal(err)
			}
			previous, _ := hex.DecodeString(e.Previous)
			hash, _ := hex.DecodeString(e.Hash)
			if err := w.Add(&controlv1.AuditEntry{Record: e.Record, Previous: previous, Hash: hash}); err != nil {
				t.Fatal(err)
			}
		}
		if len(lines) == 2 { // an empty part says what it follows, which no export of nothing knows
			return
		}
		if err := w.Close(); err != nil || !bytes.Equal(bytes.TrimSuffix(out.Bytes(), []byte("\n")), bytes.Join(lines, []byte("\n"))) {
			t.Errorf("it is intact, and an export writes something else:\n%s\n%s", file, out.Bytes())
		}
	})
}
