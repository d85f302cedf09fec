package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/fault"
)

const maxSummary = 200

// end is an End and what the waiting caller is told.
type end struct {
	End
	l        *live
	out      *controlv1.DeviceOutcome
	answered bool // by the device, which gets a receipt
}

// endOf turns a device's outcome into the command's end. A result that is not the action's own, or that names things
// of another device, counts as a failure of the device.
func (d *Dispatcher) endOf(l *live, o *devicev1.Outcome) *end {
	var e *end
	switch kind := o.GetOutcome().(type) {
	case *devicev1.Outcome_Result:
		out, err := d.checkResult(l, kind.Result)
		if err != nil {
			e = d.failure(l, Failed, fault.New(fault.Failed, "the device answered wrongly: %v", err))
			break
		}
		e = d.success(l, kind.Result, out)
	case *devicev1.Outcome_Error:
		e = d.deviceError(l, kind.Error)
	default:
		e = d.failure(l, Failed, fault.New(fault.Failed, "the device answered with neither a result nor an error"))
	}
	e.answered = true
	return e
}

func (d *Dispatcher) checkResult(l *live, result *commandv1.Result) (protoreflect.Message, error) {
	if l.entry == nil {
		return nil, catalog.ErrUnknownAction
	}
	out, err := l.entry.ResultBody(result)
	if err != nil {
		return nil, err
	}
	for _, ref := range catalog.Targets(out) {
		if _, composite := kindOf(ref.Kind); !composite {
			continue
		}
		if id, err := ident.Parse(ref.ID); err != nil || id.Device != l.rec.Device {
			return nil, fmt.Errorf("%s is no id of this device", ref.Field.JSONName())
		}
	}
	return out, nil
}

func (d *Dispatcher) success(l *live, result *commandv1.Result, out protoreflect.Message) *end {
	kept, result := d.keptResult(l, result, out)
	raw, err := proto.Marshal(kept)
	if err != nil {
		return d.failure(l, Failed, fault.New(fault.Failed, "the result cannot be encoded"))
	}
	e := d.ended(l, Succeeded)
	e.Record.Result = raw
	e.Record.Summary = summarize(out)
	items := itemsOf(out)
	for _, s := range l.saved {
		switch items[s.GetTabId()] {
		case commandv1.ItemStatus_ITEM_STATUS_OK, commandv1.ItemStatus_ITEM_STATUS_UNKNOWN_OUTCOME:
			e.Kept = append(e.Kept, s.GetSavedId())
		default:
			e.Dropped = append(e.Dropped, s.GetSavedId())
		}
	}
	for _, s := range l.restore {
		if items[s.GetSavedId()] == commandv1.ItemStatus_ITEM_STATUS_OK {
			e.Dropped = append(e.Dropped, s.GetSavedId())
			if l.rec.Undoes != "" {
				e.Record.Undone++
			}
		} else {
			e.Released = append(e.Released, s.GetSavedId())
		}
	}
	e.out.SavedIds = e.Kept
	e.out.Outcome = &controlv1.DeviceOutcome_Result{Result: result}
	return e
}

// deviceError is an end without a result, as the device gave it.
func (d *Dispatcher) deviceError(l *live, ce *commandv1.CommandError) *end {
	state := Failed
	switch ce.GetCode() {
	case commandv1.ErrorCode_ERROR_CODE_EXPIRED:
		state = Expired
	case commandv1.ErrorCode_ERROR_CODE_CANCELLED:
		state = Cancelled
	case commandv1.ErrorCode_ERROR_CODE_INTERRUPTED:
		state = Interrupted
	default:
	}
	return d.commandError(l, state, ce)
}

func (d *Dispatcher) failure(l *live, state State, f *fault.Error) *end {
	return d.commandError(l, state, fault.Command(f))
}

func (d *Dispatcher) commandError(l *live, state State, ce *commandv1.CommandError) *end {
	e := d.ended(l, state)
	if raw, err := proto.Marshal(d.keptError(l, ce)); err == nil {
		e.Record.Error = raw
	}
	e.Detail = codeName(ce.GetCode())
	e.Record.Summary = e.Detail
	// What may have been taken away stays known; what certainly was not is dropped. What was to be brought back is kept
	// again even if it may be open by now: a tab that is open twice is a nuisance, one that is lost is a loss.
	mayHaveRun := mayHaveRun(ce.GetCode()) && (l.sentOn != 0 || l.recovered)
	for _, s := range l.saved {
		if mayHaveRun {
			e.Kept = append(e.Kept, s.GetSavedId())
		} else {
			e.Dropped = append(e.Dropped, s.GetSavedId())
		}
	}
	e.Released = savedIDs(l.restore)
	e.out.SavedIds = e.Kept
	e.out.Outcome = &controlv1.DeviceOutcome_Error{Error: ce}
	return e
}

// mayHaveRun says whether a device that answers with a code may have run a part of the command.
func mayHaveRun(code commandv1.ErrorCode) bool {
	switch code {
	case commandv1.ErrorCode_ERROR_CODE_FAILED, commandv1.ErrorCode_ERROR_CODE_INTERRUPTED,
		commandv1.ErrorCode_ERROR_CODE_CANCELLED, commandv1.ErrorCode_ERROR_CODE_EXPIRED:
		return true
	default:
		return false
	}
}

// openAfterAll are the ids of kept saved tabs that a late result says are open: not taken away, or brought back.
func (d *Dispatcher) openAfterAll(ctx context.Context, rec Record, o *devicev1.Outcome) ([]string, error) {
	action := &commandv1.Action{}
	if o.GetResult() == nil || decode(rec.Action, action) != nil {
		return nil, nil
	}
	entry, err := d.Catalogue.ByAction(action) // none once the payloads are cleared
	if err != nil {
		return nil, nil
	}
	args, err := entry.Body(action)
	if err != nil {
		return nil, nil
	}
	out, err := d.checkResult(&live{rec: rec, entry: entry}, o.GetResult())
	if err != nil {
		return nil, nil
	}
	items := itemsOf(out)
	var dropped []string
	for _, ref := range catalog.Targets(args) {
		if ref.Kind == optionv1.Target_TARGET_SAVED && items[ref.ID] == commandv1.ItemStatus_ITEM_STATUS_OK {
			dropped = append(dropped, ref.ID)
		}
	}
	kept, err := d.Reader.Kept(ctx, KeptFilter{Workspace: rec.Workspace, Command: rec.ID, Limit: maxKept})
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	for _, k := range kept {
		switch items[k.Tab.GetTabId()] {
		case commandv1.ItemStatus_ITEM_STATUS_OK, commandv1.ItemStatus_ITEM_STATUS_UNKNOWN_OUTCOME:
		default:
			dropped = append(dropped, k.Tab.GetSavedId())
		}
	}
	return dropped, nil
}

func (d *Dispatcher) ended(l *live, state State) *end {
	e := &end{End: End{Record: l.rec}, l: l}
	if d.may(l, state) {
		e.Record.State = state
	} else {
		e.Record.State = Interrupted // an end all the same: a command without one would never be forgotten
	}
	e.Record.EndedAt = d.Now()
	e.out = &controlv1.DeviceOutcome{DeviceId: l.rec.Device, CommandId: l.rec.ID, ApprovalId: l.rec.Approval}
	if device, err := d.Devices.Find(l.rec.Workspace, l.rec.Device); err == nil {
		e.out.DeviceName = device.Name
	}
	return e
}

// itemsOf is what a result says of each item, by id.
func itemsOf(out protoreflect.Message) map[string]commandv1.ItemStatus {
	items := map[string]commandv1.ItemStatus{}
	item := (&commandv1.ItemOutcome{}).ProtoReflect().Descriptor().FullName()
	fields := out.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !fd.IsList() || fd.Message() == nil || fd.Message().FullName() != item {
			continue
		}
		list := out.Get(fd).List()
		for j := range list.Len() {
			m := list.Get(j).Message()
			of := m.Descriptor().Fields()
			items[m.Get(of.ByName("id")).String()] = commandv1.ItemStatus(m.Get(of.ByName("status")).Enum())
		}
	}
	return items
}

// summarize is one line of a result's plain facts: numbers, flags and ids, never a text from a page.
func summarize(out protoreflect.Message) string {
	var facts []string
	fields := out.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.IsList() || fd.IsMap() || catalog.Sensitive(fd) {
			continue
		}
		isID := fd.Kind() == protoreflect.StringKind && catalog.TargetOf(fd) != optionv1.Target_TARGET_UNSPECIFIED
		isPlain := fd.Kind() == protoreflect.BoolKind || fd.Kind() == protoreflect.Uint32Kind
		if (isPlain || isID) && (out.Has(fd) || !fd.HasPresence()) && !(isID && out.Get(fd).String() == "") {
			facts = append(facts, fmt.Sprintf("%s=%v", fd.JSONName(), out.Get(fd).Interface()))
		}
	}
	return cut(strings.Join(facts, " "), maxSummary)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// describe says what a late outcome was, without any of its content.
func describe(o *devicev1.Outcome) string {
	if o.GetError() != nil {
		return codeName(o.GetError().GetCode())
	}
	return "result"
}

// codeName is the contract's short name of a code, for example OFFLINE.
func codeName(code commandv1.ErrorCode) string {
	return strings.TrimPrefix(code.String(), "ERROR_CODE_")
}

func savedIDs(saved []*commandv1.SavedTab) []string {
	var ids []string
	for _, s := range saved {
		ids = append(ids, s.GetSavedId())
	}
	return ids
}

func timestamp(t time.Time) *timestamppb.Timestamp { return timestamppb.New(t) }

func decode(raw []byte, m proto.Message) error {
	if err := proto.Unmarshal(raw, m); err != nil {
		return fmt.Errorf("decode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}
