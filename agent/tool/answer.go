package tool

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/agent/tool/result"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	// MaxAnswer is how many bytes a model is told about one call.
	MaxAnswer = 16 << 10
	// envelope is what the marks and notes around an answer take of it.
	envelope = 512
	// maxListName is how many bytes are told of the name of a list.
	maxListName = 40
	// maxMessage is how long the message of an error may be.
	maxMessage = 1000
)

// The members of paging, which every query shares.
const (
	pageSizeField = protoreflect.Name("page_size")
	nextTokenName = "nextPageToken"
)

// Answer is what came of a call, before it is printed for the model.
type Answer struct {
	// OK is false if nothing of the call worked.
	OK bool
	// Denied is set if policy or a person forbade all of it.
	Denied bool
	// Images are addresses of images, https: or data:, which a model may be shown beside the answer. The answer has a
	// line for each of them.
	Images []string

	body  *result.Value
	plain bool   // the body is text and images
	text  string // of a plain one
	rows  string // the list whose rows come in pages, or empty
	page  int    // the length of the page if it was chosen to fit
}

// Fail is the answer of a call that did not work.
func Fail(code, message string, lines ...string) Answer {
	body := result.Object().Add("code", result.Text(code)).Add("message", result.Text(result.Cut(message, maxMessage)))
	if len(lines) > 0 {
		body.Add("problems", result.Texts(lines))
	}
	return Answer{body: body}
}

// Found is the answer of a query.
func (t *Tool) Found(response proto.Message) Answer {
	return Answer{OK: true, body: result.Of(response.ProtoReflect()), rows: t.rows()}
}

// rows is the list of a query's answer whose rows come in pages: the first one of the response. It is empty if there are no pages.
func (t *Tool) rows() string {
	if t.Entry.In.Fields().ByName(pageSizeField) == nil {
		return ""
	}
	fields := t.Entry.Out.Fields()
	for i := range fields.Len() {
		if fields.Get(i).IsList() {
			return fields.Get(i).JSONName()
		}
	}
	return ""
}

// Answered is the answer of a facility.
func (t *Tool) Answered(response proto.Message) Answer { return answered(response) }

func answered(response proto.Message) Answer {
	return Answer{OK: true, body: result.Of(response.ProtoReflect())}
}

// Shorten asks for a page that fits into an answer: it sets the page size of a query's request to the number of rows
// that fit, and says whether that is less than what the response has.
func (t *Tool) Shorten(request, response proto.Message) (int, bool) {
	fd := request.ProtoReflect().Descriptor().Fields().ByName(pageSizeField)
	if fd == nil || fd.Kind() != protoreflect.Uint32Kind {
		return 0, false
	}
	rows := t.rows()
	for _, left := range result.Fit(result.Of(response.ProtoReflect()), MaxAnswer-envelope) {
		if left.Top && left.Name == rows && left.Shown > 0 {
			request.ProtoReflect().Set(fd, protoreflect.ValueOfUint32(uint32(left.Shown)))
			return left.Shown, true
		}
	}
	return 0, false
}

// Page says that the answer is a page of a length that Shorten chose.
func (a Answer) Page(rows int) Answer {
	a.page = rows
	return a
}

// Refused is the answer of a call that the server did not run.
func Refused(code commandv1.ErrorCode, message string) Answer {
	a := Answer{
		body:   failure(&commandv1.CommandError{Code: code, Message: message}),
		Denied: code == commandv1.ErrorCode_ERROR_CODE_DENIED,
	}
	a.advise(code)
	return a
}

// Done is the answer of a command: what it did on each device, and what the people who decided about it made of it.
func (t *Tool) Done(response *controlv1.DispatchResponse, decisions ...*controlv1.Approval) Answer {
	a := t.decided(t.done(response), decisions)
	for _, o := range response.GetOutcomes() {
		a.advise(o.GetError().GetCode())
	}
	return a
}

func (t *Tool) done(response *controlv1.DispatchResponse) Answer {
	outcomes := response.GetOutcomes()
	switch len(outcomes) {
	case 0:
		return Fail("failed", "no device was asked")
	case 1:
		o := outcomes[0]
		if o.GetError() != nil {
			body := failure(o.GetError())
			named(body, o)
			return Answer{body: body, Denied: o.GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_DENIED}
		}
		body, ok := t.outcome(o)
		if !ok {
			return Answer{body: body.Get("error")}
		}
		return Answer{OK: true, body: body}
	}
	a := Answer{Denied: true}
	devices := result.List()
	for _, o := range outcomes {
		body, ok := t.outcome(o)
		a.OK = a.OK || ok
		a.Denied = a.Denied && o.GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_DENIED
		devices.Append(body)
	}
	a.body = result.Object()
	if !a.OK {
		a.body.Add("code", result.Text("failed")).Add("message", result.Text("it worked on no device"))
	}
	a.body.Add("devices", devices)
	return a
}

// outcome is what happened on one device: its name, then the fields of the result or the error.
func (t *Tool) outcome(o *controlv1.DeviceOutcome) (*result.Value, bool) {
	body := result.Object()
	named(body, o)
	if o.GetError() != nil {
		return body.Add("error", failure(o.GetError())), false
	}
	message, err := t.Entry.Unwrap(o.GetResult())
	if err != nil {
		return body.Add("error", result.Object().Add("code", result.Text("failed")).
			Add("message", result.Text("the device answered with no result of this command"))), false
	}
	done := result.Of(message)
	if !body.Merge(done) {
		body.Add("result", done) // a field has the name of the device's
	}
	if ids := o.GetSavedIds(); len(ids) > 0 {
		body.Add("savedIds", result.Texts(ids))
	}
	return body, true
}

func named(body *result.Value, o *controlv1.DeviceOutcome) {
	if o.GetDeviceId() != "" {
		body.Add("deviceId", result.Text(o.GetDeviceId()))
	}
	if o.GetDeviceName() != "" {
		body.Add("deviceName", result.Text(o.GetDeviceName()))
	}
}

func failure(e *commandv1.CommandError) *result.Value {
	return result.Object().Add("code", result.Text(ErrorCode(e.GetCode()))).
		Add("message", result.Text(result.Cut(e.GetMessage(), maxMessage)))
}

// ErrorCode is the name of an error's code for the model, for example offline.
func ErrorCode(code commandv1.ErrorCode) string {
	name, ok := naming.Short(code.Descriptor(), code.Number())
	if !ok || code == commandv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return "failed"
	}
	return name
}

// Print is PrintWhole without what the model is not told.
func (a Answer) Print(random io.Reader) (string, error) {
	shown, _, err := a.PrintWhole(random)
	return shown, err
}

// PrintWhole is the answer as the model reads it: JSON, no longer than MaxAnswer, between marks that are new each time.
// Where that is only a part of it, whole is all of it, for people: JSON without the marks, or the text itself; otherwise
// whole is empty. What is left out is told, and how much of it. Print an answer once.
func (a Answer) PrintWhole(random io.Reader) (shown, whole string, err error) {
	if a.plain {
		a.body, whole = a.shorten()
	} else if text := a.body.String(); len(text) > MaxAnswer-envelope {
		whole = text
	}
	notes := a.missing()
	if whole != "" && len(notes) == 0 && !a.plain {
		notes = append(notes, fmt.Sprintf("texts were cut: the whole answer has %d bytes, which the user can read", len(whole)))
	}
	if a.page > 0 && a.body.Get(nextTokenName) != nil {
		notes = append(notes, fmt.Sprintf("the page was cut to %d rows for size; go on with pageToken", a.page))
	}
	if len(notes) > 0 {
		name := noteKey
		if a.body.Get(name) != nil { // the answer has one of its own
			name = cutKey
		}
		a.body.Add(name, result.Text(strings.Join(notes, ". ")))
	}
	shown, err = result.Seal(random, a.OK, a.body)
	return shown, bounded(whole), err
}

// The members that say what is missing.
const (
	noteKey = "note"
	cutKey  = "cutNote"
)

// missing makes the answer short enough, and says of which lists rows are left out.
func (a Answer) missing() []string {
	const most = 3 // lists that are named
	var notes []string
	left := result.Fit(a.body, MaxAnswer-envelope)
	for i, left := range left {
		note := fmt.Sprintf("%d of %d rows of %s left out for size", left.Of-left.Shown, left.Of, result.Cut(left.Name, maxListName))
		if left.Top && left.Name == a.rows {
			note += "; narrow the call to see them"
			a.body.Drop(nextTokenName) // it would skip them
		}
		if i < most {
			notes = append(notes, note)
		}
	}
	if len(left) > most {
		notes = append(notes, fmt.Sprintf("rows of %d more lists left out for size", len(left)-most))
	}
	return notes
}
